/* request.h - what the bodies that complete requests share. */
#ifndef SPX_REQUEST_H
#define SPX_REQUEST_H
#include "p2p.h"

static inline spx_request *spx_request_of(MPI_Request h)
{
  return (spx_request *)spx_get(SPX_K_REQ, h);
}
/* Null and inactive requests are complete, with an empty status. */
static inline bool spx_request_active(const spx_request *r)
{
  return r && (r->flags & SPX_RF_ACTIVE);
}
static inline bool spx_request_done(spx_request *r)
{
  return atomic_load_explicit(&r->done, memory_order_acquire) != 0;
}

/* Where the errors of a request are raised: the handle of its communicator; one that was freed is
 * kept for that. */
typedef struct {
  void *handle;
  spx_comm *freed;
} spx_request_on;

/* The status of nothing (MPI-5.0 3.7.3). */
SPX_HIDDEN void spx_status_empty(MPI_Status *st);
/* Takes the outcome of a request that is complete: fills st (MPI_ERROR stays), frees the request or
 * makes it inactive, and sets *h. Returns the error code; then *on has where to raise it, and the
 * detail text is set. */
SPX_HIDDEN int spx_request_collect(MPI_Request *h, spx_request *r, MPI_Status *st,
                                   spx_request_on *on);
SPX_HIDDEN spx_request_on spx_request_raised_on(const spx_request *r);
/* Raises the error of a request: this, or spx_request_on_drop, once for each that was given. */
SPX_HIDDEN int spx_request_fail(spx_request_on on, int code);
SPX_HIDDEN void spx_request_on_drop(spx_request_on on);
/* A wildcard receive that a failure holds up: MPIX_ERR_PROC_FAILED_PENDING, raised; the request
 * stays as it is. */
SPX_HIDDEN bool spx_request_held_up(const spx_request *r);
SPX_HIDDEN int spx_request_fail_pending(const spx_request *r);
#endif
