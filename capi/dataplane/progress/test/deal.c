/* Processes woken together are spread over the processors (deal.h): whatever they slept on, no
 * processor gets more than its share where they may use others, none is moved without need, and
 * none to a processor that it may not run on. */
// sanitize: address,undefined
#include "deal.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(ok)                                                                                  \
  do {                                                                                             \
    if (!(ok)) {                                                                                   \
      fprintf(stderr, "deal.c:%d: %s (%u processes on %u processors)\n", __LINE__, #ok, n, cpus);  \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static uint64_t dice = 1;
static uint32_t rnd(uint32_t below)
{
  dice = dice * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(dice >> 33) % below;
}

/* All slept on a few processors; each may use any, or one alone. */
static void one_case(uint32_t n, uint32_t cpus, uint32_t few, bool bound)
{
  spx_deal d;
  uint32_t got[SPX_DEAL_CPUS] = {0}, had[SPX_DEAL_CPUS] = {0}, here = rnd(cpus), moved = 0;
  spx_deal_begin(&d, n, cpus, here);
  got[here]++;
  had[here]++;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t slept = rnd(few), to = slept;
    uint64_t may[SPX_DEAL_CPUS / 64] = {0};
    for (uint32_t c = 0; c < cpus; c++)
      if (!bound || c == slept) may[c / 64] |= (uint64_t)1 << c % 64;
    had[slept]++;
    if (!spx_deal_stays(&d, slept)) to = spx_deal_to(&d, slept, may);
    CHECK(may[to / 64] >> to % 64 & 1);
    moved += to != slept;
    got[to]++;
  }
  uint32_t share = (n + cpus) / cpus, above = 0;
  for (uint32_t c = 0; c < cpus; c++) {
    CHECK(bound || got[c] <= share);
    if (had[c] > share) above += had[c] - share;
  }
  CHECK(bound ? moved == 0 : (moved == 0) == (above == 0));
}

int main(void)
{
  spx_deal d;
  for (uint32_t cpus = 1; cpus <= SPX_DEAL_CPUS; cpus = cpus * 2 + rnd(2))
    for (uint32_t n = 1; n < 70; n++)
      for (uint32_t few = 1; few <= cpus; few = few * 3 + 1) {
        one_case(n, cpus, few, false);
        one_case(n, cpus, few, true);
      }
  spx_deal_begin(&d, 3, 2, SPX_DEAL_CPUS + 7);
  return !spx_deal_stays(&d, UINT32_MAX); /* one that has not published where it slept */
}
