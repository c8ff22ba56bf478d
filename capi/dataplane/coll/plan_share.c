/* plan_share.c - the steps of a plan in the shared memory of its communicator (share.h).
 *
 * The operations of a communicator take turns: one begins when the previous one has ended here.
 * After a post, a rank checks whether a rank that waits for it sleeps; where ranks outnumber
 * processors, a fence is between, so that of a post and a sleeper's last poll one sees the other.
 * Elsewhere no rank sleeps soon, and a sleeper polls again after a while (wait.c).
 *
 * After a death, a revocation or a lack of memory no operation of the communicator can end
 * properly: waiting ranks detect this by themselves, so a run that fails need not notify them.
 */
#include "plan_run.h"
#include "reduce.h"

enum {
  FOLD_BYTES = 16384 /* of a vector that is reduced at a time: it stays in the nearest cache */
};

void spx_share_begin(spx_run *run)
{
  spx_comm *c = run->c->comm;
  run->ended = run->waited = run->asks = 0;
  run->seen = 0;
  if (SPX_UNLIKELY(!c->share)) {
    int err = spx_share_attach(c);
    if (err != MPI_SUCCESS) {
      run->ended = 1;
      run->poisoned = 1;
      spx_run_fail(run, err);
      return;
    }
  }
  spx_share *sh = c->share;
  run->tick = sh->next;
  sh->next += run->plan->ticks;
  spx_share_line *mine = &sh->lines[sh->me];
  uint32_t k = (uint32_t)run->tag % SPX_SHARE_INSIDE;
  __atomic_store_n(&mine->after[k], sh->next, __ATOMIC_RELAXED);
  __atomic_store_n(&mine->inside[k], (uint32_t)run->tag + 1, __ATOMIC_RELEASE);
  sh->behind = true;
}

static void give_up(spx_run *run, int error)
{
  if (error == MPIX_ERR_PROC_FAILED)
    spx_detail("a process of the communicator has failed; MPIX_Comm_get_failed tells which");
  if (error == MPIX_ERR_REVOKED)
    spx_detail("the communicator has been revoked (MPIX_Comm_revoke): shrink or repair it");
  if (error == MPI_ERR_NO_MEM)
    spx_detail("a process of the communicator has no memory for collectives");
  spx_run_fail(run, error);
  run->poisoned = 1;
}

/* Nothing to be seen yet: false, or true when there never will be. */
static bool not_yet(spx_run *run)
{
  spx_comm *c = run->c->comm;
  int error = spx_share_trouble(c, c->share);
  if (SPX_LIKELY(error == MPI_SUCCESS)) return false;
  give_up(run, error);
  return true;
}

static bool is_turn(const spx_run *run, spx_share *sh)
{
  return atomic_load_explicit(&sh->finished, memory_order_acquire) + 1 == run->tick;
}

/* ---- room ---- */

/* All ranks are through with tick. */
static bool all_through(spx_share *sh, uint32_t tick)
{
  if (SPX_LIKELY(!spx_share_is_before(sh->safe, tick))) return true;
  uint32_t low = sh->through;
  for (uint32_t i = 0; i < sh->n; i++) {
    uint32_t t = i == sh->me ? sh->through : spx_share_load(&sh->lines[i].through);
    if (spx_share_is_before(t, low)) low = t;
  }
  sh->safe = low;
  return !spx_share_is_before(low, tick);
}

/* The tick that all ranks must have read before the place of this one is written again. A rank that
 * has found no room waits for more of it, so that it does not check the others after each tick. */
static uint32_t wanted(const spx_run *run, const spx_share *sh, const spx_step *s, uint32_t tick)
{
  if (s->y.buf == SPX_PB_PART) return tick - SPX_SHARE_PARTS;
  uint32_t depth = run->plan->small_slots ? sh->small_depth : sh->depth;
  return tick - (run->waited ? depth / 2 : depth);
}

/* Wakes those that there is room for now, unless some rank is behind: then that one will. */
static void wake_for_room(const spx_comm *c, spx_share *sh)
{
  for (uint32_t i = 0; i < sh->n; i++) {
    const spx_share_line *l = &sh->lines[i];
    if (i == sh->me || !spx_share_load(&l->asks)) continue;
    uint32_t wants = spx_share_load(&l->wants);
    if (!spx_share_is_before(sh->through, wants) && all_through(sh, wants))
      spx_bell_if_sleeping(spx_proc_of(c->peer[i]), c->peer[i]);
  }
}

