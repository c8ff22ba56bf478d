/* wait.c - progress and waiting. docs/dataplane.md, "Waiting".
 *
 * A waiting thread polls, then yields, then parks on the process's bell; idle.h decides when. The
 * sleeper sets its flag, polls once more, then sleeps for at most 1 ms the first time: a record
 * whose sender read the flag before it was set is visible by then, so senders need no fence. Then
 * it sleeps until the bell rings.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "dp.h"
#include "idle.h"
#include "progress.h"
#include "sleeper.h"

#define SETTLE_AFTER   16 /* empty rounds before held-back tails are published */
#define FIRST_SLEEP_NS 1000000ull
#define DOZE_NS        250000ull
#define DOZES          64  /* at most, before a thread looks for messages itself */
#define LEAST_YIELD    32u /* yields before parking, however often they were in vain */
/* In vain, before a process that only tests and probes yields: it may have work to do between
 * them. */
#define GLANCES 16
/* looks in vain, after which memory that was kept for messages goes back */
#define QUIET 4096
/* empty rounds before a thread passes the lock on to one that waits for it */
#define PASS_AFTER  32
#define FOREVER     UINT64_MAX
#define RESTLESS_NS 5000000ull /* where something is to be done if nothing comes */
/* how often a receiver of messages of other clusters checks that a sender is left */
#define INLETS_NS 100000000ull

uint64_t spx_events, spx_posted_count, spx_inbound_posted;
spx_progress_source spx_sources;
int (*spx_late_source)(void);
const spx_socket_sleep *spx_on_sockets;
uint32_t spx_poll_calls;
SPX_TLS spx_diag_waits spx_diag_now;
const struct spx_coll *(*spx_diag_coll_of)(const spx_request *, int32_t *tag);
const spx_sleep_hooks *spx_sleeper;
int (*spx_on_deaths)(void);
spx_ring_where spx_ring_to;
int spx_event_sleepers;
/* threads that wait and are awake: they look for messages. Counted with several threads only; under
 * the lock */
static int looking;
static int sleepers;       /* threads in the futex; written under the lock */
static SPX_TLS int i_look; /* of them: this thread, as often as it waits */
static uint32_t visits;    /* waits that have begun; written under the lock */
/* of them: those without a limit, since no thread was polling when they began; written under the
 * lock */
static int deep;
static bool told; /* all of those have been rung already: none has begun since */
/* what of spx_due some thread carries out, and no other may begin */
static int in_due;
/* this thread carries out SPX_DUE_EVENTS: where on its stack */
static SPX_TLS const char *in_events;
static spx_pace pace;

/* ---- bells ---- */

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
  return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

void spx_ring_bell(uint32_t i)
{
  if (SPX_UNLIKELY(spx_beyond_host()) && spx_on_sockets->flush(i)) return;
  uint32_t there;
  const spx_file *f = spx_place(i, &there);
  spx_proc *p = spx_file_proc(f, there);
  __atomic_fetch_add(&p->bell, 1, __ATOMIC_SEQ_CST);
  uint32_t slept = __atomic_exchange_n(&p->sleeping, 0, __ATOMIC_SEQ_CST);
  /* a thread of this process that was not notified of it */
  bool other = i == spx_me && __atomic_load_n(&sleepers, __ATOMIC_SEQ_CST);
  if (!slept && !other) return;
  /* Again: it may have begun to sleep since the first time, and be about to sleep for long. The
   * thread that clears the mark of that also prevents it. */
  __atomic_fetch_add(&p->bell, 1, __ATOMIC_SEQ_CST);
  spx_load_place was;
  bool placed = SPX_UNLIKELY(spx_ring_to != SPX_RING_ANYWHERE) && slept &&
                spx_load_place_at(i, spx_ring_to, &was);
  futex(&p->bell, FUTEX_WAKE, INT32_MAX, NULL);
  if (placed) spx_load_let_go(i, &was);
  if (slept == SPX_SLEEPS_ON_SOCKETS || (other && spx_beyond_host()))
    spx_on_sockets->wake(spx_head(f), there);
  __atomic_fetch_add(&spx_stat.wakeups, 1, __ATOMIC_RELAXED); /* also rung without the lock */
}

void spx_ring_self(void)
{
  if (spx_segment) spx_ring_bell(spx_me);
}

static uint32_t bell(void) { return __atomic_load_n(&spx_proc_of(spx_me)->bell, __ATOMIC_ACQUIRE); }

uint32_t spx_ticket(void)
{
  return bell() + (uint32_t)__atomic_load_n(&spx_events, __ATOMIC_RELAXED);
}

