/* bsend.h - buffers for buffered sends. MPI-5.0 3.6. */
#ifndef SPX_BSEND_H
#define SPX_BSEND_H
#include "spx.h"
/* Owner of a buffer: a communicator or session (see kind), or NULL for the process. All return an
 * MPI error code. */
/* buf is MPI_BUFFER_AUTOMATIC, or size bytes of the user's. */
SPX_HIDDEN int spx_buffer_attach(spx_kind kind, spx_obj *owner, void *buf, int64_t size);
/* Waits for the messages in it. */
SPX_HIDDEN int spx_buffer_detach(spx_obj *owner, void **buf, int64_t *size);
SPX_HIDDEN int spx_buffer_flush(spx_obj *owner);
SPX_HIDDEN int spx_buffer_iflush(spx_obj *owner, spx_request **r);
/* How long a buffered send that finds no room waits for some: while nothing moves, and in all.
 * Tests change it. */
typedef struct {
  uint64_t still_ns, total_ns;
} spx_patience;
SPX_HIDDEN extern spx_patience spx_bsend_patience;
#endif
