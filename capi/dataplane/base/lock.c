/* lock.c - the lock of the data plane with MPI_THREAD_MULTIPLE: recursive, and no thread waits for
 * it for ever.
 *
 * A thread that finds it free takes it, even before threads that wait: a running thread continues
 * at once, and waking another for every message would cost more than the messages. But a thread
 * that has waited for HAND_OVER_NS gets the lock from its holder directly, and so does the first
 * waiting thread when the holder has nothing to do (spx_lock_pass). MPI-5.0 11.6.1: calls of other
 * threads progress. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "dp.h"

#define HAND_OVER_NS 500000u /* less than a time slice */
#define LOOK_EVERY   8u      /* releases between readings of the clock, while threads wait */

typedef struct waiter {
  struct waiter *next;
  uint64_t since; /* ns */
  uint32_t state; /* ASLEEP, or what it was woken for: the futex word */
} waiter;
enum { ASLEEP, TRY, OWNER };

int spx_due; /* work deferred until no lock is held */
static uint32_t held;
static uint32_t contenders; /* in the queue */
/* the first in the queue has been woken to try, and has not tried yet */
static uint32_t first_awake;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static waiter *first, **last = &first; /* under queue_lock, as all changes of the two above */
static SPX_TLS waiter self;
static SPX_TLS int depth;
static uint32_t releases; /* by holders, while threads wait */

static bool try(void)
{
  uint32_t is = 0;
  return __atomic_load_n(&held, __ATOMIC_RELAXED) == 0 &&
         __atomic_compare_exchange_n(&held, &is, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void leave_queue(waiter *w)
{
  waiter **p = &first;
  while (*p != w) p = &(*p)->next;
  if (p == &first) __atomic_store_n(&first_awake, 0, __ATOMIC_SEQ_CST);
  *p = w->next;
  if (last == &w->next) last = p;
  __atomic_fetch_sub(&contenders, 1, __ATOMIC_SEQ_CST);
}

static void wait_in_queue(void)
{
  self = (waiter){.since = spx_now_ns()};
  pthread_mutex_lock(&queue_lock);
  *last = &self;
  last = &self.next;
  __atomic_fetch_add(&contenders, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&queue_lock);
  while (!try()) {
    syscall(SYS_futex, &self.state, FUTEX_WAIT_PRIVATE, ASLEEP, NULL, NULL, 0);
    uint32_t was = TRY;
    if (__atomic_compare_exchange_n(&self.state, &was, ASLEEP, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
      /* before trying: a release after this wakes again */
      __atomic_store_n(&first_awake, 0, __ATOMIC_SEQ_CST);
    else if (was == OWNER)
      return; /* and out of the queue */
  }
  pthread_mutex_lock(&queue_lock);
  leave_queue(&self);
  pthread_mutex_unlock(&queue_lock);
}

/* Wakes the first waiting thread: as the owner, if pass is set or it has waited for long; else to
 * try. True: it is the owner now. */
static bool wake_first(bool pass)
{
  pthread_mutex_lock(&queue_lock);
  waiter *w = first;
  bool over = false, wake = false;
  if (w) {
    over = pass;
    wake = over || __atomic_load_n(&w->state, __ATOMIC_RELAXED) == ASLEEP;
    if (over)
      leave_queue(w);
    else if (wake)
      __atomic_store_n(&first_awake, 1, __ATOMIC_SEQ_CST);
    if (wake) __atomic_store_n(&w->state, over ? OWNER : TRY, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&queue_lock);
  if (wake) syscall(SYS_futex, &w->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  return over;
}

static bool waited_long(void)
{
  if (++releases % LOOK_EVERY) return false;
  pthread_mutex_lock(&queue_lock);
  uint64_t since = first ? first->since : UINT64_MAX;
  pthread_mutex_unlock(&queue_lock);
  return since != UINT64_MAX && spx_now_ns() - since > HAND_OVER_NS;
}

static void release(bool pass)
{
  SPX_ASSERT(__atomic_load_n(&held, __ATOMIC_RELAXED) == 1);
  bool others = __atomic_load_n(&contenders, __ATOMIC_RELAXED) != 0;
  if (SPX_UNLIKELY(others) && (pass || waited_long()) && wake_first(true)) return;
  __atomic_store_n(&held, 0, __ATOMIC_SEQ_CST);
  if (SPX_UNLIKELY(__atomic_load_n(&contenders, __ATOMIC_SEQ_CST)) &&
      !__atomic_load_n(&first_awake, __ATOMIC_SEQ_CST))
    wake_first(false);
}

void spx_lock_slow(void)
{
  if (depth++ == 0 && !try()) wait_in_queue();
}

void spx_unlock_slow(void)
{
  SPX_ASSERT(depth > 0);
  if (--depth == 0) release(false);
}

bool spx_lock_is_mine(void) { return depth > 0; }

bool spx_lock_wanted(void) { return __atomic_load_n(&contenders, __ATOMIC_RELAXED) != 0; }

int spx_lock_leave(bool pass)
{
  int d = depth;
  if (d > 0) {
    depth = 0;
    release(pass);
  }
  return d;
}

void spx_lock_return(int d)
{
  SPX_ASSERT(d >= 0 && depth == 0);
  if (d > 0 && !try()) wait_in_queue();
  depth = d;
}