/* ---- progress ---- */

void spx_idle_attach(void)
{
  spx_pace_init(&pace, spx_set.spin, spx_set.spin_busy, spx_set.yield, LEAST_YIELD);
}

/* ---- polling for messages ---- */

static void tell_others(spx_proc *me)
{
  __atomic_store_n(&me->tx_blocked, spx_sources.wants_room(), __ATOMIC_RELAXED);
  __atomic_store_n(&me->sleeping, spx_beyond_host() ? SPX_SLEEPS_ON_SOCKETS : 1u, __ATOMIC_SEQ_CST);
}

/* This thread polls for messages: other processes need not ring the bell, nor wake sleeping threads
 * of this process. */
static void look(int times)
{
  if (!spx_mt || times == 0) return;
  looking += times;
  i_look += times;
  if (SPX_LIKELY(!sleepers)) return;
  spx_proc *me = spx_proc_of(spx_me);
  if (__atomic_load_n(&me->sleeping, __ATOMIC_RELAXED))
    __atomic_store_n(&me->sleeping, 0, __ATOMIC_RELAXED);
  if (deep == 0 || told) return;
  told = true; /* no other thread notifies them any more: now they doze */
  spx_ring_self();
}

/* This thread leaves, or goes to sleep. It does not say so to the other processes, which read the
 * flag with every message: those that doze find out soon. */
static void look_away(int times)
{
  if (!spx_mt || times == 0) return;
  looking -= times;
  i_look -= times;
}

/* A thread begins to wait. */
static spx_idle begin(spx_request *r)
{
  look(1);
  __atomic_store_n(&visits, visits + 1, __ATOMIC_RELAXED);
  return (spx_idle){.looks = true, .request = r, .visits = visits};
}

/* Lets other threads have the lock; pass: the first that waits for it. */
static void let_in(bool pass)
{
  if (SPX_UNLIKELY(spx_mt) && spx_lock_wanted()) spx_lock_return(spx_lock_leave(pass));
}

/* ---- what is done with no lock held ---- */

void (*spx_plan_due)(void), (*spx_ft_hook)(void), (*spx_takeover_due)(void);

void spx_due_left(const void *frame)
{
  if (!in_events || in_events > (const char *)frame) return;
  spx_lock();
  in_events = NULL;
  in_due &= ~SPX_DUE_EVENTS;
  spx_unlock();
}

/* What this thread could do now: hooks and events are not run by two threads at once, nor from
 * within themselves. Callbacks that it has left by longjmp are over. */
static int due_now(void)
{
  if (SPX_LIKELY(spx_due == 0)) return 0;
  spx_due_left(__builtin_frame_address(0));
  return spx_due & ~in_due;
}

static void carry_out(int due, spx_request *freed)
{
  if ((due & SPX_DUE_HOOK) && spx_ft_hook) spx_ft_hook();
  if ((due & SPX_DUE_PLAN) && spx_plan_due) spx_plan_due();
  if ((due & SPX_DUE_EVENTS) && spx_events_due) spx_events_due();
  if ((due & SPX_DUE_TAKEOVER) && spx_takeover_due) spx_takeover_due();
  if (freed) spx_drop_freed(freed);
}

/* Until nothing is left: meanwhile other threads may have gone to sleep because this one was
 * working on it. */
void spx_run_due(void)
{
  for (int due; (due = due_now()) != 0;) {
    /* by itself: it needs the other threads meanwhile */
    if (due != SPX_DUE_TAKEOVER) due &= ~SPX_DUE_TAKEOVER;
    int alone = due & (SPX_DUE_HOOK | SPX_DUE_EVENTS);
    spx_due &= ~due;
    in_due |= alone;
    spx_request *freed = spx_take_freed();
    const char *outer = in_events;
    if (due & SPX_DUE_EVENTS) in_events = __builtin_frame_address(0);
    int looks = i_look;
    look_away(looks);
    int d = spx_lock_leave(false);
    carry_out(due, freed);
    spx_lock_return(d);
    look(looks);
    in_due &= ~alone;
    in_events = outer;
  }
}

/* With several threads: others want the lock, and this one has polled without success for a while.
 */
static void make_way(int n)
{
  static SPX_TLS uint32_t vain;
  vain = n || !spx_lock_wanted() ? 0 : vain + 1;
  if (vain % PASS_AFTER == PASS_AFTER - 1) let_in(true);
}