static void set_through(spx_run *run, spx_share *sh, uint32_t tick)
{
  sh->through = tick;
  __atomic_store_n(&sh->lines[sh->me].through, tick, __ATOMIC_RELEASE);
  if (spx_crowded) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (SPX_UNLIKELY(spx_share_load(&sh->head->asking))) wake_for_room(run->c->comm, sh);
}

void spx_share_passed(spx_run *run, uint32_t tick) { set_through(run, run->c->comm->share, tick); }

/* Publishes what this process has read, if it has not yet. */
static void say_through(spx_run *run, spx_share *sh)
{
  uint32_t done = atomic_load_explicit(&sh->finished, memory_order_relaxed);
  if (spx_share_is_before(sh->through, done)) set_through(run, sh, done);
}

static bool has_room(spx_run *run, spx_share *sh, const spx_step *s, uint32_t tick)
{
  if (SPX_LIKELY(all_through(sh, wanted(run, sh, s, tick)))) {
    run->waited = 0;
    return true;
  }
  if (!run->waited) say_through(run, sh);
  run->waited = 1;
  return false;
}

/* ---- posts ---- */

static bool has_posted(const spx_share *sh, uint32_t rank, uint32_t tick, bool small_slots)
{
  if (small_slots)
    return __atomic_load_n(&spx_share_small_slot(sh, rank, tick)->head, __ATOMIC_ACQUIRE) >> 32 ==
           tick;
  return spx_share_load(&spx_share_cell(sh, rank, tick)->tick) == tick;
}

/* A rank has posted, but in the other kind of place. */
static bool has_posted_otherwise(const spx_run *run, const spx_share *sh, uint32_t rank,
                                 uint32_t tick)
{
  return rank != sh->me && has_posted(sh, rank, tick, !run->plan->small_slots);
}

/* All ranks but the waiting one have posted, even if another step than it waits for: that must be
 * noticed, too. */
static bool all_posted(const spx_run *run, const spx_share *sh, uint32_t tick, uint32_t but)
{
  bool small_slots = run->plan->small_slots;
  for (uint32_t i = 0; i < sh->n; i++)
    if (i != but && !has_posted(sh, i, tick, small_slots) && !has_posted(sh, i, tick, !small_slots))
      return false;
  return true;
}

/* Wakes all sleeping ranks. A rank that goes to sleep from now on sets its flag again: it had
 * published its sleep before this word was read. */
static void wake_all(const spx_comm *c, spx_share *sh)
{
  if (__atomic_exchange_n(&sh->head->asleep, 0, __ATOMIC_SEQ_CST)) spx_share_ring(c, sh);
}

static void wake(spx_run *run, spx_share *sh, const spx_step *s, uint32_t tick)
{
  const spx_comm *c = run->c->comm;
  if (s->flags & SPX_PF_WAKE_ALL)
    wake_all(c, sh);
  else if (s->flags & (SPX_PF_WAKE_ROOT | SPX_PF_WAKE_ONE)) {
    uint32_t proc = c->peer[s->peer];
    if (__atomic_load_n(&spx_proc_of(proc)->sleeping, __ATOMIC_RELAXED) &&
        (s->flags & SPX_PF_WAKE_ONE || all_posted(run, sh, tick, (uint32_t)s->peer)))
      spx_ring_bell(proc);
  }
}

enum { LINE_SMALL_SLOTS = SPX_LINE / sizeof(spx_small_slot), AHEAD = 2 * LINE_SMALL_SLOTS };
static bool is_first_of_line(uint32_t tick) { return tick % LINE_SMALL_SLOTS == 0; }

static bool post(spx_run *run, spx_share *sh, const spx_step *s, uint32_t tick)
{
  bool bulk = s->y.buf == SPX_PB_PART;
  if (SPX_UNLIKELY(!has_room(run, sh, s, tick))) return not_yet(run);
  if (spx_is_shared(&s->y)) {
    spx_piece from = spx_run_resolve(run, &s->x), to = spx_run_resolve(run, &s->y);
    int64_t n = to.count = spx_piece_bytes(from);
    if (bulk) {
      int err = spx_share_allocate(run->c->comm, sh, tick,
                                   (uint64_t)(to.at - spx_share_part(sh, tick)), (uint64_t)n);
      if (SPX_UNLIKELY(err != MPI_SUCCESS)) return give_up(run, err), true;
    }
    if (from.type->flags & SPX_T_CONTIG && !bulk)
      spx_copy_short(to.at, from.at, (uint64_t)n);
    else if (from.type->flags & SPX_T_CONTIG && n >= (int64_t)spx_set.apart_min && !spx_crowded)
      spx_copy_into(&sh->into, to.at, from.at, (uint64_t)n, (uint64_t)n);
    else
      spx_piece_copy(from, to);
  }
  if (run->plan->small_slots) {
    spx_small_slot *small_slot = spx_share_small_slot(sh, sh->me, tick);
    __atomic_store_n(&small_slot->head,
                     spx_small_slot_head(tick, sh->through, run->plan->signature),
                     __ATOMIC_RELEASE);
    if (is_first_of_line(tick))
      __builtin_prefetch(spx_share_small_slot(sh, sh->me, tick + AHEAD), 1);
  } else {
    spx_cell *cell = spx_share_cell(sh, sh->me, tick);
    cell->signature = run->plan->signature;
    cell->through = sh->through;
    __atomic_store_n(&cell->tick, tick, __ATOMIC_RELEASE);
  }
  if (spx_crowded) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (SPX_UNLIKELY(spx_share_load(&sh->head->asleep))) wake(run, sh, s, tick);
  return true;
}

