/* diag.c - what this process waits for, and its queues, written into the memory file for those who
 * ask from outside.
 *
 * A thread writes its record only when it has slept for a millisecond in vain, and takes it back
 * when it wakes: what does not stand still costs nothing. The reader (launch/inspect) sees by the
 * versions whether a record was whole. Nothing here waits, allocates or fails. */
#define _GNU_SOURCE
#include "diag.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "basic.h"
#include "origin.h"

void (*spx_diag_sources)(const spx_comm *, void (*each)(uint32_t proc, void *), void *arg);
static char *row;     /* of this process; NULL: there is none */
static uint32_t used; /* slots, a bit each; under the lock */

int spx_diag_attach(void)
{
  row = NULL;
  used = 0;
  if (!spx_segment->diag_off) return 0;
  uint64_t at = spx_segment->diag_off + (uint64_t)spx_me * SPX_DIAG_BYTES;
  if (fallocate(spx_map.fd, 0, (off_t)at, SPX_DIAG_CHECKED) != 0) return errno;
  row = spx_map.base + at;
  spx_stat_place((spx_counters *)(void *)(row + SPX_DIAG_COUNTS));
  return 0;
}

void spx_diag_detach(void)
{
  row = NULL;
  spx_stat_keep();
}

/* ---- versions ---- */

