/* way.h - whether long messages are streamed or got while messages of this process's own are on their way. docs/decisions/get.md,
 * "Both send at once".
 *
 * Decides only: times are arguments. A stream costs its sender one copy and its receiver another, and both have to wait for each
 * other's pieces; while both processes send, each does all of that, for one message in either direction. A get costs one copy by the
 * kernel. Which is less depends on whether the two processors share a cache, on the size, and on the machine, and it changes when the
 * kernel or a hypervisor moves them. So both are timed, by classes of size, and from time to time the other one is tried for a
 * few messages.
 */
#ifndef SPX_WAY_H
#define SPX_WAY_H
#include <stdbool.h>
#include <stdint.h>

#define SPX_WAY_SMALLEST 15u       /* class 0: messages below 2^15 bytes; each further class: twice as long */
#define SPX_WAY_CLASSES  8u        /* the last one has no end */
#define SPX_WAY_TRIAL    4u        /* messages of a trial */
#define SPX_WAY_LONG     262144u   /* bytes: one from this size on */
#define SPX_WAY_AGAIN    20000000u /* ns between trials, at least */
#define SPX_WAY_WORTH    64u       /* and so many times what one takes */
#define SPX_WAY_EVERY    7u /* one of so many pieces of streams is timed: not a divisor of their number in a message */

typedef enum { SPX_WAY_STREAM, SPX_WAY_GET, SPX_WAYS } spx_way_kind;

typedef struct {
  uint32_t cost[SPX_WAYS]; /* ps for a byte, on average; 0: not known */
  uint32_t trial;          /* messages that are left of one */
  uint64_t tried;          /* ns: when the last trial began */
  bool gets;               /* outside of trials */
} spx_way;

static inline uint32_t spx_way_class(uint64_t bytes)
{
  uint32_t log = 63u - (uint32_t)__builtin_clzll(bytes | 1),
           class = log < SPX_WAY_SMALLEST ? 0 : log - SPX_WAY_SMALLEST + 1;
  return class < SPX_WAY_CLASSES ? class : SPX_WAY_CLASSES - 1;
}

/* n bytes have come in ns. What took far longer than usual was interrupted: it counts as twice as long. */
static inline void spx_way_took(spx_way *w, spx_way_kind kind, uint64_t n, uint64_t ns)
{
  uint64_t cost = n ? ns * 1000 / n : 0, before = w->cost[kind];
  if (before && cost > 2 * before) cost = 2 * before;
  if (cost > 1000000) cost = 1000000;
  if (n) w->cost[kind] = (uint32_t)(before ? (3 * before + cost) / 4 : cost) | 1;
}

/* Is the next message, of so many bytes, got? Every so often the other way has its turn; it is taken for good when it is cheaper by an
 * eighth. Trials of long messages are of one message, and rarer: they would cost more than is to be won. */
static inline bool spx_way_gets(spx_way *w, uint64_t bytes, uint64_t now)
{
  if (w->trial > 0) {
    w->trial--;
    return !w->gets;
  }
  uint64_t is = w->cost[w->gets], other = w->cost[!w->gets];
  if (!is) return w->gets;
  if (other) w->gets ^= other + other / 8 < is;
  uint32_t messages = bytes < SPX_WAY_LONG ? SPX_WAY_TRIAL : 1;
  uint64_t worth = (other ? other : is) * bytes / 1000 * messages * SPX_WAY_WORTH;
  if (now - w->tried <= (worth > SPX_WAY_AGAIN ? worth : SPX_WAY_AGAIN)) return w->gets;
  w->tried = now;
  w->trial = messages - 1;
  return !w->gets;
}
#endif
