/* How many streams long messages take (stream_number.h), in invented networks. */
// sanitize: undefined
#include "stream_number.h"
#include "expect.h"

static uint64_t dice = 3;
static uint32_t rnd(void)
{
  dice = dice * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(dice >> 33);
}

/* A network between two processes, with messages that follow each other. */
typedef struct {
  uint64_t trip;   /* us */
  uint64_t window; /* bytes of a stream in a round trip */
  uint64_t link;   /* bytes in a second, at most */
  uint32_t noise;  /* percent by which rates differ */
  uint32_t most;   /* streams that can be made */
  bool told;       /* the sockets report that they wait for their windows */
  uint32_t drain;  /* round trips until a stream that is not used any more is done with its part */
  /* us in which a young stream becomes as fast as it will be: of itself, and the first one too */
  uint64_t grows;
} network;

typedef struct {
  uint64_t now;   /* ns */
  uint64_t bytes; /* acknowledged */
  uint32_t open, moving;
  uint64_t drained; /* us: since a stream was done with its part */
  uint64_t trials;  /* us in which another number was used than was kept */
  uint64_t most_open, looks;
} run;

static uint64_t rate_of(const network *w, uint32_t n)
{
  uint64_t rate = n * w->window * 1000000 / w->trip;
  return rate < w->link ? rate : w->link;
}

/* Messages flow for so many milliseconds. */
static void flow_ms(spx_number *s, const network *w, run *r, uint64_t ms)
{
  uint64_t end = r->now + ms * 1000000, last = r->now, bytes = 0,
           step = w->trip < 2000 ? 1000 : w->trip / 2;
  while (r->now < end) {
    r->now += 1000 * (step + rnd() % (step / 4 + 1));
    uint32_t use = spx_number_use(s), keeps = spx_number_keeps(s);
    if (r->open < use && r->open < w->most) r->open++;
    if (r->open > keeps) r->open = keeps;
    if (r->open > r->most_open) r->most_open = r->open;
    uint64_t us = (r->now - last) / 1000;
    uint32_t given = use < r->open ? use : r->open;
    if (r->moving <= given) r->moving = given, r->drained = 0;
    for (r->drained += us; r->moving > given && r->drained >= w->drain * w->trip;
         r->drained -= w->drain * w->trip)
      r->moving--;
    if (r->open < r->moving) r->open = r->moving; /* closed when it is done */
    uint64_t rate = rate_of(w, r->moving);
    if (w->grows && r->now / 1000 < w->grows) rate = rate * (r->now / 1000) / w->grows;
    rate = rate * (100 - w->noise + rnd() % (2 * w->noise + 1)) / 100;
    last = r->now;
    bytes += rate * us / 1000000;
    r->bytes += rate * us / 1000000;
    if (use != s->kept) r->trials += us;
    if (!spx_number_looks(s, r->now)) continue;
    spx_streams_seen seen = {.acked = bytes,
                             .busy = us,
                             .held = w->told ? us : 0,
                             .near = (uint32_t)w->trip,
                             .trip = (uint32_t)w->trip,
                             .open = r->open,
                             .moving = r->moving};
    bytes = 0;
    r->looks++;
    spx_number_saw(s, r->now, &seen, 16);
  }
}

static void flow(spx_number *s, const network *w, run *r, uint64_t seconds)
{
  flow_ms(s, w, r, 1000 * seconds);
}

static uint64_t best_of(const network *w)
{
  uint64_t best = 0;
  for (uint32_t n = 1; n <= w->most; n *= 2)
    if (rate_of(w, n) > best) best = rate_of(w, n);
  return best;
}

/* It only ever has one stream, and is rarely measured. */
static void near_by(void)
{
  static const network loopback = {.trip = 40,
                                   .window = 1 << 20,
                                   .link = 4000000000,
                                   .noise = 40,
                                   .most = 16},
                       tight = {.trip = 300,
                                .window = 64 << 10,
                                .link = 4000000000,
                                .noise = 10,
                                .most = 16,
                                .told = true},
                       unknown = {.trip = 1, .window = 64 << 10, .link = 4000000000, .most = 16};
  const network *all[] = {&loopback, &tight, &unknown};
  for (int i = 0; i < 3; i++) {
    spx_number s = {0};
    run r = {.now = 1000000000, .open = 1};
    flow(&s, all[i], &r, 600);
    CHECK(r.most_open == 1 && spx_number_use(&s) == 1 && r.looks < 10);
  }
}

/* Checks the rate in the end, and on the whole; and that the number is stable nearly all the
 * time. */
static void far_away(const network *w, uint64_t seconds)
{
  spx_number s = {0};
  run r = {.now = 1000000000, .open = 1};
  flow(&s, w, &r, seconds);
  uint64_t on_the_whole = r.bytes / seconds;
  CHECK(100 * on_the_whole >= 80 * best_of(w) && r.most_open <= w->most);
  CHECK(100 * rate_of(w, s.kept) >= 80 * best_of(w));
  CHECK(r.trials / 10000 <= 6 * seconds);
}

