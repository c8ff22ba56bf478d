/* deal.h - the processors for processes that are woken together, each for about the same work:
 * pure. load.c queries the system, and moves them. */
#ifndef SPX_DEAL_H
#define SPX_DEAL_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SPX_DEAL_CPUS 256 /* processors that are considered */

typedef struct {
  uint32_t share, on[SPX_DEAL_CPUS]; /* the part of each processor; what it has got */
} spx_deal;

/* n processes will be woken up from processor `here`, which has work of that kind, too; there are
 * so many processors. */
static inline void spx_deal_begin(spx_deal *d, uint32_t n, uint32_t cpus, uint32_t here)
{
  memset(d, 0, sizeof *d);
  d->share = (n + cpus) / cpus;
  if (here < SPX_DEAL_CPUS) d->on[here] = 1;
}

/* A process that slept on a processor returns there, while that one has not got its share. One that
 * slept on a processor not considered here returns, too. */
static inline bool spx_deal_stays(spx_deal *d, uint32_t slept)
{
  if (slept >= SPX_DEAL_CPUS) return true;
  if (d->on[slept] >= d->share) return false;
  d->on[slept]++;
  return true;
}

/* Else it gets the processor with the fewest of those that it may use; may: a bit each. Perhaps the
 * one where it slept. */
static inline uint32_t spx_deal_to(spx_deal *d, uint32_t slept,
                                   const uint64_t may[SPX_DEAL_CPUS / 64])
{
  uint32_t best = slept;
  for (uint32_t c = 0; c < SPX_DEAL_CPUS; c++)
    if (may[c / 64] >> c % 64 & 1 && d->on[c] < d->on[best]) best = c;
  d->on[best]++;
  return best;
}
#endif
