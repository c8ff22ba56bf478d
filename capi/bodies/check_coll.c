/* check_coll.c - SPX_CHECK=1: records the beginning of collectives, to find those that do not fit
 * each other. MPI-5.0 6.1. Differences are judged and worded by core/check.
 *
 * Each process writes its next operation into its own cells of the memory file, then reads the
 * peers' cells for the same operation of the communicator: no process waits, and so no program
 * behaves otherwise than without the check. Of two that do not fit, the later one finds it. The
 * cells of the last SPX_DIAG_CHECKS operations are kept: a process further behind is not compared.
 * Of each host the member of the lowest rank sends its operations to those of the other hosts
 * (SPX_REC_CHECK). The receiver writes them into the sender's cells in its own host's file, where
 * all processes of that host find them. If it has begun its own part already, and waits in it, no
 * call is left to raise an error: then the job ends with the message. */
#define _GNU_SOURCE
#include "check_coll.h"
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include "basic.h"
#include "dp.h"
#include "settings.h"

int spx_checking;

static spx_diag_check *cells_of(uint32_t i)
{
  char *row = (char *)spx_segment + spx_segment->diag_off + (uint64_t)i * SPX_DIAG_BYTES;
  return (spx_diag_check *)(void *)(row + SPX_DIAG_CHECKED);
}

/* ---- what is compared ---- */

static bool has_root(uint32_t kind)
{
  return kind == SPX_COLL_BCAST || kind == SPX_COLL_GATHER || kind == SPX_COLL_GATHERV ||
         kind == SPX_COLL_SCATTER || kind == SPX_COLL_SCATTERV || kind == SPX_COLL_REDUCE;
}

/* The side of the call whose amount must equal that of the peers: 0: none, 1: sent data, 2:
 * received data. */
static int compared_side(const spx_coll *c)
{
  bool root = c->key.root == c->comm->rank;
  switch (c->key.kind) {
  case SPX_COLL_BCAST:
  case SPX_COLL_ALLGATHER:
  case SPX_COLL_ALLTOALL: return 2;
  case SPX_COLL_GATHER: return root ? 2 : 1;
  case SPX_COLL_SCATTER: return root ? 1 : 2;
  case SPX_COLL_REDUCE:
  case SPX_COLL_ALLREDUCE:
  case SPX_COLL_REDUCE_SCATTER_BLOCK:
  case SPX_COLL_SCAN:
  case SPX_COLL_EXSCAN: return c->key.in_place || !c->stype ? 2 : 1;
  default: return 0;
  }
}

static void describe(spx_diag_check *d, const spx_coll *c, int request)
{
  *d = (spx_diag_check){.ctx = c->comm->ctx,
                        .seq = c->comm->coll_seq,
                        .fn = spx_fn,
                        .kind = c->key.kind + 1u,
                        .rank = c->comm->rank};
  d->request = request != 0;
  d->root = has_root(c->key.kind) ? c->key.root : -1;
  d->op = c->op && c->op->predef ? (uint32_t)c->op->predef : 0;
  d->count = -1;
  int side = compared_side(c);
  const spx_type *t = side == 1 ? c->stype : side == 2 ? c->rtype : NULL;
  if (!t) return;
  d->count = side == 1 ? c->key.scount : c->key.rcount;
  d->bytes = (uint64_t)(d->count * t->size);
  d->basic = t->basic;
}

/* Whether they may fit. If not, the engine decides: two basic types may hold the same. */
static bool alike(const spx_diag_check *a, const spx_diag_check *b)
{
  bool compared = a->count >= 0 && b->count >= 0;
  return a->kind == b->kind && a->request == b->request && a->root == b->root && a->op == b->op &&
         (!compared || (a->bytes == b->bytes && a->basic == b->basic));
}

/* ---- cells ---- */

static uint32_t place_of(uint64_t ctx, uint32_t seq)
{
  return (uint32_t)((ctx / SPX_CTX_STEP * 0x9e3779b97f4a7c15ull >> 40) + seq) % SPX_DIAG_CHECKS;
}

/* Writes the operation of process i. Where two write the same cell at once, one of the reports is
 * lost. */
