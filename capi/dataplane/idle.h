/* idle.h - for how long a thread that waits polls, yields, and when it parks. docs/decisions/smp.md, "Waiting".
 *
 * Decides only: time is an argument, nothing here waits. Polling is right while the partner runs too. It is wrong as soon as
 * somebody else could use the processor: then it delays the partner, or uses up the time slice that is needed when the message comes.
 * What tells: the clock jumps while we poll, or a yield comes back late. Then the processors are *busy* for a while: polling
 * is short, and parking follows at once, since a yield would hand a whole time slice to a stranger. As long as yields come
 * back at once nobody else wants the processor, and there is no hurry to give it up: who parks lets the kernel move the partner here.
 */
#ifndef SPX_IDLE_H
#define SPX_IDLE_H
#include <stdbool.h>
#include <stdint.h>

#define SPX_IDLE_LOOK 64u     /* empty polls between looks at the clock */
#define SPX_IDLE_AWAY 500000u /* ns: who was away for so long has lost its processor to a time slice */
#define SPX_IDLE_BUSY                                                                                                  \
  10000000u /* ns: how long processors count as busy, at first; twice as long each time that it was not long enough */
#define SPX_IDLE_BUSIEST 160000000u /* ns: at most */
#define SPX_IDLE_DOUBTS  6u         /* halvings, at most */
#define SPX_IDLE_REGRET  100000u    /* ns: a sleep so short should have been polling */

typedef enum { SPX_IDLE_POLL, SPX_IDLE_YIELD, SPX_IDLE_PARK } spx_idle_act;

typedef struct {
  uint32_t spin, yield; /* as set: empty polls before yielding, yields before parking */
  uint32_t spin_busy;   /* as set: empty polls while processors are busy */
  uint32_t spin_least;  /* bounds of what is left of them */
  uint32_t yield_least;
  uint32_t doubt;                /* both are halved so often: recent polling was in vain */
  bool busy;                     /* others want our processors */
  uint64_t busy_until, busy_for; /* ns */
  uint32_t spin_now, yield_now;
} spx_pace;

static inline void spx_pace_settle(spx_pace *p)
{
  uint32_t spin = p->spin >> p->doubt, yield = p->yield >> p->doubt;
  if (spin < p->spin_least || p->busy) spin = p->spin_least;
  if (yield < p->yield_least) yield = p->yield_least;
  p->spin_now = spin;
  p->yield_now = p->busy ? 0 : yield;
}

/* yield_least: yields that are made however often they were in vain. */
static inline void spx_pace_init(spx_pace *p, uint32_t spin, uint32_t spin_busy, uint32_t yield, uint32_t yield_least)
{
  *p = (spx_pace){.spin = spin,
                  .yield = yield,
                  .spin_busy = spin_busy,
                  .spin_least = spin_busy < spin ? spin_busy : spin,
                  .yield_least = yield_least < yield ? yield_least : yield,
                  .busy_for = SPX_IDLE_BUSY};
  spx_pace_settle(p);
}

/* What to do in the empty round number empty since something happened. */
static inline spx_idle_act spx_pace_act(const spx_pace *p, uint32_t empty)
{
  if (empty <= p->spin_now) return SPX_IDLE_POLL;
  return empty - p->spin_now <= p->yield_now ? SPX_IDLE_YIELD : SPX_IDLE_PARK;
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
