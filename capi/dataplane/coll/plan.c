/* plan.c - runs plans (plan.h): binds buffers and counts, starts transfers in order, waits where
 * the plan requires it. */
#include <stdlib.h>
#include <string.h>
#include "basic.h"
#include "other_way.h"
#include "plan_run.h"
#include "sleeper.h"

enum {
  SMALL_TEMP = 16384, /* bytes of temporary memory that an idle run keeps */
  /* a run of more bytes is not kept: with a thousand ranks each would have megabytes */
  IDLE_RUN = 65536,
  ALIGN = 64
};

/* ---- plans ---- */

spx_plan *spx_plan_new(uint32_t nsteps, uint32_t nwaits, uint32_t nslots, uint32_t nregions)
{
  size_t steps = nsteps * sizeof(spx_step), regions = nregions * sizeof(spx_region),
         waits = nwaits * sizeof(int32_t);
  spx_plan *p = calloc(1, sizeof *p + steps + regions + waits);
  if (!p) return NULL;
  atomic_store_explicit(&p->refs, 1, memory_order_relaxed);
  p->nsteps = nsteps;
  p->nslots = nslots;
  p->nregions = nregions;
  p->steps = (spx_step *)(p + 1);
  p->regions = (spx_region *)(p->steps + nsteps);
  p->waits = (int32_t *)(p->regions + nregions);
  return p;
}

size_t spx_plan_bytes(const spx_plan *p) { return sizeof *p + p->nsteps * sizeof(spx_step); }

static void free_run(spx_run *run)
{
  if (run->temp) spx_temp_put(run->temp, run->temp_bytes);
  free(run);
}

void spx_plan_unref(spx_plan *p)
{
  if (!p) return;
  if (SPX_UNLIKELY(spx_mt)) {
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
  } else {
    int32_t left = atomic_load_explicit(&p->refs, memory_order_relaxed) - 1;
    atomic_store_explicit(&p->refs, left, memory_order_relaxed);
    if (SPX_LIKELY(left > 0)) return;
  }
  if (p->idle) free_run(p->idle);
  free(p);
}

/* ---- binding ---- */

/* Datatype i of a w form; where the count is 0, anything may stand there. */
static spx_type *type_at(const MPI_Datatype *types, spx_type *const *held, int i)
{
  spx_type *t = held ? held[i] : (spx_type *)spx_get(SPX_K_TYPE, types[i]);
  return SPX_LIKELY(t != NULL) ? t : spx_byte_type();
}

/* A place in shared memory: of as many bytes as the other side has, if the ref does not say. */
static spx_piece shared(const spx_run *run, const spx_operand *f)
{
  const spx_share *sh = run->c->comm->share;
  uint32_t tick = run->tick + (uint32_t)f->b;
  spx_type *t = f->type == SPX_PT_BYTE   ? spx_byte_type()
                : f->type == SPX_PT_SEND ? run->c->stype
                                         : run->c->rtype;
  if (f->buf == SPX_PB_CELL) {
    char *data = run->plan->small_slots
                     ? (char *)spx_share_small_slot(sh, (uint32_t)f->a, tick)->data
                     : (char *)spx_share_cell(sh, (uint32_t)f->a, tick)->data;
    return (spx_piece){data + f->off, f->count, t};
  }
  spx_piece p = {spx_share_part(sh, tick) + f->off, f->count, t};
  if (f->mode == SPX_PM_PREFIX) p.at += run->prefix[f->a] * run->plan->unit;
  return p;
}

/* The lengths of the blocks of a row (core/coll.Row), which stand before them. */
static int64_t *lengths_of(const spx_run *run, const spx_operand *f)
{
  return (int64_t *)(void *)(run->base[f->buf] + f->off);
}

