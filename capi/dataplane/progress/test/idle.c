/* When a waiting thread polls, yields and parks: idle.h, step by step, without a clock. */
// sanitize: undefined
#include "idle.h"
#include "expect.h"

enum { SPIN = 20000, SHORT = 300, YIELDS = 10000, LEAST = 32 };
static const uint64_t ms = 1000000;

static void polls_then_yields_then_parks(void)
{
  spx_pace p;
  spx_pace_init(&p, SPIN, SHORT, YIELDS, LEAST);
  CHECK(spx_pace_act(&p, 1) == SPX_IDLE_POLL && spx_pace_act(&p, SPIN) == SPX_IDLE_POLL);
  CHECK(spx_pace_act(&p, SPIN + 1) == SPX_IDLE_YIELD &&
        spx_pace_act(&p, SPIN + YIELDS) == SPX_IDLE_YIELD);
  CHECK(spx_pace_act(&p, SPIN + YIELDS + 1) == SPX_IDLE_PARK);
  spx_pace_init(&p, 0, SHORT, 0, LEAST); /* as set: never polls */
  CHECK(spx_pace_act(&p, 1) == SPX_IDLE_PARK && p.spin_least == 0);
}

/* A lost time slice makes polling short and parking follow at once, for a while; for longer when it
 * happens again. */
static void loses_its_processor(void)
{
  spx_pace p;
  uint64_t now = 5 * ms;
  spx_pace_init(&p, SPIN, SHORT, YIELDS, LEAST);
  spx_pace_passed(&p, now, 2000); /* a round of polling, or a yield among ranks that do little */
  CHECK(!p.busy);
  spx_pace_passed(&p, now, 3 * ms);
  CHECK(p.busy && spx_pace_act(&p, SHORT) == SPX_IDLE_POLL &&
        spx_pace_act(&p, SHORT + 1) == SPX_IDLE_PARK);
  spx_pace_refresh(&p, now + SPX_IDLE_BUSY - 1);
  CHECK(p.busy);
  spx_pace_refresh(&p, now + SPX_IDLE_BUSY);
  CHECK(!p.busy && p.spin_now == SPIN && spx_pace_act(&p, SPIN + 1) == SPX_IDLE_YIELD);
  now += SPX_IDLE_BUSY;
  spx_pace_passed(&p, now, 3 * ms); /* still so */
  spx_pace_refresh(&p, now + SPX_IDLE_BUSY);
  CHECK(p.busy);
  spx_pace_refresh(&p, now + 2 * SPX_IDLE_BUSY);
  CHECK(!p.busy);
  spx_pace_passed(&p, now, 1000); /* the foreign load has gone: the next time counts as the first */
  CHECK(p.busy_for == SPX_IDLE_BUSY);
  for (int i = 0; i < 100; i++) spx_pace_passed(&p, now, 3 * ms);
  CHECK(p.busy_for < 2 * (uint64_t)SPX_IDLE_BUSIEST);
}

/* Polling that catches nothing becomes shorter; sleeps that were short make it longer again. */
static void learns(void)
{
  spx_pace p;
  spx_pace_init(&p, SPIN, SHORT, YIELDS, LEAST);
  spx_pace_slept(&p, 50 * ms);
  CHECK(p.spin_now == SPIN / 2 && p.yield_now == YIELDS / 2);
  for (int i = 0; i < 20; i++) spx_pace_slept(&p, 50 * ms);
  CHECK(p.spin_now == SPIN >> SPX_IDLE_DOUBTS && p.yield_now == YIELDS >> SPX_IDLE_DOUBTS);
  for (int i = 0; i < 20; i++) spx_pace_slept(&p, SPX_IDLE_REGRET / 2);
  CHECK(p.spin_now == SPIN);
  spx_pace_passed(&p, ms, 3 * ms);
  spx_pace_slept(&p, 1);
  CHECK(p.spin_now == SHORT &&
        p.yield_now == 0); /* not while other processes wait for the processor */
}

/* A round that makes system calls counts as many rounds through memory as these take, but uses up
 * nothing of the yields, of which it counts as so many. */
static void counts_system_calls(void)
{
  spx_pace p;
  spx_pace_init(&p, SPIN, SHORT, YIELDS, LEAST);
  CHECK(spx_pace_spend(&p, 7, 0) == 8 && spx_pace_spend(&p, 7, 2) == 8 + 2 * SPX_IDLE_CALL);
  uint32_t spent = 0, polls = 0, yields = 0;
  while (spx_pace_act(&p, spent = spx_pace_spend(&p, spent, 3)) == SPX_IDLE_POLL) polls++;
  CHECK(polls == SPIN / (1 + 3 * SPX_IDLE_CALL) && spent == SPIN + 1);
  for (yields = 1; spx_pace_act(&p, spent = spx_pace_spend(&p, spent, 3)) == SPX_IDLE_YIELD;
       yields++) {}
  CHECK(yields == (YIELDS + 3) / 4);
  p.spin_now = 10;
  CHECK(spx_pace_spend(&p, UINT32_MAX - 2, 5) == UINT32_MAX); /* yields without end, as set */
}

/* Yields that hand the processor over: little of both is left, until they do not any more. */
static void shares_its_processor(void)
{
  spx_pace p;
  spx_pace_init(&p, SPIN, SHORT, YIELDS, LEAST);
  spx_pace_yielded(&p, SPX_IDLE_SAMPLE / 2 - 1);
  CHECK(!p.shared && p.yield_now == YIELDS);
  spx_pace_yielded(&p, SPX_IDLE_SAMPLE / 2);
  CHECK(p.shared && p.spin_now == SHORT && p.yield_now == LEAST);
  spx_pace_passed(&p, ms, 3 * ms); /* and one of them keeps it: a yield would be a gift */
  CHECK(p.spin_now == SHORT && p.yield_now == 0);
  spx_pace_refresh(&p, 1000 * ms);
  CHECK(p.spin_now == SHORT && p.yield_now == LEAST);
  spx_pace_yielded(&p, 0);
  CHECK(!p.shared && p.spin_now == SPIN && p.yield_now == YIELDS);
}

int main(void)
{
  polls_then_yields_then_parks();
  loses_its_processor();
  learns();
  counts_system_calls();
  shares_its_processor();
  return 0;
}
