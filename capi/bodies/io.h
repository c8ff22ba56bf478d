/* io.h - what MPI-IO in Go (capi/io*.go) needs from the C side: requests, statuses, error handlers.
 * MPI-5.0, chapter 15. */
#ifndef SPX_IO_H
#define SPX_IO_H
#include "comm.h"
#include "counter.h"

/* A complete request of an operation that moved this many bytes; NULL when memory is out. */
SPX_HIDDEN spx_request *spx_io_request(int64_t bytes);
/* Gives a new file the error handler of MPI_FILE_NULL. */
SPX_HIDDEN void spx_io_inherit(spx_obj *file);
/* A file is closed: its error handler goes with it. */
SPX_HIDDEN void spx_io_disown(spx_obj *file);
/* Stores a status; address 0 is MPI_STATUS_IGNORE. */
SPX_HIDDEN void spx_io_status(uintptr_t status, int64_t bytes);
#endif
