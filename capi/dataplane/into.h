/* into.h - whether copies into memory that another process reads are stored past the caches. docs/decisions/get.md, "Processors without
 * a common cache".
 *
 * Decides only: times are arguments. Where the reader's processor shares a cache with ours, plain stores are right: the data stay in that
 * cache. Where it does not, each line has first to be taken from the reader's cache, and a store past the caches takes a small part of
 * the time. Which is the case depends on the machine, and changes when the kernel or a hypervisor moves the processes. So some of the copies
 * are timed, and from time to time a few are made the other way.
 */
#ifndef SPX_INTO_H
#define SPX_INTO_H
#include <stdbool.h>
#include <stdint.h>

#define SPX_INTO_LEAST 2048u /* bytes of copies for which this is asked */
#define SPX_INTO_MOST                                                                                                  \
  262144u /* bytes of messages: longer ones come from memory, and reading them there again costs more than is won */
#define SPX_INTO_EVERY 16u     /* one of so many is timed */
#define SPX_INTO_TRIAL 4u      /* copies of a trial, all of them timed */
#define SPX_INTO_LONG  262144u /* bytes: one from this size on */
#define SPX_INTO_SOON  500000u /* ns between trials, at least, at first; twice as long after each that changed nothing */
#define SPX_INTO_AGAIN 20000000u /* and at most, unless copies are long: */
#define SPX_INTO_WORTH 64u       /* so many times what a trial takes */

typedef struct {
  uint32_t cost[2]; /* ps for a byte, on average, of plain stores and of those past the caches; 0: not known */
  uint32_t copies;
  uint32_t trial; /* copies that are left of one */
  uint32_t pause; /* ns between trials; 0: none has been made */
  bool past;      /* outside of trials */
  uint64_t tried; /* ns: when the last trial began */
} spx_into;

/* Is the next copy timed? */
static inline bool spx_into_timed(spx_into *i) { return ++i->copies % SPX_INTO_EVERY == 0 || i->trial > 0; }

/* Whether the next copy, of n bytes, which is timed, goes past the caches. */
static inline bool spx_into_next(spx_into *i, uint64_t n, uint64_t now)
{
  if (i->trial > 0) {
    i->trial--;
    return !i->past;
  }
  uint64_t is = i->cost[i->past], other = i->cost[!i->past];
  if (!is) return i->past;
  if (other && other + other / 8 < is) {
    i->past = !i->past;
    i->pause = SPX_INTO_SOON;
  }
  uint32_t copies = n < SPX_INTO_LONG ? SPX_INTO_TRIAL : 1;
  uint64_t worth = (other ? other : is) * n / 1000 * copies * SPX_INTO_WORTH;
  if (now - i->tried <= (worth > i->pause ? worth : i->pause)) return i->past;
  i->tried = now;
  i->pause = i->pause < SPX_INTO_SOON ? SPX_INTO_SOON : i->pause > SPX_INTO_AGAIN / 2 ? SPX_INTO_AGAIN : 2 * i->pause;
  i->trial = copies - 1;
  return !i->past;
}

/* Do plain stores take longer than those past the caches? Not where both only wait for the data to come from memory. */
static inline bool spx_into_apart(const spx_into *i)
{
  return i->cost[0] && i->cost[1] && 5ull * i->cost[0] > 4ull * i->cost[1];
}

/* A copy of n bytes has taken ns. Of the reader's copy nothing is known; from memory it takes longer than from a cache, so stores past
 * the caches count half as much again. What took far longer than usual was interrupted: it counts as twice as long. */
static inline void spx_into_took(spx_into *i, bool past, uint64_t n, uint64_t ns)
{
  uint64_t cost = n ? ns * (past ? 1500 : 1000) / n : 0, before = i->cost[past];
  if (before && cost > 2 * before) cost = 2 * before;
  if (cost > 1000000) cost = 1000000;
  if (n) i->cost[past] = (uint32_t)(before ? (3 * before + cost) / 4 : cost) | 1;
}
#endif