int spx_poll_brief(void)
{
  if (!spx_segment) return 0;
  spx_lock();
  static uint32_t quiet;
  int n = spx_sources.poll(true);
  spx_stat.polls++;
  if (n == 0) spx_sources.settle();
  if ((quiet = n ? 0 : quiet + 1) == QUIET) spx_sources.rest();
  if (SPX_UNLIKELY(spx_due)) spx_run_due();
  if (SPX_UNLIKELY(spx_mt)) make_way(n);
  spx_unlock();
  return n;
}

int spx_progress(void)
{
  static SPX_TLS uint32_t vain;
  int n = spx_poll_brief();
  vain = n ? 0 : vain + 1;
  if (vain >= GLANCES && spx_set.spin == 0 && !(spx_mt && spx_lock_is_mine())) {
    vain = 0;
    sched_yield(); /* ranks outnumber processors: let the ranks run that have what this one waits
                      for */
  }
  return n;
}

/* ---- waiting ---- */

/* Waits in the futex; true when the time is over. */
static bool wait_on_futex(uint32_t value, uint64_t ns)
{
  struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  long rc = futex(&spx_proc_of(spx_me)->bell, FUTEX_WAIT, value, ns == FOREVER ? NULL : &t);
  return rc != 0 && errno == ETIMEDOUT;
}

/* Sleeps while other threads come again and again, and look for messages: without the lock, which
 * they have all the time. */
static bool doze_on_futex(uint32_t value, uint64_t ns)
{
  for (int i = 0; i < DOZES; i++) {
    uint32_t before = __atomic_load_n(&visits, __ATOMIC_RELAXED);
    if (!wait_on_futex(value, ns)) return false;
    if (ns < DOZE_NS || __atomic_load_n(&visits, __ATOMIC_RELAXED) == before) return true;
  }
  return true;
}

/* Sleeps until the bell is not value any more, or for ns. True when the time is over. */
static bool sleep_on_bell(spx_idle *w, uint32_t value, uint64_t ns,
                          bool (*on_futex)(uint32_t, uint64_t))
{
  __atomic_store_n(&sleepers, sleepers + 1, __ATOMIC_SEQ_CST);
  if (w->request)
    w->request->flags |= SPX_RF_AWAITED;
  else
    spx_event_sleepers++;
  bool on_sockets = looking == 0 && spx_beyond_host() && spx_on_sockets->reserve(true);
  uint64_t began = spx_now_ns();
  if (sleepers == 1) spx_stat.asleep = began;
  int d = spx_lock_leave(false);
  bool over = on_sockets ? spx_on_sockets->sleep(value, ns) : on_futex(value, ns);
  spx_lock_return(d);
  if (on_sockets) spx_on_sockets->reserve(false);
  if (w->request)
    w->request->flags &= ~(uint32_t)SPX_RF_AWAITED;
  else
    spx_event_sleepers--;
  __atomic_store_n(&sleepers, sleepers - 1, __ATOMIC_SEQ_CST);
  spx_stat.sleeps++;
  if (sleepers == 0) spx_stat.asleep = 0;
  spx_stat.sleep_ns += spx_now_ns() - began;
  return over;
}

/* Another thread looks for messages, or has begun to since this one last thought of sleeping: it
 * may come again at any time. */
static bool others_look(spx_idle *w)
{
  bool came = w->looks && w->visits != visits;
  w->visits = visits;
  return came || looking > w->looks;
}

/* Sleeps while another thread looks for messages; now: ns of the clock. */
static void doze(spx_idle *w, uint32_t value, uint64_t ns, uint64_t now)
{
  int slot = -1;
  spx_sources.settle();
  if (now - w->since > FIRST_SLEEP_NS) {
    uint64_t registers[SPX_DIAG_REGISTERS];
    spx_diag_registers(registers);
    slot = spx_sleeper->begin(w->request, w->since, registers, false);
  }
  sleep_on_bell(w, value, ns < DOZE_NS ? ns : DOZE_NS, doze_on_futex);
  spx_sleeper->end(slot);
}