/* Block a of a row of b; with a = b the whole row. A block above the limit is not there. */
static spx_piece in_row(const spx_run *run, const spx_operand *f)
{
  const int64_t *n = lengths_of(run, f);
  uint64_t limit = (uint64_t)run->plan->limit, end = (uint64_t)f->b * sizeof *n;
  for (int32_t i = 0; i < f->a; i++)
    if ((uint64_t)n[i] <= limit) end += ((uint64_t)n[i] + 7) & ~(uint64_t)7;
  if (f->a == f->b) return (spx_piece){(char *)(uintptr_t)n, (int64_t)end, spx_byte_type()};
  return (spx_piece){(char *)(uintptr_t)n + end, (uint64_t)n[f->a] <= limit ? n[f->a] : 0,
                     spx_byte_type()};
}

/* Where a ref is, once the caller's arrays are known. */
spx_piece spx_run_resolve(const spx_run *run, const spx_operand *f)
{
  const spx_coll *c = run->c;
  int sends = f->buf == SPX_PB_SEND;
  if (spx_is_shared(f)) return shared(run, f);
  if (f->mode == SPX_PM_ROW) return in_row(run, f);
  spx_type *t = f->type == SPX_PT_BYTE   ? spx_byte_type()
                : f->type == SPX_PT_SEND ? c->stype
                                         : c->rtype;
  spx_piece p = {run->base[f->buf] + f->off, f->count, t};
  if (SPX_LIKELY(f->mode == SPX_PM_FIXED)) return p;
  if (f->mode == SPX_PM_OWN)
    p.count = sends ? c->sown : c->rown;
  else if (f->mode == SPX_PM_COUNT)
    p.count = spx_array_at(c->rcounts, f->a);
  else if (f->mode == SPX_PM_PREFIX) {
    int64_t unit = f->type == SPX_PT_BYTE ? run->plan->unit : t->extent;
    p.at += run->prefix[f->a] * unit;
    p.count = (run->prefix[f->b] - run->prefix[f->a]) * (f->type == SPX_PT_BYTE ? unit : 1);
  } else {
    const MPI_Datatype *types = sends ? c->stypes : c->rtypes;
    int64_t at = spx_array_at(sends ? c->sdispls : c->rdispls, f->a);
    if (types) p.type = type_at(types, sends ? c->sheld : c->rheld, f->a);
    p.at = run->base[f->buf] + (types ? at : at * t->extent);
    p.count = spx_array_at(sends ? c->scounts : c->rcounts, f->a);
  }
  return p;
}

static int64_t count_of(const spx_coll *c, uint32_t i)
{
  int64_t n = spx_array_at(c->rcounts, i);
  return c->rtypes ? (n ? n * type_at(c->rtypes, c->rheld, (int)i)->size : 0) : n;
}

static size_t rounded(int64_t bytes) { return ((size_t)bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1); }

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Gives the run its temporary memory and the sums of counts. */
static int bind(spx_run *run)
{
  const spx_plan *p = run->plan;
  int64_t total = 0;
  size_t bytes = 0;
  for (uint32_t i = 0; i < p->nprefix; i++) total += count_of(run->c, i);
  if (p->nprefix) bytes += rounded((p->nprefix + 1) * 8);
  for (uint32_t i = 0; i < p->nregions; i++)
    bytes += rounded(p->regions[i].fixed + magnitude(p->regions[i].per_unit) * total);
  if (bytes > run->temp_bytes || (!run->temp && bytes)) {
    if (run->temp) spx_temp_put(run->temp, run->temp_bytes);
    run->temp_bytes = 0;
    run->temp = spx_temp_get(bytes);
    if (!run->temp) {
      spx_detail("no memory for %zu bytes of temporary data", bytes);
      return MPI_ERR_NO_MEM;
    }
    run->temp_bytes = bytes;
  }
  char *at = run->temp;
  if (p->nprefix) {
    run->prefix = (int64_t *)at;
    at += rounded((p->nprefix + 1) * 8);
    run->prefix[0] = 0;
    for (uint32_t i = 0; i < p->nprefix; i++)
      run->prefix[i + 1] = run->prefix[i] + count_of(run->c, i);
  }
  for (uint32_t i = 0; i < p->nregions; i++) {
    int64_t unit = p->regions[i].per_unit;
    run->base[SPX_PB_TEMP + i] = at + (unit < 0 ? -unit * total : 0);
    at += rounded(p->regions[i].fixed + magnitude(unit) * total);
  }
  run->base[SPX_PB_SEND] = (char *)(uintptr_t)run->c->send;
  run->base[SPX_PB_RECV] = run->c->recv;
  return MPI_SUCCESS;
}

