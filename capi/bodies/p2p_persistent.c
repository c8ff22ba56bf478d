/* p2p_persistent.c - persistent requests and starting them. MPI-5.0 3.9. */
#include <stdio.h>
#include "net.h"
#include "request.h"

static int init(spx_req_kind kind, const void *buf, int64_t count, spx_type *t, int rank, int tag,
                spx_comm *c, spx_send_mode mode, MPI_Request *request)
{
  spx_request *r;
  int rc =
      spx_persistent(kind, (void *)(uintptr_t)buf, count, t, rank, tag, c, SPX_CTX_P2P, mode, &r);
  if (rc != MPI_SUCCESS) return spx_fail_on_comm(c, rc);
  if (SPX_UNLIKELY(c->rank < 0)) spx_outbound_persistent(r);
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}

int spx_c_Send_init(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                    spx_comm *comm, MPI_Request *request)
{
  return init(SPX_R_SEND, buf, count, datatype, dest, tag, comm, SPX_M_STANDARD, request);
}
int spx_c_Bsend_init(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                     spx_comm *comm, MPI_Request *request)
{
  return init(SPX_R_SEND, buf, count, datatype, dest, tag, comm, SPX_M_BUFFERED, request);
}
int spx_c_Ssend_init(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                     spx_comm *comm, MPI_Request *request)
{
  return init(SPX_R_SEND, buf, count, datatype, dest, tag, comm, SPX_M_SYNC, request);
}
int spx_c_Rsend_init(const void *buf, int64_t count, spx_type *datatype, int dest, int tag,
                     spx_comm *comm, MPI_Request *request)
{
  return init(SPX_R_SEND, buf, count, datatype, dest, tag, comm, SPX_M_READY, request);
}
int spx_c_Recv_init(void *buf, int64_t count, spx_type *datatype, int source, int tag,
                    spx_comm *comm, MPI_Request *request)
{
  return init(SPX_R_RECV, buf, count, datatype, source, tag, comm, SPX_M_STANDARD, request);
}

/* Raises when a request cannot be started. i: its place in the array, or -1. */
static int check_startable(MPI_Request handle, int i)
{
  const spx_request *r = (const spx_request *)spx_get(SPX_K_REQ, handle);
  const char *why =
      !(r->flags & SPX_RF_PERSISTENT) ? "is not persistent: only those of MPI_*_init can be started"
      : r->flags & SPX_RF_ACTIVE ? "is active already: complete it with MPI_Wait or MPI_Test first"
                                 : NULL;
  if (SPX_LIKELY(!why)) return MPI_SUCCESS;
  char name[40] = "request";
  if (i >= 0) snprintf(name, sizeof name, "array_of_requests[%d]", i);
  spx_detail("%s %s", name, why);
  return spx_request_fail(spx_request_raised_on(r), MPI_ERR_REQUEST);
}

static int raise_start(const spx_request *r, int rc)
{
  return spx_request_fail(spx_request_raised_on(r), rc);
}

int spx_c_Start(MPI_Request *request)
{
  int rc = check_startable(*request, -1);
  if (rc != MPI_SUCCESS) return rc;
  spx_request *r = (spx_request *)spx_get(SPX_K_REQ, *request);
  rc = spx_start(r);
  return SPX_LIKELY(rc == MPI_SUCCESS) ? rc : raise_start(r, rc);
}

/* Nothing is started unless all can be. */
int spx_c_Startall(int count, MPI_Request array_of_requests[])
{
  int rc = MPI_SUCCESS;
  for (int i = 0; i < count && rc == MPI_SUCCESS; i++)
    rc = check_startable(array_of_requests[i], i);
  if (rc != MPI_SUCCESS) return rc;
  spx_request *r = NULL;
  spx_net_together(1);
  for (int i = 0; i < count && rc == MPI_SUCCESS; i++) {
    r = (spx_request *)spx_get(SPX_K_REQ, array_of_requests[i]);
    rc = spx_start(r);
  }
  spx_net_together(-1);
  return SPX_LIKELY(rc == MPI_SUCCESS) ? rc : raise_start(r, rc);
}