/* As the last one, this process may have to wake sleeping ranks. */
static void mismatch(spx_run *run, spx_share *sh, uint32_t rank)
{
  if (spx_share_load(&sh->head->asleep)) wake_all(run->c->comm, sh);
  spx_detail("rank %u takes part in another operation, or with another root or size of data: the "
             "calls of the processes do "
             "not match",
             rank);
  run->poisoned = 1;
  spx_run_fail(run, MPI_ERR_TRUNCATE);
}

/* A rank that only reads has found the posts there: the posting ranks run ahead, and their next
 * posts may be there, too. */
static void fetch_next(const spx_share *sh, const spx_step *s, uint32_t tick)
{
  enum { MOST = 8 };
  for (int32_t i = s->first; i < s->first + s->n && i < s->first + MOST; i++)
    __builtin_prefetch(spx_share_cell(sh, (uint32_t)i, tick + 1));
}

/* The same for small slots: the next line, when this one is written already. */
static void fetch_next_line(const spx_share *sh, const spx_step *s, uint32_t tick)
{
  enum { MOST = 8 };
  for (int32_t i = s->first; i < s->first + s->n && i < s->first + MOST; i++)
    if (has_posted(sh, (uint32_t)i, tick + LINE_SMALL_SLOTS - 1, true))
      __builtin_prefetch(spx_share_small_slot(sh, (uint32_t)i, tick + LINE_SMALL_SLOTS));
}

/* What a rank has posted in a tick: false: nothing yet. */
static bool read_post(const spx_run *run, const spx_share *sh, uint32_t rank, uint32_t tick,
                      uint32_t *through, bool *matches)
{
  uint32_t signature = run->plan->signature;
  if (run->plan->small_slots) {
    uint64_t head = __atomic_load_n(&spx_share_small_slot(sh, rank, tick)->head, __ATOMIC_ACQUIRE);
    *through = tick - (head >> 16 & 0xffff);
    *matches = (uint16_t)(head ^ spx_small_slot_head(tick, tick, signature)) == 0;
    return head >> 32 == tick;
  }
  const spx_cell *cell = spx_share_cell(sh, rank, tick);
  if (spx_share_load(&cell->tick) != tick) return false;
  *through = cell->through;
  *matches = cell->signature == signature;
  return true;
}

static bool await(spx_run *run, spx_share *sh, const spx_step *s, uint32_t tick)
{
  uint32_t i = (uint32_t)s->first + run->seen, end = (uint32_t)(s->first + s->n);
  if (run->seen == 0) run->low = sh->through;
  for (; i < end; i++) {
    if (i == sh->me) continue;
    uint32_t through;
    bool matches;
    if (!read_post(run, sh, i, tick, &through, &matches)) {
      if (SPX_UNLIKELY(run->waited && (spx_share_is_outside(&sh->lines[i], (uint32_t)run->tag) ||
                                       has_posted_otherwise(run, sh, i, tick))))
        return mismatch(run, sh, i), true;
      if (!run->waited) say_through(run, sh);
      run->seen = i - (uint32_t)s->first;
      run->waited = 1;
      return not_yet(run);
    }
    if (SPX_UNLIKELY(!matches)) return mismatch(run, sh, i), true;
    if (spx_share_is_before(through, run->low)) run->low = through;
  }
  if (end - (uint32_t)s->first == sh->n) {
    if (spx_share_is_before(sh->safe, run->low)) sh->safe = run->low;
    /* no rank was later */
    if (SPX_UNLIKELY(!run->waited && spx_share_load(&sh->head->asleep))) wake_all(run->c->comm, sh);
  }
  if (run->plan->small_slots) {
    if (!run->waited && is_first_of_line(tick)) fetch_next_line(sh, s, tick);
  } else if (!run->waited && spx_share_cell(sh, sh->me, tick)->tick != tick)
    fetch_next(sh, s, tick);
  run->seen = 0;
  run->waited = 0;
  return true;
}