int spx_run_new(spx_plan *p, const spx_coll *c, int32_t tag, spx_run **out)
{
  spx_lock();
  spx_run *run = p->idle;
  p->idle = NULL;
  spx_stat.collectives++;
  spx_unlock();
  if (!run) {
    run = calloc(1, sizeof *run + p->nslots * sizeof(spx_transfer));
    if (!run) {
      spx_detail("no memory for %u transfers", p->nslots);
      return MPI_ERR_NO_MEM;
    }
  }
  run->plan = p;
  run->c = c;
  run->pc = run->settled = 0;
  run->error = MPI_SUCCESS;
  run->tag = tag;
  run->poisoned = run->busy = 0;
  run->differs = -1;
  run->user = NULL;
  spx_plan_ref(p);
  int err = bind(run);
  *out = run;
  if (SPX_LIKELY(err == MPI_SUCCESS)) {
    if (p->ticks)
      spx_share_begin(run);
    else if (p->nslots)
      spx_share_outside(run);
    return err;
  }
  if (p->ticks) spx_share_break(c->comm);
  spx_plan_unref(p);
  free_run(run);
  return err;
}

void spx_run_end(spx_run *run)
{
  spx_plan *p = run->plan;
  if (run->temp_bytes > SMALL_TEMP) {
    spx_temp_put(run->temp, run->temp_bytes);
    run->temp = NULL;
    run->temp_bytes = 0;
  }
  spx_run *spare = run;
  if (p->nslots * sizeof(spx_transfer) <= IDLE_RUN) {
    spx_lock();
    spare = p->idle;
    p->idle = run;
    spx_unlock();
  }
  if (spare) free_run(spare);
  spx_plan_unref(p);
}

/* ---- steps ---- */

/* The number of bytes to send in place of `expected` to report that amounts differ: one that no
 * rank expects. A message without data stays without. */
static int64_t told(const spx_run *run, int64_t expected)
{
  int64_t n = expected != 0;
  while (n && (n == expected || n == run->differs)) n++;
  return n;
}

void spx_run_start(spx_run *run, const spx_step *s)
{
  spx_transfer *x = &run->xfer[s->slot];
  spx_request *r = &x->r;
  spx_comm *c = run->c->comm;
  spx_piece p = spx_run_resolve(run, &s->x);
  x->expect = p.count * p.type->size;
  x->seen = 0;
  x->most = s->flags & SPX_PF_MOST;
  x->sent = -1;
  int is_long = s->flags & SPX_PF_LONG;
  if ((s->x.mode != SPX_PM_FIXED && x->expect == 0) ||
      (is_long && !(s->flags & SPX_PF_TAKE) && x->expect <= run->plan->limit)) {
    r->error = MPI_SUCCESS;
    x->seen = 1;
    atomic_store_explicit(&r->done, 1, memory_order_relaxed);
    return;
  }
  int sends = s->op == SPX_P_SEND, local = s->flags & SPX_PF_LOCAL;
  if (SPX_UNLIKELY(run->poisoned || run->differs >= 0) && sends) {
    p.type = spx_byte_type();
    p.count = run->poisoned ? x->expect == 0 : told(run, x->expect);
    p.at = (char *)run;
  }
  r->kind = sends ? SPX_R_SEND : SPX_R_RECV;
  r->mode = SPX_M_STANDARD;
  r->flags = SPX_RF_INTERNAL;
  atomic_store_explicit(&r->done, 0, memory_order_relaxed);
  r->error = MPI_SUCCESS;
  r->src = r->want_src = s->peer;
  r->tag = r->want_tag = run->tag | (local ? SPX_PLAN_LOCAL_TAG : 0) |
                         (is_long && !run->plan->ticks ? SPX_PLAN_LONG_TAG : 0);
  r->bytes = 0;
  r->full = 0;
  r->buf = p.at;
  r->count = p.count;
  r->type = p.type;
  r->comm = c;
  r->ctx = c->ctx + SPX_CTX_COLL;
  r->ctx_kind = SPX_CTX_COLL;
  r->peer = (local ? c->local : c->peer)[s->peer];
  r->state = SPX_S_NONE;
  r->id_slot = 0;
  spx_lock();
  if (sends)
    spx_send_start(r);
  else
    spx_recv_start(r);
  spx_unlock();
}

