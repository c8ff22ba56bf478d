/* p2p.h - what the bodies of point-to-point communication share. */
#ifndef SPX_P2P_H
#define SPX_P2P_H
#include "error.h"
#include "origin.h"
#include "shim.h"

/* A persistent request was made on a communicator that has no rank for this process: system.c. */
SPX_HIDDEN void spx_outbound_persistent(spx_request *r) __attribute__((cold));

static inline MPI_Request spx_request_handle(const spx_request *r)
{
  return (MPI_Request)(uintptr_t)r->o.handle;
}
#endif
