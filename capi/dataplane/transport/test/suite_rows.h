/* suite_rows.h - the transports that are tried, a row each, and what a row lacks, with the
 * reason. */
#ifndef SPX_TEST_SUITE_ROWS_H
#define SPX_TEST_SUITE_ROWS_H
#include "suite.h"

static uint32_t as_many(uint32_t n) { return n; }
static uint32_t as_it_is(uint32_t i, uint32_t n)
{
  (void)n;
  return i;
}
static uint32_t one_host(uint32_t process)
{
  (void)process;
  return 0;
}
static bool no_wire(uint32_t a, uint32_t b, uint32_t n)
{
  (void)a, (void)b, (void)n;
  return false;
}
static bool each_with_each(uint32_t a, uint32_t b, uint32_t n)
{
  (void)a, (void)b, (void)n;
  return true;
}

/* ---- relays: neighbours alone are connected ---- */

/* In a ring: two participants are opposite in one of four, so that there are two ways. */
static uint32_t in_ring(uint32_t n) { return n == 2 ? 4 : n == 3 ? 6 : n; }
static uint32_t ring_process(uint32_t i, uint32_t n) { return n <= 3 ? 2 * i : i; }
static uint32_t around(uint32_t a, uint32_t b, uint32_t n)
{
  return (b + n - a) % n;
} /* hops from a upwards to b */
static bool ring_wired(uint32_t a, uint32_t b, uint32_t n)
{
  return around(a, b, n) == 1 || around(b, a, n) == 1;
}

/* In a row, two processes on each host, which share memory: hops are by memory and by sockets in
 * turn. */
static uint32_t in_chain(uint32_t n) { return n == 2 ? 4 : 6; }
static uint32_t chain_process(uint32_t i, uint32_t n)
{
  static const uint32_t far_ones_first[] = {0, 5, 2, 3};
  return n == 2 ? 3 * i : n <= 4 ? far_ones_first[i] : i;
}
static uint32_t chain_host(uint32_t process) { return process / 2; }
static bool chain_wired(uint32_t a, uint32_t b, uint32_t n)
{
  (void)n;
  return (a > b ? a - b : b - a) == 1 && chain_host(a) != chain_host(b);
}

static void give_routes(uint32_t n, uint32_t self, uint32_t most_hops)
{
  spx_routes *r = calloc(1, sizeof *r + n * sizeof r->to[0]);
  r->n = n;
  for (uint32_t i = 0; i < n; i++) {
    spx_route *t = &r->to[i];
    t->kept = i == self || tried->wired(i, self, n);
    if (t->kept) continue;
    bool chain = tried->wired == chain_wired;
    uint32_t up_hops = chain && i < self ? UINT32_MAX : around(self, i, n);
    uint32_t down_hops = chain && i > self ? UINT32_MAX : around(i, self, n);
    uint32_t next[2] = {(self + 1) % n, (self + n - 1) % n}, hops[2] = {up_hops, down_hops};
    for (int k = 0; k < 2; k++) {
      int way = k ^ (hops[1] < hops[0]);
      if (hops[way] > most_hops) continue;
      t->via[t->n] = next[way];
      t->needs[t->n++] = (uint8_t)(hops[way] - 1);
    }
  }
  spx_net_policy((spx_net_ways){.heeds = true, .relays = true});
  spx_net_route(r);
}
static void ring_begin(uint32_t n, uint32_t self) { give_routes(n, self, 3); }
static void chain_begin(uint32_t n, uint32_t self) { give_routes(n, self, 5); }

/* ---- the rows. A further transport is one more. ---- */

enum { NET_LONGEST = 64 << 10 }; /* net_read.c: MAX_RECORD, without its head */

#ifdef SPX_SUITE_ROWS
#include SPX_SUITE_ROWS
#else
static const row rows[] = {
    {"shm", &spx_shm, HAS_RINGS | HAS_LONG_SLEEP, 0, 0, as_many, as_it_is, one_host, no_wire, NULL},
    {"tcp", &spx_tcp, HAS_SOCKETS | HAS_ENGINE | HAS_LONG_SLEEP, SPX_SEG_TCP, NET_LONGEST, as_many,
     as_it_is, one_host, each_with_each, NULL},
    {"relay", &spx_tcp, HAS_RELAYS, SPX_SEG_HOSTS | SPX_SEG_TCP, NET_LONGEST, in_ring, ring_process,
     one_host, ring_wired, ring_begin},
    {"relay-shm", &spx_tcp, 0, SPX_SEG_HOSTS, 0 /* some pairs are shm's */, in_chain, chain_process,
     chain_host, chain_wired, chain_begin},
};

/* The missing features of a row, and why the tests that need them do not apply. */
static const struct {
  const char *row;
  uint32_t lacks;
  const char *why;
} lacks[] = {
    {"shm", HAS_SOCKETS,
     "there is no connection: memory that two live processes share does not break"},
    {"shm", HAS_RELAYS, "a pair shares memory, or is none of this transport's"},
    {"shm", HAS_ENGINE,
     "what is committed lies in the receiver's memory; what waits for room is a send that is not "
     "over"},
    {"tcp", HAS_RINGS,
     "each connection has its buffer: open sets ring to 0, and nothing is to be widened"},
    {"tcp", HAS_RELAYS, "a pair has a connection of its own"},
    {"relay", HAS_RINGS, "as tcp: the pair's buffer is there from the start"},
    {"relay", HAS_SOCKETS,
     "the pair has no connection; those of the relays are tcp's, whose loss is a relay's loss"},
    {"relay", HAS_ENGINE, "frames move in the calls of the processes that they go through"},
    {"relay", HAS_LONG_SLEEP,
     "a sender with frames that are not acknowledged looks again after 10 ms, to ask"},
    {"relay-shm", HAS_RINGS, "as relay; the rings between neighbours are shm's"},
    {"relay-shm", HAS_SOCKETS, "as relay"},
    {"relay-shm", HAS_RELAYS,
     "there is one way alone: a relay's death ends the pair, as routes say it, not the transport"},
    {"relay-shm", HAS_ENGINE, "as relay"},
    {"relay-shm", HAS_LONG_SLEEP, "as relay"},
};
#endif
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Why a row has no case of a test; NULL: it has one. */
static const char *why_not(const row *r, const test *t)
{
  for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++)
    if (strcmp(lacks[i].row, r->name) == 0 && t->needs & lacks[i].lacks) return lacks[i].why;
  return NULL;
}

/* Every lack has a reason, and what a row has needs none. */
static bool rows_are_whole(void)
{
  for (int k = 0; k < ROWS; k++)
    for (uint32_t bit = 1; bit <= HAS_LONG_SLEEP; bit *= 2) {
      test t = {.needs = bit};
      if (!(rows[k].has & bit) != !why_not(&rows[k], &t)) continue;
      fprintf(
          stderr,
          "%s: each HAS_ is either there, or in the table of what is lacking, with its reason\n",
          rows[k].name);
      return false;
    }
  for (int k = 0; k < ROWS; k++)
    if (!(rows[k].has & HAS_RINGS) != !rows[k].by->widen) return false;
  return true;
}
#endif