static void many(void)
{
  for (int i = 0; i < 300; i++) {
    network w = {.trip = 2000 + rnd() % 100000,
                 .window = 20000 + rnd() % 4000000,
                 .link = 1000000 + (uint64_t)rnd() % 400000000,
                 .noise = rnd() % 8,
                 .most = 16,
                 .told = rnd() % 2};
    far_away(&w, 600);
  }
}

/* A link that is full with one stream: more are tried, and given back. */
static void full(void)
{
  network w = {.trip = 20000, .window = 4 << 20, .link = 20000000, .noise = 5, .most = 16};
  spx_number s = {0};
  run r = {.now = 1000000000, .open = 1};
  flow(&s, &w, &r, 3600);
  CHECK(s.kept == 1 && r.open == 1 && r.most_open == 2 && r.trials < 3600 * 3000ull);
  w.told = true; /* the receiver computes: its window is closed at times */
  flow(&s, &w, &r, 3600);
  CHECK(s.kept == 1 && r.open == 1);
}

/* The first stream becomes faster by itself while the second is tried: that is not taken for the
 * second's doing. */
static void young(void)
{
  network w = {.trip = 20000, .window = 4 << 20, .link = 20000000, .most = 16, .grows = 3000000};
  spx_number s = {0};
  run r = {.now = 1000000000, .open = 1};
  flow(&s, &w, &r, 4);
  CHECK(s.kept == 1 && r.most_open == 2);
}

/* The path changes: fewer do as well, or more are needed; or it has become a short one. */
static void changes(void)
{
  network w = {
      .trip = 20000, .window = 64 << 10, .link = 100000000, .noise = 3, .most = 16, .told = true};
  spx_number s = {0};
  run r = {.now = 1000000000, .open = 1};
  flow(&s, &w, &r, 30);
  CHECK(s.kept == 16 && r.open == 16);
  w.window = 8 << 20;
  flow(&s, &w, &r, 1200);
  CHECK(s.kept == 1 && r.open == 1);
  w.window = 64 << 10;
  flow(&s, &w, &r, 1200);
  CHECK(s.kept == 16);
  w.trip = 100;
  flow(&s, &w, &r, 1200);
  CHECK(s.kept == 1 && r.open == 1);
}

/* There are not as many as would be faster, or none at all. */
static void short_of(void)
{
  network w = {
      .trip = 20000, .window = 64 << 10, .link = 100000000, .noise = 3, .most = 3, .told = true};
  spx_number s = {0};
  run r = {.now = 1000000000, .open = 1};
  flow(&s, &w, &r, 60);
  CHECK(s.kept == 3 && r.open == 3);
  w.most = r.open = 1; /* the other streams were closed, and cannot be made again */
  flow(&s, &w, &r, 1200);
  CHECK(s.kept == 1);
  spx_streams_seen seen = {.acked = 1, .near = 20000, .trip = 20000, .open = 1, .moving = 1};
  s = (spx_number){0};
  spx_number_saw(&s, 1000000000, &seen, 1);
  CHECK(spx_number_use(&s) == 1 && s.phase == SPX_NUMBER_RESTS && s.until > 1000000000);
}

/* The link carries what four streams give; later one gives as much. Streams that are not used are
 * not done with their parts at once. */
static void four(void)
{
  network w = {.trip = 20000,
               .window = 64 << 10,
               .link = 13000000,
               .noise = 3,
               .most = 16,
               .told = true,
               .drain = 40};
  spx_number s = {0};
  run r = {.now = 1000000000, .open = 1};
  flow(&s, &w, &r, 30);
  for (int i = 0; i < 1200; i++) {
    flow(&s, &w, &r, 1);
    CHECK(s.kept == 4);
  }
  CHECK(r.most_open == 8);
  w.window = 1 << 20;
  flow(&s, &w, &r, 1200);
  CHECK(s.kept == 1 && r.open == 1);
}

/* Messages with pauses: these do not count. */
static void pauses(void)
{
  network w = {
      .trip = 20000, .window = 64 << 10, .link = 100000000, .noise = 3, .most = 16, .told = true};
  spx_number s = {0};
  run r = {.now = 1000000000, .open = 1};
  for (int i = 0; i < 100; i++) {
    flow_ms(&s, &w, &r, 150);
    r.now += (1 + rnd() % 20) * 1000000000ull;
  }
  CHECK(s.kept == 16);
  w.window = 4 << 20;
  w.link = 20000000;
  s = (spx_number){0};
  for (int i = 0; i < 1000; i++) {
    flow_ms(&s, &w, &r, 150);
    r.now += (1 + rnd() % 20) * 1000000000ull;
    CHECK(s.kept <= 1);
  }
}

int main(void)
{
  near_by();
  many();
  full();
  young();
  changes();
  short_of();
  four();
  pauses();
  puts("stream_number: ok");
  return 0;
}