void spx_run_fail(spx_run *run, int error)
{
  if (run->error == MPI_SUCCESS) run->error = error;
  if (error == MPIX_ERR_PROC_FAILED || error == MPIX_ERR_REVOKED ||
      error == MPIX_ERR_PROC_FAILED_PENDING)
    run->poisoned = 1;
}

/* Fails the run because a peer used another size; where sizes must be equal, peers are notified. */
static void differ(spx_run *run, int64_t bytes)
{
  int kind = run->plan->key.kind;
  if (run->differs < 0 &&
      (kind == SPX_COLL_BCAST || kind == SPX_COLL_REDUCE || kind == SPX_COLL_ALLREDUCE))
    run->differs = bytes;
  spx_run_fail(run, MPI_ERR_TRUNCATE);
}

void spx_run_disagrees(spx_run *run, int from, int64_t sent, int64_t expected)
{
  spx_detail("rank %d sends %lld bytes to rank %d, which expects %lld bytes: the counts and "
             "datatypes of the processes do "
             "not match",
             from, (long long)sent, run->c->comm->rank, (long long)expected);
  differ(run, sent);
}

/* The transfers of blocks that do not fit come first in a plan, the one from the rank before this
 * one first. If the ends disagree whether the block fits, one of them has begun a message: a
 * receive with no sender is cancelled, and a message with no receive is received and dropped. */
void spx_run_block_disagrees(spx_run *run, uint32_t from, int64_t sent, int64_t expected)
{
  uint32_t me = (uint32_t)run->c->comm->rank, n = (uint32_t)run->c->comm->size;
  int64_t limit = run->plan->limit;
  if (from == me || (sent <= limit && expected <= limit))
    return spx_run_disagrees(run, (int)from, sent, expected);
  spx_transfer *x = &run->xfer[(me - from + n) % n - 1];
  if (sent <= limit)
    spx_cancel(&x->r);
  else if (expected <= limit) {
    spx_step taken = {.op = SPX_P_RECV,
                      .flags = SPX_PF_LONG | SPX_PF_TAKE,
                      .peer = (int32_t)from,
                      .slot = (int32_t)(x - run->xfer)};
    taken.x = (spx_operand){.buf = SPX_PB_RECV, .type = SPX_PT_BYTE};
    spx_run_start(run, &taken);
  }
  x->sent = sent; /* it is notified when the transfer is over */
  x->expect = expected;
}

/* Processes the outcome of a transfer. */
static void settle(spx_run *run, spx_transfer *x)
{
  if (SPX_LIKELY(x->seen)) return;
  x->seen = 1;
  spx_request *r = &x->r;
  int receives = r->kind == SPX_R_RECV;
  if (SPX_UNLIKELY(x->sent >= 0)) return spx_run_disagrees(run, r->want_src, x->sent, x->expect);
  if (SPX_LIKELY(r->error == MPI_SUCCESS && (!receives || r->bytes == x->expect))) return;
  if (x->most && r->error == MPI_SUCCESS && r->bytes > 0) return;
  if (receives && r->error == MPI_SUCCESS && r->bytes == 0 &&
      spx_share_parted(run, (uint32_t)r->want_src))
    return;
  if (receives && x->expect == 0 && r->error == MPI_ERR_TRUNCATE)
    r->error = MPIX_ERR_PROC_FAILED;
  else if (receives && r->error == MPI_SUCCESS && r->bytes == 0)
    r->error = MPIX_ERR_PROC_FAILED;
  else if (receives && r->error == MPI_SUCCESS) {
    const char *or_told = r->bytes <= 3 ? ", or was told of a mismatch," : "";
    spx_detail("rank %d sent %lld bytes%s where this process expects %lld: the counts and "
               "datatypes of the processes do "
               "not match",
               r->want_src, (long long)r->bytes, or_told, (long long)x->expect);
    differ(run, r->bytes);
    return;
  } else if (receives && r->error == MPI_ERR_TRUNCATE) {
    spx_request_detail(r);
    differ(run, (int64_t)r->full);
    return;
  } else {
    spx_request_detail(r);
    spx_run_fail(run, r->error);
    return;
  }
  spx_detail("rank %d reports that a process has failed", r->want_src);
  spx_run_fail(run, r->error);
}

