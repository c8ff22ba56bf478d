/* comm.c - descriptors of communicators, and the functions that only read them (MPI-5.0, 7.4.1
 * and 7.6.1). */
#include "check_coll.h"
#include "comm.h"
#include "stat.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "coll.h"
#include "dp.h"
#include "plan_run.h"
#include "share.h"
#include "shim.h"

_Static_assert(SPX_HANDLE_COMM_NULL == (uintptr_t)MPI_COMM_NULL &&
                   SPX_HANDLE_COMM_WORLD == (uintptr_t)MPI_COMM_WORLD &&
                   SPX_HANDLE_COMM_SELF == (uintptr_t)MPI_COMM_SELF &&
                   SPX_HANDLE_GROUP_NULL == (uintptr_t)MPI_GROUP_NULL &&
                   SPX_HANDLE_GROUP_EMPTY == (uintptr_t)MPI_GROUP_EMPTY &&
                   SPX_HANDLE_INFO_NULL == (uintptr_t)MPI_INFO_NULL &&
                   SPX_HANDLE_INFO_ENV == (uintptr_t)MPI_INFO_ENV,
               "handles of comm.h");

spx_comm *spx_world, *spx_self;

/* ---- arrays of process indices: the number of entries and the reference count stand before the
 * first. Each holds its processes from spx_ranks_hold on. ---- */

enum { RANKS_HELD = 1u << 31, RANKS_PARTING = 1u << 30 };

uint32_t *spx_ranks_new(uint32_t n)
{
  uint32_t *p = malloc(((size_t)n + 2) * sizeof *p);
  if (!p) return NULL;
  p[0] = n;
  p[1] = 1;
  return p + 2;
}

void spx_ranks_hold(uint32_t *ranks)
{
  for (uint32_t i = 0; i < ranks[-2]; i++) spx_peer_hold(ranks[i]);
  ranks[-2] |= RANKS_HELD;
}

uint32_t *spx_ranks_share(uint32_t *ranks)
{
  __atomic_fetch_add(ranks - 1, 1, __ATOMIC_RELAXED);
  return ranks;
}

void spx_ranks_free(uint32_t *ranks)
{
  if (!ranks || __atomic_fetch_sub(ranks - 1, 1, __ATOMIC_ACQ_REL) != 1) return;
  uint32_t n = ranks[-2] & ~(uint32_t)(RANKS_HELD | RANKS_PARTING);
  for (uint32_t i = 0; (ranks[-2] & RANKS_HELD) && i < n; i++)
    spx_peer_release(ranks[i], (ranks[-2] & RANKS_PARTING) != 0);
  free(ranks - 2);
}

/* The communicator with users references on an array is about to go, with all its members. */
static void ranks_part(uint32_t *ranks, uint32_t users)
{
  uint32_t n = ranks[-2] & ~(uint32_t)RANKS_HELD;
  if (__atomic_load_n(ranks - 1, __ATOMIC_RELAXED) != users || !(ranks[-2] & RANKS_HELD) ||
      (ranks[-2] & RANKS_PARTING))
    return;
  ranks[-2] |= RANKS_PARTING;
  for (uint32_t i = 0; i < n; i++) spx_peer_part(ranks[i]);
}

/* ---- descriptors ---- */

int spx_comm_fill(spx_comm *c, int rank, int size, int remote_size, uint64_t ctx, uint32_t *peer,
                  uint32_t *local)
{
  spx_stat_comm(c);
  c->rank = rank;
  c->size = size;
  c->remote_size = remote_size;
  c->coll_seq = spx_plan_first();
  c->peer = peer;
  c->local = local;
  if (peer != local) {
    spx_comm *in = (spx_comm *)spx_new(SPX_K_COMM);
    if (!in) return MPI_ERR_NO_MEM;
    spx_check_inside(SPX_K_COMM, &in->o);
    c->flags |= SPX_C_INTER;
    c->inner = in;
    spx_comm_fill(in, rank, size, size, 0, spx_ranks_share(local), local);
  }
  spx_comm_set_ctx(c, ctx);
  return MPI_SUCCESS;
}

void spx_comm_set_ctx(spx_comm *c, uint64_t ctx)
{
  c->ctx = ctx;
  if (c->inner) c->inner->ctx = ctx ? ctx + SPX_CTX_STEP : 0;
}

typedef struct {
  const spx_comm *c;
  uint64_t from;
} moved;

/* Persistent sends and receives are started in the context that their communicator has by then. */
static void move_request(spx_obj *o, void *arg)
{
  spx_request *r = (spx_request *)o;
  const moved *m = arg;
  if (r->comm == m->c && r->flags & SPX_RF_PERSISTENT &&
      (r->kind == SPX_R_SEND || r->kind == SPX_R_RECV))
    r->ctx = m->c->ctx + (r->ctx - m->from);
}

/* Drops the state of c for its former processes. */
static void empty(spx_comm *c)
{
  atomic_store(&c->revoked, 1);
  spx_comm_revoked(c);
  if (c->ctx) spx_comm_dropped(c->ctx);
  spx_share_leave(c);
  spx_coll_comm_free(c);
  c->coll_seq = spx_plan_first();
  atomic_store(&c->failed_seen, 0);
}

void spx_comm_lists(spx_comm *c, uint32_t *peer, uint32_t *local)
{
  uint32_t *was_peer = c->peer, *was_local = c->local;
  spx_lock();
  c->peer = peer;
  c->local = local;
  if (c->inner) {
    spx_ranks_free(c->inner->local);
    c->inner->peer = c->inner->local = spx_ranks_share(local);
  }
  spx_unlock();
  if (was_local != was_peer) spx_ranks_free(was_peer);
  spx_ranks_free(was_local);
}