static void publish(uint32_t i, const spx_diag_check *what)
{
  spx_diag_check *cell = cells_of(i) + place_of(what->ctx, what->seq);
  uint32_t version = __atomic_load_n(&cell->version, __ATOMIC_RELAXED);
  if (version & 1 || !__atomic_compare_exchange_n(&cell->version, &version, version + 1, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return;
  __atomic_thread_fence(__ATOMIC_RELEASE);
  uint64_t before = offsetof(spx_diag_check, version), behind = before + sizeof cell->version;
  memcpy(cell, what, before);
  memcpy((char *)cell + behind, (const char *)what + behind, sizeof *cell - behind);
  __atomic_store_n(&cell->version, version + 2, __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST); /* of two, one sees the other's */
}

/* The entry of process i for the same operation, if it has written one. */
static bool written(uint32_t i, const spx_diag_check *mine, spx_diag_check *out)
{
  const spx_diag_check *cell = cells_of(i) + place_of(mine->ctx, mine->seq);
  uint32_t version = __atomic_load_n(&cell->version, __ATOMIC_ACQUIRE);
  if (version == 0 || version & 1) return false;
  memcpy(out, cell, sizeof *out);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&cell->version, __ATOMIC_RELAXED) == version && out->ctx == mine->ctx &&
         out->seq == mine->seq;
}

/* ---- between hosts ---- */

static uint32_t host_of(const spx_comm *c, int rank) { return spx_proc_of(c->peer[rank])->host; }

/* Sends the operation to the lowest ranks of the other hosts; of more hosts than that, those of the
 * first ones. On a connection this comes before the operation's own messages. */
static void tell_hosts(const spx_comm *c, const spx_diag_check *mine)
{
  enum { MOST = 256 };
  uint32_t hosts[MOST], n = 0, lowest[MOST];
  for (int r = 0; r < c->size && n < MOST; r++) {
    uint32_t k = 0, host = host_of(c, r);
    if (host == spx_segment->host && r < c->rank) return; /* another one does it for this host */
    while (k < n && hosts[k] != host) k++;
    if (k < n || host == spx_segment->host || spx_peer_is_far(c->peer[r])) continue;
    hosts[n] = host;
    lowest[n++] = c->peer[r];
  }
  spx_lock();
  for (uint32_t k = 0; k < n; k++)
    spx_tx_put(lowest[k], SPX_REC_CHECK, SPX_REC_PLAIN, mine, sizeof *mine);
  spx_unlock();
}

static bool is_sound(const spx_diag_check *d)
{
  return d->fn < SPX_FN_COUNT && d->kind > 0 && d->basic < SPX_B_COUNT_OF && d->rank >= 0;
}

/* The last operation in which the entry of a process of another host differs from this one's;
 * written with spx_lock held. It is judged where the engine may be entered. */
static spx_diag_check apart[2];
static bool any_apart;

/* The report of a process of another host has arrived. */
static void arrived(uint32_t peer, const spx_rec *rec)
{
  spx_diag_check theirs, mine;
  if (rec->len != sizeof theirs || !spx_checking) return;
  memcpy(&theirs, rec->data, sizeof theirs);
  if (!is_sound(&theirs)) return;
  uint64_t at = (uint64_t)((char *)cells_of(peer) - (char *)spx_segment);
  if (fallocate(spx_map.fd, 0, (off_t)at, SPX_DIAG_BYTES - SPX_DIAG_CHECKED) != 0) return;
  publish(peer, &theirs);
  if (!written(spx_me, &theirs, &mine) || alike(&mine, &theirs)) return;
  apart[0] = mine;
  apart[1] = theirs;
  any_apart = true;
  spx_due |= SPX_DUE_HOOK;
}

bool spx_check_apart(spx_diag_check of[2])
{
  spx_lock();
  bool any = any_apart;
  any_apart = false;
  memcpy(of, apart, sizeof apart);
  spx_unlock();
  return any;
}

void spx_check_start(void)
{
  spx_checking = 0;
  if (!spx_setting_begin(SPX_SET_CHECK, 0, 1) || !spx_segment->diag_off) return;
  uint64_t at = (uint64_t)((char *)cells_of(spx_me) - (char *)spx_segment);
  spx_checking = fallocate(spx_map.fd, 0, (off_t)at, SPX_DIAG_BYTES - SPX_DIAG_CHECKED) == 0;
  spx_check_arrived = arrived;
}

int spx_check_collective(const spx_coll *c, int request)
{
  spx_comm *comm = c->comm;
  if ((comm->flags & SPX_C_INTER) || comm->size == 1) return MPI_SUCCESS;
  spx_diag_check mine, other;
  describe(&mine, c, request);
  publish(spx_me, &mine);
  if (spx_beyond_host()) tell_hosts(comm, &mine);
  for (int r = 0; r < comm->size; r++) {
    uint32_t i = comm->peer[r];
    if (r == comm->rank || spx_peer_is_far(i) || !written(i, &mine, &other)) continue;
    if (alike(&mine, &other)) continue;
    spx_frame f = {.fn = SPX_IN_CHECK, .a = {{.p = &mine}, {.p = &other}, {.p = comm->name}}};
    int err = spx_go_internal(&f);
    if (err != MPI_SUCCESS) return err;
  }
  return MPI_SUCCESS;
}