/* Copies between datatypes; one of them is mostly without gaps. */
void spx_piece_copy(spx_piece from, spx_piece to)
{
  int64_t n = from.count * from.type->size, room = to.count * to.type->size;
  if (n > room) n = room;
  if (n == 0) return;
  int plain_from = from.type->flags & SPX_T_CONTIG, plain_to = to.type->flags & SPX_T_CONTIG;
  if (plain_from && plain_to) {
    if (from.at != to.at) memmove(to.at, from.at, (size_t)n);
  } else
    spx_copy_typed(to.at, to.count, to.type, 0, from.at, from.count, from.type, 0, n);
}

/* Adds a block to a row, those before it being there: the caller's, or one of another row. */
static void put_in_row(spx_run *run, const spx_step *s)
{
  spx_piece from = spx_run_resolve(run, &s->x);
  lengths_of(run, &s->y)[s->y.a] =
      s->x.mode == SPX_PM_ROW ? lengths_of(run, &s->x)[s->x.a] : spx_piece_bytes(from);
  spx_piece_copy(from, spx_run_resolve(run, &s->y));
}

/* Takes the block that has come in a row. */
static void take(spx_run *run, const spx_step *s, spx_piece from, spx_piece to)
{
  int64_t n = spx_piece_bytes(to), sent = lengths_of(run, &s->x)[s->x.a];
  if (SPX_UNLIKELY(sent != n))
    spx_run_block_disagrees(run, (uint32_t)s->peer, sent, n);
  else
    spx_piece_copy(from, to);
}

static void copy(spx_run *run, const spx_step *s)
{
  if (s->y.mode == SPX_PM_ROW) {
    put_in_row(run, s);
    return;
  }
  spx_piece from = spx_run_resolve(run, &s->x), to = spx_run_resolve(run, &s->y);
  if (s->flags & SPX_PF_TAKE) {
    take(run, s, from, to);
    return;
  }
  bool from_shared = spx_is_shared(&s->x), to_shared = spx_is_shared(&s->y);
  int64_t n = spx_piece_bytes(from_shared ? to : from);
  bool plain = to.type->flags & SPX_T_CONTIG &&
               (from_shared || (from.type->flags & SPX_T_CONTIG && n == spx_piece_bytes(to)));
  if (plain && n >= 0 && n <= 32 && !s->flags) {
    spx_copy_short(to.at, from.at, (uint64_t)n);
    return;
  }
  if (s->flags & SPX_PF_SHORT) *spx_length_before(to.at) = n;
  if (s->flags && (n > run->plan->limit) == !!(s->flags & SPX_PF_SHORT)) return;
  if (from_shared) from.count = n;
  if (to_shared) to.count = n;
  spx_piece_copy(from, to);
}

static void reduce(spx_run *run, const spx_step *s)
{
  spx_piece in = spx_run_resolve(run, &s->x), inout = spx_run_resolve(run, &s->y);
  int err = spx_reduce(in.at, inout.at, in.count, in.type, run->c->op);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) spx_run_fail(run, err);
}

/* The first transfer of a wait step that is not complete, or NULL. */
static spx_transfer *pending(spx_run *run, const spx_step *s)
{
  const int32_t *slots = run->plan->waits + s->first;
  for (int32_t i = 0; i < s->n; i++) {
    spx_transfer *x = &run->xfer[slots[i]];
    if (!spx_is_done(&x->r)) return x;
  }
  for (int32_t i = 0; i < s->n; i++) settle(run, &run->xfer[slots[i]]);
  return NULL;
}

