/* Whether long messages are streamed or got: ways.h, with copies of invented costs. */
// sanitize: undefined
#include "ways.h"
#include "expect.h"

enum { MESSAGE = 1 << 20, LONGEST = 20000000 };

/* ns of the copies of a message in an invented machine. */
typedef struct {
  uint64_t in, out, get;
} machine;
static const machine near = {44000, 46000, 152000}, full = {180000, 150000, 160000},
                     like = {52000, 52000, 150000},
                     quick = {60000, 70000, 55000}; /* the kernel copies as fast as the processes */

static uint64_t longer(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* So many messages go one after the other; how many of them are got. */
static int send(spx_ways *w, const machine *m, uint64_t *now, int n, spx_ways_how how)
{
  int got = 0;
  for (int i = 0; i < n; i++) {
    if (spx_ways_next(w, *now, LONGEST, how)) {
      got++;
      spx_ways_took(w, SPX_WAY_GET, MESSAGE, m->get);
      *now += m->get;
    } else {
      spx_ways_took(w, SPX_WAY_IN, MESSAGE, m->in);
      spx_ways_took(w, SPX_WAY_OUT, MESSAGE, m->out);
      *now += how == SPX_WAYS_AT_ONCE ? longer(m->in, m->out) : m->in + m->out;
    }
  }
  return got;
}

static int exchange(spx_ways *w, const machine *m, uint64_t *now, int n)
{
  return send(w, m, now, n, SPX_WAYS_IN_TURN);
}

static void in_one_direction(void)
{
  enum { MANY = 10000, SOME = 40 * LONGEST / 100000 };
  spx_ways w = {0};
  uint64_t now = 1000000000;
  CHECK(send(&w, &near, &now, MANY, SPX_WAYS_AT_ONCE) < MANY / 50);
  /* Here an exchange is got; the copies of a stream that are made at once are the shorter way. */
  const machine apart = {100000, 90000, 150000};
  spx_ways both = {0};
  exchange(&both, &apart, &now, SOME);
  CHECK(exchange(&both, &apart, &now, MANY) > MANY - MANY / 50);
  send(&w, &apart, &now, SOME, SPX_WAYS_AT_ONCE);
  CHECK(send(&w, &apart, &now, MANY, SPX_WAYS_AT_ONCE) < MANY / 50);
  send(&w, &quick, &now, SOME, SPX_WAYS_AT_ONCE);
  CHECK(send(&w, &quick, &now, MANY, SPX_WAYS_AT_ONCE) > MANY - MANY / 50);
  send(&w, &near, &now, SOME, SPX_WAYS_AT_ONCE);
  CHECK(send(&w, &near, &now, MANY, SPX_WAYS_AT_ONCE) < MANY / 50);
  w = (spx_ways){0};
  for (int i = 0; i < 100; i++) /* of the kernel's copies alone nothing follows */
    spx_ways_took(&w, SPX_WAY_GET, MESSAGE, quick.get);
  spx_ways_next(&w, now, LONGEST, SPX_WAYS_AT_ONCE);
  CHECK(!spx_ways_next(&w, now, LONGEST, SPX_WAYS_AT_ONCE));
}

int main(void)
{
  enum { MANY = 10000, SOME = 40 * LONGEST / 100000 };
  spx_ways w = {0};
  uint64_t now = 1000000000;
  CHECK(exchange(&w, &near, &now, MANY) < MANY / 50); /* tried now and then */
  exchange(&w, &full, &now, SOME);                    /* memory has become slow */
  CHECK(exchange(&w, &full, &now, MANY) > MANY - MANY / 50);
  exchange(&w, &near, &now, SOME);
  CHECK(exchange(&w, &near, &now, MANY) < MANY / 50);
  /* nearly equal costs change nothing */
  CHECK(exchange(&w, &like, &now, MANY) < MANY / 50);
  spx_ways_took(&w, SPX_WAY_IN, MESSAGE, 400000000); /* interrupted for a time slice */
  CHECK(!spx_ways_next(&w, w.tried + 1, LONGEST, SPX_WAYS_IN_TURN));
  spx_ways_took(&w, SPX_WAY_IN, 0, 100); /* nothing was copied */
  /* another processor's clock may be behind */
  CHECK(!spx_ways_next(&w, w.tried - 1, LONGEST, SPX_WAYS_IN_TURN));
  in_one_direction();
  puts("ways: ok");
  return 0;
}