/* ---- data ---- */

/* Data of several ranks: at `at`, `stride` bytes apart. */
typedef struct {
  char *at;
  int64_t stride;
} column;

/* What x is for all ranks; x->count is the distance from rank to rank. */
static column column_of(const spx_run *run, const spx_operand *x)
{
  const spx_share *sh = run->c->comm->share;
  uint32_t tick = run->tick + (uint32_t)x->b;
  if (x->buf == SPX_PB_CELL && run->plan->small_slots)
    return (column){(char *)spx_share_small_slot(sh, 0, tick)->data + x->off,
                    (int64_t)(sh->small_depth * sizeof(spx_small_slot))};
  if (x->buf == SPX_PB_CELL)
    return (column){(char *)spx_share_cell(sh, 0, tick)->data + x->off,
                    (int64_t)(sh->depth * sizeof(spx_cell))};
  column c = {spx_share_part(sh, tick) + x->off, x->count};
  if (x->mode == SPX_PM_PREFIX && x->count) c.at += run->prefix[x->a] * run->plan->unit;
  return c;
}

static void collect(spx_run *run, const spx_step *s)
{
  column from = column_of(run, &s->x);
  bool end_to_end = s->x.mode == SPX_PM_PREFIX;
  spx_operand y = s->y;
  y.a = s->first;
  spx_piece to = spx_run_resolve(run, &y);
  int64_t step = to.count * to.type->extent;
  if (y.mode == SPX_PM_FIXED) to.at += s->first * step;
  for (int32_t i = s->first; i < s->first + s->n; i++, to.at += step) {
    if (i == s->peer) continue;
    if (y.mode != SPX_PM_FIXED) {
      y.a = i;
      to = spx_run_resolve(run, &y);
      step = 0;
    }
    int64_t n = spx_piece_bytes(to);
    char *at = from.at + (end_to_end ? run->prefix[i] * run->plan->unit : i * from.stride);
    if (s->flags & SPX_PF_SHORT) {
      int64_t sent = *spx_length_before(at);
      if (SPX_UNLIKELY(sent != n)) spx_run_block_disagrees(run, (uint32_t)i, sent, n);
      if (n > run->plan->limit || sent != n) continue;
    }
    if (to.type->flags & SPX_T_CONTIG && n >= 0 && n <= 32)
      spx_copy_short(to.at, at, (uint64_t)n);
    else
      spx_piece_copy((spx_piece){at, n, spx_byte_type()}, to);
  }
}

/* From the last rank down, so that each operand is on the left of what is there. */
static void fold(spx_run *run, const spx_step *s)
{
  spx_piece y = spx_run_resolve(run, &s->y);
  column from = column_of(run, &s->x);
  spx_red_fn kernel = spx_reduce_kernel(run->c->op, y.type);
  int64_t size = y.type->size, most = FOLD_BYTES / size;
  for (int64_t at = 0; at < y.count; at += most) {
    int64_t n = y.count - at < most ? y.count - at : most;
    char *to = y.at + at * size;
    int32_t i = s->first + s->n - 1;
    const char *in = from.at + at * size + i * from.stride;
    memcpy(to, in, (size_t)(n * size));
    while (--i >= s->first) {
      in -= from.stride;
      if (SPX_LIKELY(kernel != NULL))
        kernel(in, to, n);
      else
        spx_reduce(in, to, n, y.type, run->c->op);
    }
  }
}

/* ---- steps ---- */

static bool room(spx_run *run, spx_share *sh, const spx_step *s, uint32_t tick)
{
  bool bulk = s->y.buf == SPX_PB_PART;
  if (SPX_UNLIKELY(!has_room(run, sh, s, tick))) return not_yet(run);
  if (!bulk || s->y.count == 0) return true;
  int err = spx_share_allocate(run->c->comm, sh, tick, (uint64_t)s->y.off, (uint64_t)s->y.count);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) give_up(run, err);
  return true;
}

bool spx_share_step(spx_run *run, const spx_step *s)
{
  spx_comm *c = run->c->comm;
  spx_share *sh = c->share;
  uint32_t tick = run->tick + (uint32_t)s->slot;
  if (SPX_UNLIKELY(!is_turn(run, sh))) return not_yet(run);
  if (SPX_UNLIKELY(spx_deaths != sh->seen_deaths || sh->error || c->revoked) && not_yet(run))
    return true;
  switch (s->op) {
  case SPX_P_POST: return post(run, sh, s, tick);
  case SPX_P_AWAIT: return await(run, sh, s, tick);
  case SPX_P_ROOM: return room(run, sh, s, tick);
  case SPX_P_THROUGH: set_through(run, sh, tick); return true;
  case SPX_P_COLLECT: collect(run, s); return true;
  default: fold(run, s); return true;
  }
}

