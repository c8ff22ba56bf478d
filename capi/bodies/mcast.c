/* mcast.c - bodies of MPIX_Mcast and its kin. docs/multicast.md. */
#include "p2p.h"

/* The set of a handle, which the shim has checked, if it is of comm; else NULL, and the error is
 * raised. */
static spx_rankset *set_of(MPIX_Rankset handle, const spx_comm *comm, int *rc)
{
  spx_rankset *s = (spx_rankset *)spx_get(SPX_K_RANKSET, handle);
  if (SPX_LIKELY(s->ctx == comm->ctx)) return s;
  spx_detail("set is a set of ranks of another communicator than comm");
  *rc = spx_fail_on_comm(comm, MPI_ERR_ARG);
  return NULL;
}

static int blocking(const void *buffer, int64_t count, spx_type *datatype, MPIX_Rankset set,
                    int tag, spx_comm *comm, bool sync)
{
  int rc;
  spx_mcast_args a = {buffer, count, datatype, set_of(set, comm, &rc), tag, comm, sync};
  if (!a.set) return rc;
  rc = spx_mcast(&a);
  return SPX_LIKELY(rc == MPI_SUCCESS) ? rc : spx_fail_on_comm(comm, rc);
}

static int request_of(const void *buffer, int64_t count, spx_type *datatype, MPIX_Rankset set,
                      int tag, spx_comm *comm, bool sync, uint32_t flags, MPI_Request *request)
{
  int rc;
  spx_request *r;
  spx_mcast_args a = {buffer, count, datatype, set_of(set, comm, &rc), tag, comm, sync};
  if (!a.set) return rc;
  rc = spx_mcast_init(&a, flags, &r);
  if (rc != MPI_SUCCESS) return spx_fail_on_comm(comm, rc);
  if (!(flags & SPX_RF_PERSISTENT)) spx_start(r);
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}

int spx_c_X_Mcast(const void *buffer, int count, spx_type *datatype, MPIX_Rankset set, int tag,
                  spx_comm *comm)
{
  return blocking(buffer, count, datatype, set, tag, comm, false);
}

int spx_c_X_Smcast(const void *buffer, int count, spx_type *datatype, MPIX_Rankset set, int tag,
                   spx_comm *comm)
{
  return blocking(buffer, count, datatype, set, tag, comm, true);
}

int spx_c_X_Imcast(const void *buffer, int count, spx_type *datatype, MPIX_Rankset set, int tag,
                   spx_comm *comm, MPI_Request *request)
{
  return request_of(buffer, count, datatype, set, tag, comm, false, 0, request);
}

int spx_c_X_Ismcast(const void *buffer, int count, spx_type *datatype, MPIX_Rankset set, int tag,
                    spx_comm *comm, MPI_Request *request)
{
  return request_of(buffer, count, datatype, set, tag, comm, true, 0, request);
}

int spx_c_X_Mcast_init(const void *buffer, int count, spx_type *datatype, MPIX_Rankset set, int tag,
                       spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info; /* there are no hints */
  return request_of(buffer, count, datatype, set, tag, comm, false, SPX_RF_PERSISTENT, request);
}
