/* idle.h - for how long a waiting thread polls, yields, and when it parks. docs/decisions/smp.md,
 * "Waiting".
 *
 * Decides only: time is an argument, nothing here waits. Polling is right while the partner runs
 * too. It is wrong as soon as another process could use the processor: then it delays the partner,
 * or uses up the time slice that is needed when the message arrives. The signs: the clock jumps
 * while we poll, or a yield returns late. Then the processors are *busy* for a while: polling is
 * short, and parking follows at once, since a yield would give a whole time slice to a foreign
 * process. As long as yields return at once no other process wants the processor, and there is no
 * hurry to release it: parking makes the kernel move the partner here. */
#ifndef SPX_IDLE_H
#define SPX_IDLE_H
#include <stdbool.h>
#include <stdint.h>

#define SPX_IDLE_LOOK       64u /* empty polls between readings of the clock */
#define SPX_IDLE_LOOK_CALLS 4u  /* the same where each makes system calls */
/* ns: a thread that was away for so long has lost its processor to a time slice */
#define SPX_IDLE_AWAY 500000u
#define SPX_IDLE_BUSY                                                                              \
  10000000u /* ns: how long processors count as busy, at first; twice as long each time that it    \
               was not long enough */
#define SPX_IDLE_BUSIEST 160000000u /* ns: at most */
#define SPX_IDLE_DOUBTS  6u         /* halvings, at most */
#define SPX_IDLE_REGRET  100000u    /* ns: a sleep so short should have been polling */
/* rounds through memory that take as long as one system call, about */
#define SPX_IDLE_CALL 32u
/* yields of which it is counted how many have handed the processor over */
#define SPX_IDLE_SAMPLE 16u

typedef enum { SPX_IDLE_POLL, SPX_IDLE_YIELD, SPX_IDLE_PARK } spx_idle_act;

typedef struct {
  uint32_t spin, yield; /* as set: empty polls before yielding, yields before parking */
  uint32_t spin_busy;   /* as set: empty polls while processors are busy */
  uint32_t spin_least;  /* bounds of what is left of them */
  uint32_t yield_least;
  uint32_t doubt; /* both are halved so often: recent polling was in vain */
  bool busy;      /* other processes want our processors, and keep them for a time slice */
  bool shared;    /* other processes want them: a yield passes them over, and returns soon */
  uint64_t busy_until, busy_for; /* ns */
  uint32_t spin_now, yield_now;
} spx_pace;

static inline void spx_pace_settle(spx_pace *p)
{
  uint32_t spin = p->spin >> p->doubt, yield = p->yield >> p->doubt;
  if (spin < p->spin_least || p->busy || p->shared) spin = p->spin_least;
  if (yield < p->yield_least || p->shared) yield = p->yield_least;
  p->spin_now = spin;
  p->yield_now = p->busy ? 0 : yield;
}

/* yield_least: yields that are made however often they were in vain. */
static inline void spx_pace_init(spx_pace *p, uint32_t spin, uint32_t spin_busy, uint32_t yield,
                                 uint32_t yield_least)
{
  *p = (spx_pace){.spin = spin,
                  .yield = yield,
                  .spin_busy = spin_busy,
                  .spin_least = spin_busy < spin ? spin_busy : spin,
                  .yield_least = yield_least < yield ? yield_least : yield,
                  .busy_for = SPX_IDLE_BUSY};
  spx_pace_settle(p);
}

/* The amount spent, in rounds through memory and then in yields, after one more empty round that
 * has made so many system calls. */
static inline uint32_t spx_pace_spend(const spx_pace *p, uint32_t spent, uint32_t calls)
{
  if (calls == 0) return spent + 1;
  if (spent > p->spin_now) return spent + 1 + calls < spent ? UINT32_MAX : spent + 1 + calls;
  uint64_t after = (uint64_t)spent + 1 + (uint64_t)SPX_IDLE_CALL * calls;
  /* not a part of what is for yields */
  return after <= p->spin_now ? (uint32_t)after : p->spin_now + 1;
}

/* The next action when so much is spent since something happened (spx_pace_spend). */
static inline spx_idle_act spx_pace_act(const spx_pace *p, uint32_t spent)
{
  if (spent <= p->spin_now) return SPX_IDLE_POLL;
  return spent - p->spin_now <= p->yield_now ? SPX_IDLE_YIELD : SPX_IDLE_PARK;
}

/* Of SPX_IDLE_SAMPLE yields so many have handed the processor over. Where a host has more
 * processors than ranks it went to a process of another job or host, as where containers share
 * processors: as a rule that waits like this one, and all of them yield in circles. */
static inline void spx_pace_yielded(spx_pace *p, uint32_t handed_over)
{
  bool shared = handed_over >= SPX_IDLE_SAMPLE / 2;
  if (shared == p->shared) return;
  p->shared = shared;
  spx_pace_settle(p);
}

/* ns of polling or of one yield are over, at the time now. */
static inline void spx_pace_passed(spx_pace *p, uint64_t now, uint64_t ns)
{
  if (ns >= SPX_IDLE_AWAY) {
    p->busy = true;
    p->busy_until = now + p->busy_for;
    if (p->busy_for < SPX_IDLE_BUSIEST) p->busy_for *= 2;
    spx_pace_settle(p);
  } else if (!p->busy)
    p->busy_for = SPX_IDLE_BUSY;
}

/* Before a yield or parking. */
static inline void spx_pace_refresh(spx_pace *p, uint64_t now)
{
  if (!p->busy || now < p->busy_until) return;
  p->busy = false;
  p->doubt = 0;
  spx_pace_settle(p);
}

/* Nothing came while polling and yielding; then it slept for ns. */
static inline void spx_pace_slept(spx_pace *p, uint64_t ns)
{
  if (p->busy) return;
  if (ns >= SPX_IDLE_REGRET)
    p->doubt += p->doubt < SPX_IDLE_DOUBTS;
  else
    p->doubt -= p->doubt > 0;
  spx_pace_settle(p);
}
#endif
