/* system_calls.c - MPISP_ functions of systems of clusters. */
#include "system.h"
#include "check.h"
#include "dp.h"
#include "p2p.h"
#include "pass.h"
#include "replay.h"

#define FN spx_fn_name[spx_fn]

int spx_c_SP_Bind(int index)
{
  spx_frame f = {.fn = SPX_FN_SP_Bind, .a = {{.i = index}}};
  if (index < -1 || index >= (spx_io_process ? (int)spx_sys->worlds : 1)) return spx_go(&f);
  if (spx_io_process) atomic_store(&spx_system_bound, index);
  return MPI_SUCCESS;
}

/* The origin in a status; false: a message of the process's own cluster. */
static bool origin_in(const MPI_Status *status, int32_t *origin)
{
  *origin = status->MPI_internal[3];
  return (status->MPI_SOURCE == MPISP_CLUSTER_IN || (spx_io_process && status->MPI_SOURCE >= 0)) &&
         spx_is_origin(*origin);
}

int spx_c_SP_Status_get_cluster(const MPI_Status *status, int *cluster)
{
  int32_t o;
  if (origin_in(status, &o))
    *cluster =
        spx_origin_cluster(o) == SPX_ORIGIN_ANY_CLUSTER ? MPI_UNDEFINED : spx_origin_cluster(o);
  else
    *cluster = status->MPI_SOURCE < 0             ? MPI_UNDEFINED
               : spx_sys && spx_sys->cluster >= 0 ? spx_sys->cluster
                                                  : 0;
  return MPI_SUCCESS;
}

int spx_c_SP_Status_get_rank(const MPI_Status *status, int *rank)
{
  int32_t o;
  if (origin_in(status, &o))
    *rank = spx_origin_rank(o) == SPX_ORIGIN_ANY_RANK ? MPI_UNDEFINED : spx_origin_rank(o);
  else
    *rank = status->MPI_SOURCE < 0 ? MPI_UNDEFINED : status->MPI_SOURCE;
  return MPI_SUCCESS;
}

int spx_c_SP_Status_get_number(const MPI_Status *status, MPI_Count *number)
{
  int32_t o;
  uint32_t given;
  *number = spx_io_process && spx_replay_on && origin_in(status, &o)
                ? (MPI_Count)spx_replay_number((uint32_t)status->MPI_internal[4], &given)
                : 0;
  return MPI_SUCCESS;
}

int spx_c_SP_Status_get_assigned(const MPI_Status *status, int *index, int *rank)
{
  int32_t o;
  uint32_t given = UINT32_MAX;
  *index = *rank = -1;
  if (!spx_io_process || !spx_replay_on || !origin_in(status, &o)) return MPI_SUCCESS;
  spx_replay_number((uint32_t)status->MPI_internal[4], &given);
  for (uint32_t i = 0; i < spx_sys->worlds && given != UINT32_MAX; i++) {
    const spx_comm *c = spx_sys->world[i].comm;
    for (int r = 0; spx_sys->world[i].out && r < c->size; r++)
      if (spx_replay_participant(c->peer[r]) == given) {
        *index = (int)i;
        *rank = r;
        return MPI_SUCCESS;
      }
  }
  return MPI_SUCCESS;
}

int spx_c_SP_Assign(const MPI_Status *status, int dest, spx_comm *comm)
{
  int32_t o;
  if (!spx_io_process)
    return spx_raise(SPX_K_COMM, spx_comm_handle(comm), MPI_ERR_COMM, FN,
                     "this is no I/O process: it has no messages to assign");
  if (!origin_in(status, &o))
    return spx_raise(0, NULL, MPI_ERR_ARG, FN,
                     "status is not that of a message which this I/O process has received");
  SPX_TRY(spx_system_to(&comm, &dest, "dest"));
  if (spx_replay_on) spx_replay_give((uint32_t)status->MPI_internal[4], comm->peer[dest]);
  return MPI_SUCCESS;
}

int spx_c_SP_Forward(const MPI_Status *status)
{
  int32_t o;
  if (!spx_io_process) return MPI_SUCCESS;
  if (!origin_in(status, &o))
    return spx_raise(0, NULL, MPI_ERR_ARG, FN,
                     "status is not that of a message which this I/O process has received");
  spx_origin_last = o;
  spx_origin_number = (uint32_t)status->MPI_internal[4];
  return MPI_SUCCESS;
}

int spx_c_SP_Held(int messages, MPI_Count bytes)
{
  if (bytes < 0) return spx_bad_negative(0, NULL, MPI_ERR_ARG, "bytes", bytes);
  spx_proc *me = spx_proc_of(spx_me);
  __atomic_store_n(&me->io_messages, (uint32_t)messages, __ATOMIC_RELAXED);
  __atomic_store_n(&me->io_bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
  return MPI_SUCCESS;
}

int spx_c_SP_Pass(MPI_Message *message, int dest, spx_comm *comm, MPI_Count room,
                  MPI_Request *request)
{
  spx_request *r;
  if (!spx_io_process)
    return spx_raise(SPX_K_COMM, spx_comm_handle(comm), MPI_ERR_COMM, FN,
                     "this is no I/O process: it has no messages to hand on");
  if (room < 0)
    return spx_bad_negative(SPX_K_COMM, spx_comm_handle(comm), MPI_ERR_ARG, "room", room);
  SPX_TRY(spx_system_to(&comm, &dest, "dest"));
  int rc;
  if (*message == MPI_MESSAGE_NO_PROC) {
    rc = spx_irecv(NULL, 0, (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE), MPI_PROC_NULL, MPI_ANY_TAG,
                   comm, SPX_CTX_P2P, 0, &r);
    if (rc != MPI_SUCCESS) return spx_fail_on_comm(comm, rc);
  } else {
    spx_message *m = (spx_message *)spx_get(SPX_K_MSG, *message);
    spx_comm *from = m->comm;
    rc = spx_pass_start(m->unexpected, from, dest, comm, (uint64_t)room, &r);
    if (rc != MPI_SUCCESS) {
      spx_detail("no memory to hand a message on through %lld bytes", (long long)room);
      return spx_fail_on_comm(comm, rc);
    }
    spx_retire(SPX_K_MSG, &m->o);
    spx_unref(SPX_K_COMM, &from->o);
  }
  *message = MPI_MESSAGE_NULL;
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}
