/* When copies go past the caches: into.h, with copies of invented costs. */
// sanitize: undefined
#include "into.h"
#include "expect.h"

enum { PIECE = 8192, EVERY = 16, LONGEST = 20000000 };

/* What a copy takes in an invented machine, in ns: plain, and past the caches. */
typedef struct {
  uint64_t ns[2];
} machine;
static const machine near = {{200, 300}}, apart = {{1000, 300}};

/* Makes n copies; returns how many went past the caches. */
static uint32_t copy(spx_into *i, const machine *m, uint64_t *now, uint64_t bytes, uint32_t n)
{
  uint32_t sum = 0;
  for (uint32_t k = 0; k < n; k++) {
    bool timed = spx_into_timed(i, EVERY),
         past = timed ? spx_into_next(i, bytes, *now, LONGEST) : i->past;
    uint64_t ns = m->ns[past] * bytes / PIECE;
    if (timed) spx_into_took(i, past, bytes, ns);
    *now += ns;
    sum += past;
  }
  return sum;
}

static void finds_the_cheaper_way(void)
{
  enum { MANY = 100000, A_TRIAL = 2 * LONGEST / 200 + 1000 };
  spx_into i = {0};
  uint64_t now = 1000000000;
  CHECK(copy(&i, &apart, &now, PIECE, 200) >= 150);
  uint32_t past = copy(&i, &apart, &now, PIECE, MANY);
  CHECK(past > MANY - 100 && past < MANY); /* plain stores are tried again now and then */
  copy(&i, &near, &now, PIECE, A_TRIAL);   /* a process has been moved */
  CHECK(!i.past && !spx_into_apart(&i) && copy(&i, &near, &now, PIECE, MANY) < 100);
  copy(&i, &apart, &now, PIECE, A_TRIAL);
  CHECK(i.past && spx_into_apart(&i) && copy(&i, &apart, &now, PIECE, MANY) > MANY - 100);
}

/* A copy that was interrupted for a time slice does not turn the choice round; what costs nearly
 * the same is not changed from one to the other and back. */
static void bears_noise(void)
{
  static const machine like = {{440, 300}};
  spx_into i = {0};
  uint64_t now = 1000000000;
  copy(&i, &apart, &now, PIECE, 1000);
  spx_into_took(&i, true, PIECE, 4000000);
  CHECK(spx_into_next(&i, PIECE, now, LONGEST));
  i = (spx_into){0};
  CHECK(copy(&i, &like, &now, PIECE, 100000) < 200 && !i.past);
  spx_into_took(&i, true, 0, 100); /* nothing was copied */
  spx_into_took(&i, true, 1, UINT64_MAX / 2000);
  CHECK(i.cost[1] < 2000000);
}

/* Trials of copies that take a millisecond each are a small part of all. */
static void long_ones_are_tried_rarely(void)
{
  enum { LONG = 8 << 20, COPIES = 2000 };
  spx_into i = {0};
  uint64_t now = 1000000000;
  uint32_t past = copy(&i, &apart, &now, LONG, COPIES);
  CHECK(i.past && past > COPIES - 100 && past < COPIES);
}

int main(void)
{
  finds_the_cheaper_way();
  bears_noise();
  long_ones_are_tried_rarely();
  puts("into: ok");
  return 0;
}