static void open_record(uint32_t *version)
{
  __atomic_store_n(version, *version | 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void close_record(uint32_t *version)
{
  __atomic_store_n(version, (*version | 1) + 1, __ATOMIC_RELEASE);
}

/* ---- what is waited for ---- */

static void put_text(uint8_t *to, size_t room, const char *text)
{
  size_t n = strnlen(text, room - 1);
  memcpy(to, text, n);
  memset(to + n, 0, room - n);
}

static void put_type(spx_diag_wait *w, int64_t count, const spx_type *t)
{
  w->count = count;
  w->bytes = t ? (uint64_t)(count * t->size) : 0;
  if (!t) return;
  const spx_basic *b = spx_basic_of(t);
  if (b && (t->flags & SPX_T_PREDEFINED) && b->name)
    put_text(w->type, sizeof w->type, b->name);
  else
    put_text(w->type, sizeof w->type, b && b->name ? b->name : "");
  if (!(t->flags & SPX_T_PREDEFINED))
    w->type[sizeof w->type - 1] = 1; /* derived: of the basic type named before, if of one */
}

static void add_member(spx_diag_wait *w, uint32_t i)
{
  if (i < SPX_DIAG_MEMBERS * 64)
    w->members[i / 64] |= 1ull << i % 64;
  else
    w->more_members++;
}

/* The processes that a wait on all of a communicator, or on any of its ranks, may be for. */
static void put_members(spx_diag_wait *w, const spx_comm *c)
{
  for (int i = 0; i < c->remote_size; i++)
    if (c->peer[i] != spx_me) add_member(w, c->peer[i]);
  if (c->flags & SPX_C_INTER)
    for (int i = 0; i < c->size; i++)
      if (c->local[i] != spx_me) add_member(w, c->local[i]);
}

/* The communicator that the program has named: not the one of I/O processes behind it. */
static const spx_comm *named(const spx_comm *c)
{
  if (!c->stands_for) return c;
  const spx_comm *of =
      (const spx_comm *)spx_get(SPX_K_COMM, (const void *)(uintptr_t)c->stands_for);
  return of ? of : c;
}

/* Sends on it go to MPISP_CLUSTER_OUT, whichever I/O process that is. */
static bool leads_out(const spx_comm *c)
{
  return c && c->stands_for && !spx_io_process && spx_is_origin(c->rank);
}

static void put_comm(spx_diag_wait *w, const spx_comm *c)
{
  const spx_comm *n = named(c);
  w->ctx = c->ctx;
  w->comm_rank = n->rank;
  w->comm_size = n->remote_size;
  put_text(w->comm, sizeof w->comm, n->name);
}

static void put_coll(spx_diag_wait *w, const spx_coll *c, int32_t tag)
{
  w->what = SPX_WAITS_COLL;
  put_comm(w, c->comm);
  put_members(w, c->comm);
  w->coll = c->key.kind + 1u;
  w->seq = (uint32_t)tag;
  switch (c->key.kind) {
  case SPX_COLL_BCAST:
  case SPX_COLL_GATHER:
  case SPX_COLL_GATHERV:
  case SPX_COLL_SCATTER:
  case SPX_COLL_SCATTERV:
  case SPX_COLL_REDUCE: w->root = c->key.root; break;
  default: break;
  }
  if (c->stype && !(c->key.in_place && c->rtype))
    put_type(w, c->key.scount ? c->key.scount : c->sown, c->stype);
  else if (c->rtype)
    put_type(w, c->key.rcount ? c->key.rcount : c->rown, c->rtype);
}

static void put_source(uint32_t proc, void *w)
{
  if (proc != spx_me) add_member(w, proc);
}

/* Those whose message a receive takes that names no member: any one of these. */
static void put_sources(spx_diag_wait *w, const spx_comm *c, int rank)
{
  if (!spx_is_origin(rank)) put_members(w, c);
  if (spx_diag_sources) spx_diag_sources(c, put_source, w);
}

/* The rank that the program has given. */
static int given(int rank)
{
  bool any = spx_is_origin(rank) && spx_origin_rank(rank) == SPX_ORIGIN_ANY_RANK;
  return any && spx_io_process ? MPI_ANY_SOURCE : spx_origin_shown(rank);
}

static void put_peer(spx_diag_wait *w, const spx_comm *c, int rank, int tag)
{
  w->peer_rank = given(rank);
  w->tag = tag;
  if (rank >= 0)
    w->peer = c->peer[rank];
  else
    put_sources(w, c, rank);
}

/* A member of a multicast that has not received it. */
static void put_missing(uint32_t proc, void *wait)
{
  spx_diag_wait *w = wait;
  if (w->peer == UINT32_MAX) w->peer = proc;
  add_member(w, proc);
}

static void put_any_missing(uint32_t proc, void *wait) { add_member(wait, proc); }

static int rank_of(const spx_comm *c, uint32_t proc)
{
  int i = 0;
  while (i < c->remote_size && c->peer[i] != proc) i++;
  return i < c->remote_size ? i : -1000;
}

static void put_mcast(spx_diag_wait *w, const spx_request *r)
{
  w->what = SPX_WAITS_SEND;
  put_comm(w, r->comm);
  put_type(w, r->count, r->type);
  w->tag = r->want_tag;
  spx_mcast_each_missing(r, put_missing, w);
  if (w->peer != UINT32_MAX) w->peer_rank = rank_of(r->comm, w->peer);
}

static void put_request(spx_diag_wait *w, const spx_request *r)
{
  int32_t tag = 0;
  if (r->kind == SPX_R_COLL && spx_diag_coll_of && r->priv) {
    const spx_coll *c = spx_diag_coll_of(r, &tag);
    put_coll(w, c, tag);
  } else if (r->kind == SPX_R_SEND || r->kind == SPX_R_RECV) {
    w->what = r->kind == SPX_R_SEND ? SPX_WAITS_SEND : SPX_WAITS_RECV;
    put_comm(w, r->comm);
    put_peer(w, r->comm, r->want_src, r->want_tag);
    if (leads_out(
            /* the number of an I/O process says nothing to the program, and it may be another one
               by now */
            r->comm)) {
      w->peer_rank = MPISP_CLUSTER_OUT;
      w->peer = r->peer;
    }
    /* its message has come, in part */
    if (r->kind == SPX_R_RECV && r->state != SPX_S_POSTED) w->peer = r->peer;
    put_type(w, r->count, r->type);
  } else if (r->kind == SPX_R_MCAST)
    put_mcast(w, r);
  else {
    w->what = SPX_WAITS_REQUEST;
    if (r->comm) put_comm(w, r->comm);
  }
}

/* One of several: their processes, if all are sends and receives. */
static void put_list(spx_diag_wait *w)
{
  w->what = SPX_WAITS_ANY;
  for (int i = 0; i < spx_diag_now.list_n; i++) {
    const spx_request *r = (const spx_request *)spx_get(SPX_K_REQ, spx_diag_now.list[i]);
    if (!r || atomic_load_explicit(&r->done, memory_order_relaxed)) continue;
    if (r->kind == SPX_R_MCAST) {
      w->count++;
      if (!w->ctx) put_comm(w, r->comm);
      spx_mcast_each_missing(r, put_any_missing, w);
      continue;
    }
    if ((r->kind != SPX_R_SEND && r->kind != SPX_R_RECV) || !r->comm) {
      w->what = SPX_WAITS_EVENT;
      return;
    }
    w->count++;
    if (!w->ctx) put_comm(w, r->comm);
    if (r->want_src >= 0)
      add_member(w, r->peer);
    else
      put_sources(w, r->comm, r->want_src);
  }
}

static void put_wait(spx_diag_wait *w, const spx_request *r)
{
  bool valid = spx_diag_now.fn == spx_fn;
  const spx_run *run = valid ? spx_diag_now.run : NULL;
  if (run) {
    put_coll(w, run->c, run->tag);
    if (r && r->want_src >= 0) { /* a message of it: from or to a particular rank */
      w->peer_rank = r->want_src;
      w->peer = r->peer;
    }
  } else if (r)
    put_request(w, r);
  else if (valid && spx_diag_now.probe.comm) {
    w->what = SPX_WAITS_PROBE;
    put_comm(w, spx_diag_now.probe.comm);
    put_peer(w, spx_diag_now.probe.comm, spx_diag_now.probe.src, spx_diag_now.probe.tag);
  } else if (valid && spx_diag_now.list)
    put_list(w);
}

/* ---- queues ---- */

typedef struct {
  spx_diag_queue *head;
  spx_diag_entry *next, *end;
} listing;

static void put_entry(listing *l, uint32_t kind, uint32_t peer, int rank, int tag, uint64_t ctx,
                      uint64_t bytes, const spx_comm *c)
{
  if (l->next == l->end) return;
  spx_diag_entry *e = l->next++;
  *e = (spx_diag_entry){
      .kind = kind, .peer = peer, .rank = rank, .tag = tag, .ctx = ctx, .bytes = bytes};
  if (!c && spx_world && ctx == spx_world->ctx) c = spx_world;
  if (!c && spx_self && ctx == spx_self->ctx) c = spx_self;
  if (leads_out(c)) e->rank = MPISP_CLUSTER_OUT;
  if (c) put_text(e->comm, sizeof e->comm, named(c)->name);
}

static uint64_t comm_of(uint64_t ctx) { return ctx / SPX_CTX_STEP * SPX_CTX_STEP; }
static bool is_users(uint64_t ctx) { return ctx % SPX_CTX_STEP == SPX_CTX_P2P; }

static void put_posted(spx_request *r, void *arg)
{
  listing *l = arg;
  if (!is_users(r->ctx)) return;
  l->head->posted++;
  put_entry(l, SPX_QUEUE_POSTED, r->peer, given(r->want_src), r->want_tag, comm_of(r->ctx),
            spx_capacity(r), r->comm);
}

static void put_unexpected(spx_unex *e, void *arg)
{
  listing *l = arg;
  if (!is_users(e->ctx)) return;
  l->head->unexpected++;
  put_entry(l, SPX_QUEUE_UNEXPECTED, e->proc, spx_origin_shown(e->src), e->tag, comm_of(e->ctx),
            e->bytes, NULL);
}

static void put_send(listing *l, const spx_request *r, uint32_t kind)
{
  if (r->kind != SPX_R_SEND || !is_users(r->ctx) ||
      atomic_load_explicit(&r->done, memory_order_relaxed))
    return;
  l->head->pending++;
  put_entry(l, kind, r->peer, r->want_src, r->want_tag, comm_of(r->ctx), (uint64_t)r->bytes,
            r->comm);
}

/* A multicast is listed once for each member that has not received it. */
typedef struct {
  listing *l;
  const spx_request *r;
} cast;

static void put_cast(uint32_t proc, void *arg)
{
  const cast *c = arg;
  const spx_request *r = c->r;
  c->l->head->pending++;
  put_entry(c->l, SPX_QUEUE_SENT, proc, rank_of(r->comm, proc), r->want_tag, comm_of(r->ctx),
            (uint64_t)r->bytes, r->comm);
}

static void put_sent(spx_request *r, void *arg)
{
  if (r->kind == SPX_R_MCAST)
    spx_mcast_each_missing(r, put_cast, &(cast){arg, r});
  else
    put_send(arg, r, SPX_QUEUE_SENT);
}

static void put_queues(void)
{
  spx_diag_queue *q = (spx_diag_queue *)(void *)(row + SPX_DIAG_QUEUES);
  spx_diag_entry *first = (spx_diag_entry *)(void *)(q + 1);
  listing l = {q, first, first + SPX_DIAG_ENTRIES};
  open_record(&q->version);
  q->posted = q->unexpected = q->pending = 0;
  if (spx_posted_count) spx_each_posted(put_posted, &l);
  if (spx_unex_count) spx_each_unexpected(put_unexpected, &l);
  spx_each_id(put_sent, &l);
  if (spx_tx_waiting())
    for (uint32_t i = 0; i < spx_segment->nprocs; i++)
      for (const spx_txitem *t = spx_txs[i].pend; t; t = t->next)
        if (t->r) put_send(&l, t->r, SPX_QUEUE_NO_ROOM);
  q->entries = (uint32_t)(l.next - first);
  close_record(&q->version);
}

/* ---- beginning and end ---- */

static int begin(const spx_request *r, uint64_t since, const uint64_t *registers, bool parked)
{
  if (!row || used == (1u << SPX_DIAG_WAITS) - 1) return -1;
  int slot = __builtin_ctz(~used);
  used |= 1u << slot;
  spx_diag_wait *w = (spx_diag_wait *)(void *)(row + slot * SPX_DIAG_STRIDE);
  uint32_t version = w->version | 1;
  open_record(&w->version);
  *w = (spx_diag_wait){.version = version,
                       .fn = spx_fn,
                       .what = SPX_WAITS_EVENT,
                       .since = since,
                       .peer_rank = -1000,
                       .peer = UINT32_MAX,
                       .tag = -1000,
                       .root = -1000};
  w->parked = parked;
  w->tid = (uint32_t)syscall(SYS_gettid);
  memcpy(w->registers, registers, sizeof w->registers);
  put_wait(w, r);
  close_record(&w->version);
  put_queues();
  return slot;
}

static void end(int slot)
{
  if (slot < 0 || !row) return;
  spx_diag_wait *w = (spx_diag_wait *)(void *)(row + slot * SPX_DIAG_STRIDE);
  open_record(&w->version);
  w->fn = w->what = 0;
  close_record(&w->version);
  used &= ~(1u << slot);
}

const spx_sleep_hooks spx_diag_sleep = {begin, end};
