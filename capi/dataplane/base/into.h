/* into.h - whether copies into memory that another process reads are stored past the caches.
 * docs/decisions/get.md, "Processors without a common cache".
 *
 * Decides only: times are arguments. Where the reader's processor shares a cache with ours, plain
 * stores are right: the data stay in that cache. Where it does not, each line has first to be taken
 * from the reader's cache, and a store past the caches takes a small part of the time. Which is the
 * case depends on the machine, and changes when the kernel or a hypervisor moves the processes. So
 * some of the copies are timed, and from time to time a few are made the other way.
 */
#ifndef SPX_INTO_H
#define SPX_INTO_H
#include <stdbool.h>
#include <stdint.h>

enum {
  SPX_INTO_TRIAL = 4,      /* copies of a trial, all of them timed */
  SPX_INTO_LONG = 1 << 18, /* bytes: one from this size on */
  SPX_INTO_WORTH = 64,     /* trials are at least so many times apart as they take */
  SPX_INTO_SOONER = 40,    /* the first pause between trials is this part of the longest */
};

typedef struct {
  /* ps for a byte, on average, of plain stores and of those past the caches; 0: not known */
  uint32_t cost[2];
  uint32_t until; /* copies until one is timed */
  uint32_t trial; /* copies that are left of one */
  uint64_t pause; /* ns between trials, at least; 0: none has been made */
  bool past;      /* outside of trials */
  uint64_t tried; /* ns: when the last trial began */
} spx_into;

/* Is the next copy timed? One of `every` is, and all of a trial. */
static inline bool spx_into_timed(spx_into *i, uint32_t every)
{
  if (i->until > 0) return i->until--, i->trial > 0;
  i->until = every - 1;
  return true;
}

/* Whether the next copy, of n bytes, which is timed, goes past the caches. Trials are at most
 * `longest` ns apart while their results agree, and farther if copies are long. */
static inline bool spx_into_next(spx_into *i, uint64_t n, uint64_t now, uint64_t longest)
{
  if (i->trial > 0) {
    i->trial--;
    return !i->past;
  }
  uint64_t soon = longest / SPX_INTO_SOONER, is = i->cost[i->past], other = i->cost[!i->past];
  if (!is) return i->past;
  if (other && other + other / 8 < is) {
    i->past = !i->past;
    i->pause = soon;
  }
  uint32_t copies = n < SPX_INTO_LONG ? SPX_INTO_TRIAL : 1;
  uint64_t worth = (other ? other : is) * n / 1000 * copies * SPX_INTO_WORTH;
  if (now - i->tried <= (worth > i->pause ? worth : i->pause)) return i->past;
  i->tried = now;
  /* twice as long after each that changed nothing */
  i->pause = i->pause < soon ? soon : 2 * i->pause;
  if (i->pause > longest) i->pause = longest;
  i->trial = copies - 1;
  return !i->past;
}

/* Do plain stores take longer than those past the caches? Not where both only wait for the data to
 * come from memory. */
static inline bool spx_into_apart(const spx_into *i)
{
  return i->cost[0] && i->cost[1] && 5ull * i->cost[0] > 4ull * i->cost[1];
}

/* A copy of n bytes has taken ns. Of the reader's copy nothing is known; from memory it takes
 * longer than from a cache, so stores past the caches count half as much again. What took far
 * longer than usual was interrupted: it counts as twice as long. */
static inline void spx_into_took(spx_into *i, bool past, uint64_t n, uint64_t ns)
{
  uint64_t cost = n ? ns * (past ? 1500 : 1000) / n : 0, before = i->cost[past];
  if (before && cost > 2 * before) cost = 2 * before;
  if (cost > 1000000) cost = 1000000;
  if (n) i->cost[past] = (uint32_t)(before ? (3 * before + cost) / 4 : cost) | 1;
}
#endif
