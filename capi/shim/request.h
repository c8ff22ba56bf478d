/* request.h - what the bodies that complete requests share. */
#ifndef SPX_REQUEST_H
#define SPX_REQUEST_H
#include "p2p.h"

static inline spx_request *spx_request_of(MPI_Request h) { return (spx_request *)spx_get(SPX_K_REQ, h); }
/* Null and inactive requests are complete, with an empty status. */
static inline bool spx_request_active(const spx_request *r) { return r && (r->flags & SPX_RF_ACTIVE); }
static inline bool spx_request_done(spx_request *r)
{
  return atomic_load_explicit(&r->done, memory_order_acquire) != 0;
}

/* The status of nothing (MPI-5.0 3.7.3). */
SPX_HIDDEN void spx_status_empty(MPI_Status *st);
/* Takes the outcome of a request that is complete: fills st (MPI_ERROR stays), frees the request or makes it inactive, and sets
 * *h. Returns the error code, and in *on the handle of the communicator to raise it on; the detail text is set. */
SPX_HIDDEN int spx_request_collect(MPI_Request *h, spx_request *r, MPI_Status *st, void **on);
/* Raises the error of a request. */
SPX_HIDDEN int spx_request_fail(void *on, int code);
/* A wildcard receive that a failure holds up: MPIX_ERR_PROC_FAILED_PENDING, raised; the request stays as it is. */
SPX_HIDDEN bool spx_request_held_up(const spx_request *r);
SPX_HIDDEN int spx_request_fail_pending(const spx_request *r);
#endif
