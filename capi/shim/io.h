/* io.h - what MPI-IO in Go (capi/io*.go) needs from the C side: exchanges between the processes of a file, user memory, requests.
 * MPI-5.0, chapter 15. */
#ifndef SPX_IO_H
#define SPX_IO_H
#include "comm.h"
#include "counter.h"

/* A message of an exchange. data is an address; as a number, so that it may be Go's, which stays where it is. */
typedef struct spx_io_message {
  int64_t peer;
  uintptr_t data;
  int64_t bytes;
} spx_io_message;

/* Sends and receives all, and waits for it; c is private to the file. Called from Go. When it fails, nothing is pending any more.
 * Returns an MPI error code. */
SPX_HIDDEN int spx_io_exchange(spx_comm *c, const spx_io_message *sends, int nsends, const spx_io_message *recvs,
                               int nrecvs);
/* Puts bytes (whole words) of every process into all, by rank. Called from Go. Returns an MPI error code. */
SPX_HIDDEN int spx_io_gather(spx_comm *c, const void *mine, void *all, int64_t bytes);
/* spx_counter_add and _end, which may wait. Called from Go. */
SPX_HIDDEN int spx_io_counter_add(spx_counter *k, int64_t n, int64_t *before);
SPX_HIDDEN void spx_io_counter_end(spx_counter *k, int together);
/* A complete request of an operation that moved this many bytes; NULL when memory is out. */
SPX_HIDDEN spx_request *spx_io_request(int64_t bytes);
/* Gives a new file the error handler of MPI_FILE_NULL. */
SPX_HIDDEN void spx_io_inherit(spx_obj *file);
/* A file is closed: its error handler goes with it. */
SPX_HIDDEN void spx_io_disown(spx_obj *file);
/* Stores a status; address 0 is MPI_STATUS_IGNORE. */
SPX_HIDDEN void spx_io_status(uintptr_t status, int64_t bytes);
#endif