static void park(spx_idle *w, uint32_t value, uint64_t ns)
{
  spx_proc *me = spx_proc_of(spx_me);
  __atomic_store_n(&me->call, spx_fn, __ATOMIC_RELAXED);
  if (spx_crowded) spx_load_note();
  tell_others(me);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  int n = spx_sources.poll(true);
  n += spx_sources.before_sleep();
  if (n == 0 && !due_now()) {
    spx_sources.settle();
    bool over = sleep_on_bell(w, value, ns < FIRST_SLEEP_NS ? ns : FIRST_SLEEP_NS, wait_on_futex);
    if (over && ns > FIRST_SLEEP_NS && __atomic_load_n(&me->sleeping, __ATOMIC_RELAXED) &&
        spx_sources.poll(true) == 0 && !due_now()) {
      spx_sources.rest();
      deep++;
      told = false;
      uint64_t registers[SPX_DIAG_REGISTERS];
      spx_diag_registers(registers);
      int slot = spx_sleeper->begin(w->request, w->since, registers, true);
      sleep_on_bell(w, value, ns == FOREVER ? ns : ns - FIRST_SLEEP_NS, wait_on_futex);
      spx_sleeper->end(slot);
      deep--;
    }
  }
  if (w->looks ||
      sleepers == 0) { /* else the others sleep on, and no thread is counted as polling */
    __atomic_store_n(&me->sleeping, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&me->tx_blocked, 0, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&me->call, 0, __ATOMIC_RELAXED);
}

/* What we did since start is over. Was the thread away from its processor meanwhile, and for
 * whom? */
static uint64_t passed(uint64_t start)
{
  uint64_t now = spx_now_ns(), ns = now - start;
  if (SPX_LIKELY(ns < SPX_IDLE_AWAY) || spx_load_foreign(now)) spx_pace_passed(&pace, now, ns);
  return now;
}

/* Polls once more after a moment. */
static void relax(spx_idle *w)
{
  if (w->empty == SETTLE_AFTER) spx_sources.settle();
  if (w->empty % (spx_poll_calls ? SPX_IDLE_LOOK_CALLS : SPX_IDLE_LOOK) == 0) {
    uint64_t before = w->looked;
    w->looked = before ? passed(before) : spx_now_ns();
    if (before) spx_stat.idle_ns += w->looked - before;
  }
  let_in(w->empty % PASS_AFTER == 0);
  __builtin_ia32_pause();
}

/* After a yield. Where ranks fill the processors, the next to run here is as a rule another rank,
 * which a third process has displaced. */
static void count_yield(void)
{
  static SPX_TLS uint32_t n;
  static SPX_TLS long before; /* times that another thread had this one's processor */
  struct rusage u;
  if (spx_ranks_here >= spx_segment->ncpus) {
    spx_pace_yielded(&pace, 0); /* there may have been fewer of them before */
    return;
  }
  if (++n % SPX_IDLE_SAMPLE != 0 || getrusage(RUSAGE_THREAD, &u) != 0) return;
  if (n > SPX_IDLE_SAMPLE) spx_pace_yielded(&pace, (uint32_t)(u.ru_nivcsw - before));
  before = u.ru_nivcsw;
}

/* One step, at most ns long. */
static void idle(spx_idle *w, uint32_t value, uint64_t ns)
{
  w->empty++;
  w->spent = spx_pace_spend(&pace, w->spent, spx_poll_calls);
  if (SPX_LIKELY(spx_pace_act(&pace, w->spent) == SPX_IDLE_POLL)) {
    relax(w);
    return;
  }
  spx_sources.settle();
  uint64_t start = spx_now_ns();
  if (SPX_UNLIKELY(pace.spin != spx_set.spin || pace.yield != spx_set.yield ||
                   pace.spin_busy != spx_set.spin_busy))
    spx_idle_attach(); /* set anew while MPI runs */
  if (SPX_UNLIKELY(pace.busy)) {
    spx_pace_refresh(&pace, start);
    if (!pace.busy) spx_load_slice(false);
  }
  /* they look for messages: no need for this one to stay awake */
  bool others = spx_mt && others_look(w);
  if (spx_pace_act(&pace, w->spent) != SPX_IDLE_PARK &&
      !(others && w->spent > pace.spin_now + LEAST_YIELD)) {
    spx_stat.yields++;
    if (spx_crowded && !pace.busy) spx_load_level(start);
    bool wanted = spx_mt && spx_lock_wanted();
    int d = spx_lock_leave(wanted);
    if (!wanted) sched_yield();
    spx_lock_return(d);
    spx_stat.idle_ns += passed(start) - start;
    if (!wanted) count_yield();
    return;
  }
  if (!w->since) w->since = start;
  if (others) {
    look_away(w->looks);
    doze(w, value, ns, start);
    look(w->looks);
    return;
  }
  if (pace.busy) spx_load_slice(true);
  look_away(w->looks);
  park(w, value, ns);
  look(w->looks);
  spx_pace_slept(&pace, spx_now_ns() - start);
  spx_idle_again(w);
  if (pace.busy) spx_load_spread(start);
}

bool spx_idle_parks(const spx_idle *w)
{
  if (SPX_UNLIKELY(pace.spin != spx_set.spin || pace.yield != spx_set.yield ||
                   pace.spin_busy != spx_set.spin_busy))
    spx_idle_attach();
  return spx_pace_act(&pace, spx_pace_spend(&pace, w->spent, spx_poll_calls)) == SPX_IDLE_PARK;
}

void spx_idle_step(spx_idle *w, uint32_t value) { idle(w, value, FOREVER); }

int spx_wait_blocked(const spx_request *r)
{
  return spx_ndead && r->kind == SPX_R_RECV && r->state == SPX_S_POSTED &&
         r->want_src == MPI_ANY_SOURCE && spx_wild_blocked(r->comm);
}

uint32_t spx_restless;

/* How long to sleep at most if nothing happens. */
static uint64_t longest(void)
{
  if (SPX_UNLIKELY(spx_restless != 0)) return RESTLESS_NS;
  return SPX_UNLIKELY(spx_inbound_posted != 0) ? INLETS_NS : FOREVER;
}

static int wait_for(spx_request *r)
{
  spx_idle w = begin(r);
  for (;;) {
    uint32_t value = bell();
    if (spx_is_done(r)) return MPI_SUCCESS;
    int n = spx_sources.poll(w.spent >= pace.spin_now);
    if (SPX_UNLIKELY(due_now())) {
      spx_run_due();
      n = 1; /* it may have completed r without a bell: no thread slept */
    }
    if (n) {
      spx_idle_again(&w);
      let_in(false);
    } else if (SPX_FAILED(spx_wait_blocked(r)))
      return MPIX_ERR_PROC_FAILED_PENDING;
    else
      idle(&w, value, longest());
  }
}

int spx_wait(spx_request *r)
{
  if (!spx_is_done(r)) {
    spx_lock();
    int err = wait_for(r);
    look_away(1);
    if (SPX_UNLIKELY(spx_due)) spx_run_due(); /* from a poll before sleeping or yielding */
    spx_unlock();
    if (SPX_UNLIKELY(err != MPI_SUCCESS)) {
      spx_detail(
          "a process that could send the message has failed; acknowledge the failure to go on");
      return err;
    }
  }
  if (SPX_UNLIKELY(r->error != MPI_SUCCESS)) spx_request_detail(r);
  return r->error;
}

void spx_wait_event(uint32_t ticket, uint64_t deadline_ns)
{
  spx_lock();
  spx_idle w = begin(NULL);
  for (;;) {
    uint32_t value = bell();
    if (spx_ticket() != ticket) break;
    uint64_t left = longest();
    if (deadline_ns) {
      uint64_t now = spx_now_ns();
      if (now >= deadline_ns) break;
      if (deadline_ns - now < left) left = deadline_ns - now;
    }
    int n = spx_sources.poll(w.spent >= pace.spin_now);
    if (SPX_UNLIKELY(spx_due)) spx_run_due();
    if (n)
      let_in(false);
    else if (spx_ticket() == ticket)
      idle(&w, value, left);
  }
  look_away(1);
  if (SPX_UNLIKELY(spx_due)) spx_run_due();
  spx_unlock();
}

/* ---- turns ----
 * Ranks outnumber processors, and this one has what it waited for: it returns to compute, and the
 * other ranks of its processor are blocked meanwhile. If they have not yet sent what their partners
 * on other processors wait for, these are blocked as well. So a rank that has not yielded while it
 * waited, and that computed for long after such calls before, yields now. */

#define TURN_LONG 50000 /* cycles of computation that are worth a yield: some 20 us */
/* longer ones count as that long: one of them predicts little about the next */
#define TURN_MOST 5000000

static struct {
  uint64_t left;  /* when the last call ended, in cycles */
  spx_turn kind;  /* of that call */
  uint64_t waits; /* yields and sleeps so far, when this call began */
  /* cycles from the end of such a call to the next call that waits, on average */
  int64_t computes[SPX_TURNS];
} turn;

void spx_turn_taken(void)
{
  int64_t cycles = (int64_t)(spx_cycles() - turn.left), *average = &turn.computes[turn.kind];
  *average += ((cycles < TURN_MOST ? cycles : TURN_MOST) - *average) / 4;
  turn.waits = spx_stat.yields + spx_stat.sleeps;
}

void spx_turn_over(spx_turn kind)
{
  if (turn.computes[kind] > TURN_LONG && kind != SPX_TURN_OTHER &&
      turn.waits == spx_stat.yields + spx_stat.sleeps && !pace.busy && !spx_mt) {
    uint64_t start = spx_now_ns();
    spx_stat.yields++;
    sched_yield();
    passed(start);
  }
  turn.kind = kind;
  turn.left = spx_cycles();
}