/* The run waits for a message that will never come: the receive is taken back. Looked after once
 * for each message. */
static bool is_left_alone(spx_run *run)
{
  spx_transfer *x = run->blocked;
  if (SPX_LIKELY(!run->c->comm->share || x == run->asked)) return false;
  run->asked = x;
  spx_share_look_back(run->c->comm);
  if (x->r.kind != SPX_R_RECV || SPX_LIKELY(!spx_share_parted(run, (uint32_t)x->r.want_src)))
    return false;
  spx_lock();
  if (x->r.state == SPX_S_POSTED) {
    spx_unpost(&x->r);
    x->r.state = SPX_S_NONE;
    x->seen = 1; /* its error has been reported */
    spx_complete(&x->r, MPI_ERR_TRUNCATE);
  }
  spx_unlock();
  return spx_is_done(&x->r);
}

static bool advance(spx_run *run)
{
  const spx_plan *p = run->plan;
  for (; run->pc < p->nsteps; run->pc++) {
    const spx_step *s = &p->steps[run->pc];
    switch (s->op) {
    case SPX_P_SEND:
    case SPX_P_RECV: spx_run_start(run, s); break;
    case SPX_P_WAIT: {
      while ((run->blocked = pending(run, s)) != NULL)
        if (!is_left_alone(run)) return false;
      break;
    }
    case SPX_P_COPY:
      if (!run->poisoned) copy(run, s);
      break;
    case SPX_P_REDUCE:
      if (!run->poisoned) reduce(run, s);
      break;
    default:
      if (!run->poisoned && !spx_share_step(run, s)) {
        run->blocked = NULL;
        return false;
      }
    }
  }
  if (p->ticks && !run->ended && !spx_share_end(run)) {
    run->blocked = NULL;
    return false;
  }
  for (; run->settled < p->nslots; run->settled++) {
    spx_transfer *x = &run->xfer[run->settled];
    if (!spx_is_done(&x->r)) {
      run->blocked = x;
      if (!is_left_alone(run)) return false;
    }
    settle(run, x);
  }
  return true;
}

/* Short messages to several are written to the sockets when all are ready: what one writes them
 * from stays in the caches for the next. Of longer ones the first is to be on its way while the
 * next is copied. */
static bool writes_together(const spx_plan_key *k)
{
  enum { SHORT = 4096 };
  bool same = k->kind == SPX_COLL_BCAST || k->kind == SPX_COLL_BARRIER ||
              k->kind == SPX_COLL_REDUCE || k->kind == SPX_COLL_ALLREDUCE;
  return same && k->scount * k->s[0] <= SHORT && k->rcount * k->r[0] <= SHORT;
}

bool spx_run_advance(spx_run *run)
{
  if (SPX_LIKELY(!spx_network)) return advance(run);
  void (*gather)(int) =
      writes_together(&run->plan->key) ? spx_network->together : spx_network->gather;
  gather(1);
  bool done = advance(run);
  gather(-1);
  return done;
}

/* ---- blocking ---- */

int spx_plan_run(spx_plan *p, const spx_coll *c)
{
  spx_run *run;
  int err = spx_run_new(p, c, spx_plan_tag(c->comm), &run);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) return err;
  spx_idle w = {0};
  spx_turn_begin();
  for (uint32_t at = 0; !spx_run_advance(run); at = run->pc) {
    if (run->pc != at) w.since = 0, spx_idle_again(&w);
    spx_diag_now.fn = spx_fn;
    spx_diag_now.run = run;
    if (run->blocked)
      spx_wait(&run->blocked->r);
    else
      spx_share_idle(run, &w);
    spx_diag_now.run = NULL;
  }
  spx_turn_end(SPX_TURN_OTHER);
  if (SPX_UNLIKELY(c->comm->flags & SPX_C_REPLAY)) spx_other->collected();
  err = run->error;
  spx_run_end(run);
  return err;
}