void spx_comm_renew(spx_comm *c, int rank, uint64_t ctx, uint32_t *peer, uint32_t *local)
{
  moved of = {c, c->ctx};
  if (c == spx_world) spx_inbound_move(c->ctx, ctx);
  empty(c);
  c->rank = rank;
  if (c->inner) {
    empty(c->inner);
    c->inner->rank = rank;
  }
  spx_comm_lists(c, peer, local);
  spx_comm_set_ctx(c, ctx);
  spx_each_handle(SPX_K_REQ, move_request, &of);
  if (c->inner) atomic_store(&c->inner->revoked, 0);
  atomic_store(&c->revoked, 0);
}

/* May run inside the data plane: frees memory, and nothing else. */
static void release(spx_comm *c)
{
  spx_stat_gone(c);
  if (c->ctx) spx_comm_dropped(c->ctx);
  spx_share_leave(c);
  if (c->inner) spx_unref(SPX_K_COMM, &c->inner->o);
  if (c->outbound) spx_unref(SPX_K_COMM, &c->outbound->o);
  if (c->local != c->peer) spx_ranks_free(c->peer);
  spx_ranks_free(c->local);
  spx_comm_attrs_free(c);
  spx_coll_comm_free(c);
  if (c->errh) spx_unref(SPX_K_ERRH, &c->errh->o);
}

static void destroy(spx_obj *o) { release((spx_comm *)o); }

void spx_comm_start(void) { spx_destructor[SPX_K_COMM] = destroy; }

spx_comm *spx_comm_predefine(int value, uint32_t flags)
{
  spx_comm *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->o.handle = (uint32_t)value;
  atomic_store_explicit(&c->o.refs, 1, memory_order_relaxed);
  c->flags = flags;
  spx_predef[SPX_K_COMM][value] = &c->o;
  return c;
}

void spx_comm_forget(int value)
{
  spx_comm *c = (spx_comm *)spx_predef[SPX_K_COMM][value];
  if (!c) return;
  spx_predef[SPX_K_COMM][value] = NULL;
  release(c);
  free(c);
}

int spx_plain_predefine(spx_kind k, int value, uint32_t go)
{
  spx_plain *p = calloc(1, sizeof *p);
  if (!p) return 0;
  p->o.handle = (uint32_t)value;
  p->o.go = go;
  atomic_store_explicit(&p->o.refs, 1, memory_order_relaxed);
  spx_predef[k][value] = &p->o;
  return 1;
}

/* ---- the engine's messages ---- */

void spx_creation_step(void)
{
  if (SPX_UNLIKELY(spx_set.die_after) && --spx_set.die_after == 0) raise(SIGKILL);
}

bool spx_anything_waits(void)
{
  bool found = false;
  if (!spx_tx_waiting()) return false;
  spx_lock();
  for (uint32_t i = 0; i < spx_segment->nprocs && !found; i++)
    found = (spx_txs[i].pend || spx_txs[i].stream) && !spx_proc_left(i);
  spx_unlock();
  return found;
}

void spx_comm_part(spx_comm *c)
{
  if (c->inner) ranks_part(c->peer, 1);
  ranks_part(c->local, c->inner ? 2 : 1);
}

/* ---- bodies ---- */

int spx_c_Comm_rank(spx_comm *comm, int *rank)
{
  *rank = spx_is_origin(comm->rank) ? MPISP_CLUSTER_IN : comm->rank;
  return MPI_SUCCESS;
}

int spx_c_Comm_size(spx_comm *comm, int *size)
{
  *size = comm->size;
  return MPI_SUCCESS;
}

int spx_c_Comm_test_inter(spx_comm *comm, int *flag)
{
  *flag = (comm->flags & SPX_C_INTER) != 0;
  return MPI_SUCCESS;
}

int spx_c_Comm_remote_size(spx_comm *comm, int *size)
{
  if (!(comm->flags & SPX_C_INTER))
    return spx_raise(SPX_K_COMM, (void *)(uintptr_t)comm->o.handle, MPI_ERR_COMM,
                     "MPI_Comm_remote_size", "comm is not an intercommunicator");
  *size = comm->remote_size;
  return MPI_SUCCESS;
}

MPI_Comm spx_parent = MPI_COMM_NULL;

int spx_c_Comm_get_parent(MPI_Comm *parent)
{
  *parent = spx_get(SPX_K_COMM, spx_parent) ? spx_parent : MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int spx_c_Comm_set_name(spx_comm *comm, const char *comm_name)
{
  size_t n = strnlen(comm_name, sizeof comm->name - 1);
  spx_lock();
  memcpy(comm->name, comm_name, n);
  comm->name[n] = 0;
  spx_unlock();
  return MPI_SUCCESS;
}

int spx_c_Comm_get_name(spx_comm *comm, char *comm_name, int *resultlen)
{
  static const char null[] = "MPI_COMM_NULL"; /* MPI-5.0, 8.8 */
  if (!comm) {
    memcpy(comm_name, null, sizeof null);
    *resultlen = (int)sizeof null - 1;
    return MPI_SUCCESS;
  }
  spx_lock();
  size_t n = strlen(comm->name);
  memcpy(comm_name, comm->name, n + 1);
  spx_unlock();
  *resultlen = (int)n;
  return MPI_SUCCESS;
}
