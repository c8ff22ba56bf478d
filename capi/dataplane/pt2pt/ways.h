/* ways.h - whether long messages are streamed or got: those of an exchange where ranks share
 * processors, and those in one direction where each rank has one. docs/decisions/get.md,
 * "Processors without a common cache" and "In one direction".
 *
 * Decides only: times are arguments. A stream is two copies, into the ring and out of it; in an
 * exchange each process makes one of either, or else one by the kernel. Where processors are short,
 * what counts is how long they are busy; where they are not, the two copies of a message in one
 * direction are made at the same time, and what counts is the longer one. The copies are timed, and
 * so are those of the kernel; now and then a message goes the other way, so that all three are
 * known as they are now.
 */
#ifndef SPX_WAYS_H
#define SPX_WAYS_H
#include <stdbool.h>
#include <stdint.h>

typedef enum { SPX_WAY_IN, SPX_WAY_OUT, SPX_WAY_GET, SPX_WAY_KINDS } spx_way_kind;

enum { SPX_WAYS_SURE = 6 }; /* trials */

/* Whether the two copies of a stream take turns at the processors or go on at the same time. */
typedef enum { SPX_WAYS_IN_TURN, SPX_WAYS_AT_ONCE } spx_ways_how;

/* Beside its copies a stream costs the turns of its sender, which has to have the processor each
 * time the ring is full. */
#define SPX_WAYS_TURNS(cost) ((cost) + 3 * (cost) / 8)

/* All processes of a host share one: with separate decisions, some would wait for the pieces of a
 * message that is in the kernel, and a mixture takes longer than either way. They write it without
 * waiting for each other; lost updates are repeated. */
typedef struct {
  uint32_t cost[SPX_WAY_KINDS]; /* ps for 16 bytes, on average; 0: not known */
  uint32_t gets;
  uint64_t tried;  /* ns: when a message last went the other way */
  uint32_t trials; /* so often that has been so since the choice was made, up to SPX_WAYS_SURE */
} spx_ways;

/* n bytes have been copied in ns. What took far longer than usual was interrupted: it counts as
 * twice as long. */
static inline void spx_ways_took(spx_ways *w, spx_way_kind kind, uint64_t n, uint64_t ns)
{
  if (!n) return;
  uint64_t cost = ns * 16000 / n, before = __atomic_load_n(&w->cost[kind], __ATOMIC_RELAXED);
  if (before && cost > 2 * before) cost = 2 * before;
  if (cost > 16000000) cost = 16000000;
  __atomic_store_n(&w->cost[kind], (uint32_t)(before ? (7 * before + cost) / 8 : cost) | 1,
                   __ATOMIC_RELAXED);
}

/* The cost of a stream: with copies in turn those, and the turns of its sender; with copies at once
 * the longer one, and for the shorter one, which begins or ends alone, and gets in the way of the
 * other one, a quarter. */
static inline uint64_t spx_ways_stream(uint64_t in, uint64_t out, spx_ways_how how)
{
  if (how == SPX_WAYS_IN_TURN) return SPX_WAYS_TURNS(in + out);
  return in > out ? in + out / 4 : out + in / 4;
}

/* Whether the next message is got. Every `longest` ns one goes the other way, and more of them soon
 * after a choice. */
static inline bool spx_ways_next(spx_ways *w, uint64_t now, uint64_t longest, spx_ways_how how)
{
  uint64_t in = __atomic_load_n(&w->cost[SPX_WAY_IN], __ATOMIC_RELAXED),
           out = __atomic_load_n(&w->cost[SPX_WAY_OUT], __ATOMIC_RELAXED),
           get = __atomic_load_n(&w->cost[SPX_WAY_GET], __ATOMIC_RELAXED);
  bool gets = __atomic_load_n(&w->gets, __ATOMIC_RELAXED);
  uint32_t trials = __atomic_load_n(&w->trials, __ATOMIC_RELAXED);
  uint64_t stream = spx_ways_stream(in, out, how), is = gets ? get : stream,
           other = gets ? stream : get;
  if (in && out && get && other + other / 16 < is) {
    __atomic_store_n(&w->gets, gets = !gets, __ATOMIC_RELAXED);
    __atomic_store_n(&w->trials, trials = 0, __ATOMIC_RELAXED);
  }
  uint64_t before = __atomic_load_n(&w->tried, __ATOMIC_RELAXED);
  if (now < before || now - before < longest >> (SPX_WAYS_SURE - trials) ||
      !__atomic_compare_exchange_n(&w->tried, &before, now, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED))
    return gets;
  if (trials < SPX_WAYS_SURE) __atomic_store_n(&w->trials, trials + 1, __ATOMIC_RELAXED);
  return !gets;
}
#endif
