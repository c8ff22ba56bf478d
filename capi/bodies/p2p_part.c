/* p2p_part.c - partitioned communication. MPI-5.0, chapter 5. What goes between the processes:
 * dataplane/part/part.c. */
#include "net.h"
#include "part.h"
#include "request.h"

#define FN spx_fn_name[spx_fn]

static int init(spx_req_kind kind, void *buf, int partitions, int64_t count, spx_type *t, int rank,
                int tag, spx_comm *c, MPI_Request *request)
{
  spx_request *r;
  if (partitions <= 0) {
    spx_detail("partitions = %d: there must be at least one", partitions);
    return spx_fail_on_comm(c, MPI_ERR_ARG);
  }
  int rc = spx_part_init(kind, buf, partitions, count, t, rank, tag, c, &r);
  if (rc != MPI_SUCCESS) return spx_fail_on_comm(c, rc);
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}

int spx_c_Psend_init(const void *buf, int partitions, MPI_Count count, spx_type *datatype, int dest,
                     int tag, spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info; /* no key has a meaning here */
  return init(SPX_R_PART_SEND, (void *)(uintptr_t)buf, partitions, count, datatype, dest, tag, comm,
              request);
}

int spx_c_Precv_init(void *buf, int partitions, MPI_Count count, spx_type *datatype, int source,
                     int tag, spx_comm *comm, MPI_Info info, MPI_Request *request)
{
  (void)info;
  return init(SPX_R_PART_RECV, buf, partitions, count, datatype, source, tag, comm, request);
}

static int not_partitioned(const char *what)
{
  return spx_raise(0, NULL, MPI_ERR_REQUEST, FN,
                   "the request is not one of a partitioned %s (MPI_P%s_init)", what, what);
}

/* The active partitioned send behind a handle; NULL: the error *rc has been raised. */
static spx_request *active_send(MPI_Request request, int *rc)
{
  spx_request *r = spx_request_of(request);
  if (r->kind != SPX_R_PART_SEND) {
    *rc = not_partitioned("send");
    return NULL;
  }
  if (spx_request_active(r)) return r;
  spx_detail("the request is not active: call MPI_Start first");
  *rc = spx_fail_on_comm(r->comm, MPI_ERR_REQUEST);
  return NULL;
}

int spx_c_Pready(int partition, MPI_Request request)
{
  int rc;
  spx_request *r = active_send(request, &rc);
  if (!r) return rc;
  rc = spx_part_ready(r, partition, partition);
  return SPX_LIKELY(rc == MPI_SUCCESS) ? rc : spx_fail_on_comm(r->comm, rc);
}

int spx_c_Pready_range(int partition_low, int partition_high, MPI_Request request)
{
  int rc;
  spx_request *r = active_send(request, &rc);
  if (!r) return rc;
  if (partition_low > partition_high) {
    spx_detail("partition_low = %d is above partition_high = %d", partition_low, partition_high);
    return spx_fail_on_comm(r->comm, MPI_ERR_ARG);
  }
  spx_net_together(1);
  rc = spx_part_ready(r, partition_low, partition_high);
  spx_net_together(-1);
  return SPX_LIKELY(rc == MPI_SUCCESS) ? rc : spx_fail_on_comm(r->comm, rc);
}

int spx_c_Pready_list(int length, const int array_of_partitions[], MPI_Request request)
{
  int rc = MPI_SUCCESS;
  spx_request *r = active_send(request, &rc);
  if (r && length > 0 && !array_of_partitions) {
    spx_detail("array_of_partitions is NULL");
    return spx_fail_on_comm(r->comm, MPI_ERR_ARG);
  }
  if (!r) return rc;
  spx_net_together(1);
  for (int i = 0; i < length && rc == MPI_SUCCESS; i++)
    rc = spx_part_ready(r, array_of_partitions[i], array_of_partitions[i]);
  spx_net_together(-1);
  return SPX_LIKELY(rc == MPI_SUCCESS) ? rc : spx_fail_on_comm(r->comm, rc);
}

int spx_c_Parrived(MPI_Request request, int partition, int *flag)
{
  spx_request *r = spx_request_of(request);
  *flag = 1;
  if (r && r->kind != SPX_R_PART_RECV) return not_partitioned("recv");
  if (!spx_request_active(r)) return MPI_SUCCESS;
  int rc = spx_part_arrived(r, partition, flag);
  return rc == MPI_SUCCESS ? rc : spx_fail_on_comm(r->comm, rc);
}