bool spx_share_end(spx_run *run)
{
  spx_share *sh = run->c->comm->share;
  if (!is_turn(run, sh)) return false;
  uint32_t last = run->tick + run->plan->ticks - 1;
  if (sh->through != last && (!run->plan->small_slots || last - sh->through >= SPX_SHARE_SAYS))
    set_through(run, sh, last);
  atomic_store_explicit(&sh->finished, last, memory_order_release);
  run->ended = 1;
  return true;
}

/* ---- waiting ---- */

static const spx_step *step_of(const spx_run *run)
{
  return run->pc < run->plan->nsteps ? &run->plan->steps[run->pc] : NULL;
}

bool spx_share_ready(spx_run *run)
{
  spx_comm *c = run->c->comm;
  spx_share *sh = c->share;
  const spx_step *s = step_of(run);
  if (!is_turn(run, sh)) return false;
  if (!s || run->poisoned || spx_share_trouble(c, sh) != MPI_SUCCESS) return true;
  uint32_t tick = run->tick + (uint32_t)s->slot, next = (uint32_t)s->first + run->seen;
  if (s->op != SPX_P_AWAIT) return all_through(sh, wanted(run, sh, s, tick));
  /* it does not wait for itself */
  return next == sh->me || has_posted(sh, next, tick, run->plan->small_slots);
}

/* Whom the run waits for has gone another way. */
bool spx_share_is_parted(const spx_run *run)
{
  spx_share *sh = run->c->comm->share;
  const spx_step *s = step_of(run);
  uint32_t next = s ? (uint32_t)s->first + run->seen : 0;
  return s && s->op == SPX_P_AWAIT && run->waited && next < sh->n && is_turn(run, sh) &&
         (spx_share_is_outside(&sh->lines[next], (uint32_t)run->tag) ||
          has_posted_otherwise(run, sh, next, run->tick + (uint32_t)s->slot));
}

bool spx_share_asleep(spx_run *run)
{
  spx_share *sh = run->c->comm->share;
  const spx_step *s = step_of(run);
  if (s && !run->asks && is_turn(run, sh) && (s->op == SPX_P_POST || s->op == SPX_P_ROOM)) {
    spx_share_line *mine = &sh->lines[sh->me];
    run->asks = 1;
    __atomic_store_n(&mine->wants, wanted(run, sh, s, run->tick + (uint32_t)s->slot),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&mine->asks, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&sh->head->asking, 1, __ATOMIC_SEQ_CST);
  }
  __atomic_store_n(&sh->head->asleep, 1, __ATOMIC_SEQ_CST);
  return spx_share_ready(run);
}

void spx_share_awake(spx_run *run)
{
  spx_share *sh = run->c->comm->share;
  if (!run->asks) return;
  run->asks = 0;
  __atomic_store_n(&sh->lines[sh->me].asks, 0, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&sh->head->asking, 1, __ATOMIC_SEQ_CST);
}

/* Reports once that there is work, to the polling thread: that may be another one, which would
 * otherwise find an event every time, and never release the lock. The bell is for the sleeping
 * thread. */
static int look(spx_poller *p)
{
  spx_run *run = (spx_run *)((char *)p - offsetof(spx_run, poller));
  if (run->noticed || !spx_share_look(run)) return 0;
  run->noticed = 1;
  if (spx_mt) spx_ring_self();
  return 1;
}

void spx_share_idle(spx_run *run, spx_idle *w)
{
  enum { LOOKS = 16 };
  for (int i = 0; i < LOOKS && !spx_crowded; i++) {
    if (spx_share_ready(run)) return;
    __builtin_ia32_pause();
  }
  spx_lock();
  uint32_t bell = spx_share_load(&spx_proc_of(spx_me)->bell);
  if (spx_poll(w->empty % LOOKS == 0 || spx_crowded))
    spx_idle_again(w);
  else if (!spx_idle_parks(w))
    spx_idle_step(w, bell);
  else {
    spx_share_look_back(run->c->comm);
    run->poller.poll = look;
    run->noticed = 0;
    spx_poller_add(&run->poller);
    spx_idle_step(w, bell);
    spx_poller_del(&run->poller);
    spx_share_awake(run);
  }
  if (SPX_UNLIKELY(spx_due)) spx_run_due();
  spx_unlock();
}
