/* Which way long messages take while both processes send: way.h, with copies of invented costs. */
// sources: -
// sanitize: undefined
#include "../way.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(ok)                                                                                                      \
  do {                                                                                                                 \
    if (!(ok)) {                                                                                                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok);                                                         \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

enum { MESSAGE = 65536 };

/* What a message takes in an invented machine, in ns. */
typedef struct {
  uint64_t cost[SPX_WAYS];
} machine;

/* Lets n messages go the way that is chosen, one every 10 us; returns how many were got. */
static uint32_t exchange(spx_way *w, const machine *m, uint64_t *now, uint32_t n)
{
  uint32_t got = 0;
  for (uint32_t i = 0; i < n; i++, *now += 10000) {
    spx_way_kind way = spx_way_gets(w, MESSAGE, *now) ? SPX_WAY_GET : SPX_WAY_STREAM;
    got += way == SPX_WAY_GET;
    spx_way_took(w, way, MESSAGE, m->cost[way]);
  }
  return got;
}

static void finds_the_cheaper_way(void)
{
  static const machine near = {.cost = {5000, 7000}}, far = {.cost = {10000, 7000}};
  enum { TWO_TRIALS = 2 * SPX_WAY_AGAIN / 10000 + 2 * SPX_WAY_TRIAL };
  spx_way w = {0};
  uint64_t now = 1000000000;
  CHECK(exchange(&w, &far, &now, 100) >= 90);
  uint32_t got = exchange(&w, &far, &now, 20000);
  CHECK(got > 19900 && got < 20000);     /* streams are tried again now and then */
  exchange(&w, &near, &now, TWO_TRIALS); /* the processors have moved */
  CHECK(exchange(&w, &near, &now, 10000) < 100 && !w.gets);
  exchange(&w, &far, &now, TWO_TRIALS);
  CHECK(exchange(&w, &far, &now, 10000) > 9900 && w.gets);
}

/* Streams come first; a get alone decides nothing. */
static void begins_with_streams(void)
{
  spx_way w = {0};
  for (uint64_t now = 0; now < 100 * (uint64_t)SPX_WAY_AGAIN; now += SPX_WAY_AGAIN)
    CHECK(!spx_way_gets(&w, MESSAGE, now));
  spx_way_took(&w, SPX_WAY_GET, MESSAGE, 10);
  CHECK(!spx_way_gets(&w, MESSAGE, 5));
}

/* One message that was interrupted for a time slice does not turn the choice round; two ways that cost nearly the same are not changed
 * from one to the other and back. */
static void bears_noise(void)
{
  static const machine like = {.cost = {7000, 6800}}, far = {.cost = {14100, 7000}};
  spx_way w = {0};
  uint64_t now = 1000000000;
  exchange(&w, &far, &now, 1000);
  spx_way_took(&w, SPX_WAY_GET, MESSAGE, 4000000);
  CHECK(spx_way_gets(&w, MESSAGE, now));
  w = (spx_way){0};
  CHECK(exchange(&w, &like, &now, 20000) < 200 && !w.gets);
  spx_way_took(&w, SPX_WAY_GET, 0, 100); /* nothing came */
  spx_way_took(&w, SPX_WAY_GET, 1, UINT64_MAX / 1000);
  CHECK(w.cost[SPX_WAY_GET] < 2000000);
}

/* Trials of messages that take 3 ms each are a small part of all, although 20 ms pass with every few of them. */
static void long_ones_are_tried_rarely(void)
{
  enum { LONG = 4 << 20, MESSAGES = 2000 };
  spx_way w = {0};
  uint64_t now = 1000000000;
  uint32_t streamed = 0;
  for (uint32_t i = 0; i < MESSAGES; i++) {
    bool gets = spx_way_gets(&w, LONG, now);
    uint64_t took = gets ? 1000000 : 3000000;
    streamed += !gets;
    spx_way_took(&w, gets ? SPX_WAY_GET : SPX_WAY_STREAM, LONG, took);
    now += took;
  }
  CHECK(w.gets && streamed > 1 && streamed < MESSAGES / 60);
}

static void classes(void)
{
  CHECK(spx_way_class(0) == 0 && spx_way_class(32767) == 0 && spx_way_class(32768) == 1 && spx_way_class(65536) == 2);
  CHECK(spx_way_class(UINT64_MAX) == SPX_WAY_CLASSES - 1 && spx_way_class(1u << 21) == 7);
}

int main(void)
{
  finds_the_cheaper_way();
  begins_with_streams();
  bears_noise();
  long_ones_are_tried_rarely();
  classes();
  puts("way: ok");
  return 0;
}
