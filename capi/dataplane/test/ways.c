/* Whether long messages of exchanges are streamed or got: ways.h, with copies of invented costs. */
// sources: -
// sanitize: undefined
#include "../ways.h"
#include "check.h"

enum { MESSAGE = 1 << 20, LONGEST = 20000000 };

/* ns of the copies of a message in an invented machine. */
typedef struct {
  uint64_t in, out, get;
} machine;
static const machine near = {44000, 46000, 152000}, full = {180000, 150000, 160000}, like = {52000, 52000, 150000};

/* So many messages go one after the other; how many of them are got. */
static int exchange(spx_ways *w, const machine *m, uint64_t *now, int n)
{
  int got = 0;
  for (int i = 0; i < n; i++) {
    if (spx_ways_next(w, *now, LONGEST)) {
      got++;
      spx_ways_took(w, SPX_WAY_GET, MESSAGE, m->get);
      *now += m->get;
    } else {
      spx_ways_took(w, SPX_WAY_IN, MESSAGE, m->in);
      spx_ways_took(w, SPX_WAY_OUT, MESSAGE, m->out);
      *now += m->in + m->out;
    }
  }
  return got;
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
  CHECK(exchange(&w, &like, &now, MANY) < MANY / 50); /* what costs nearly the same is not changed */
  spx_ways_took(&w, SPX_WAY_IN, MESSAGE, 400000000);  /* interrupted for a time slice */
  CHECK(!spx_ways_next(&w, w.tried + 1, LONGEST));
  spx_ways_took(&w, SPX_WAY_IN, 0, 100);           /* nothing was copied */
  CHECK(!spx_ways_next(&w, w.tried - 1, LONGEST)); /* another processor's clock may be behind */
  puts("ways: ok");
  return 0;
}
