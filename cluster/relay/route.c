/* route.c - whom a message goes to: the sender named no rank, only that it leaves its cluster. */
#include "relay.h"

world *relay_from(relay *r, int cluster)
{
  for (int i = 0; i < r->worlds; i++)
    if (r->world[i].cluster == cluster) return &r->world[i];
  relay_fail("a message has come from cluster %d, which this I/O process does not belong to", cluster);
}

/* The rank that the fewest messages wait for; turns decide between equal ones. */
static int least_waiting(world *w)
{
  int best = w->next++ % w->size;
  for (int i = 1; i < w->size; i++) {
    int rank = (best + i) % w->size;
    if (w->waiting[rank] < w->waiting[best]) best = rank;
  }
  return best;
}

int relay_rank(const relay *r, world *w, int source, int tag)
{
  if (w->next < 0) w->next = 0;
  switch (r->route) {
  case ROUTE_SPREAD: return w->next++ % w->size;
  case ROUTE_TAG: return tag % w->size;
  case ROUTE_DEMAND: return least_waiting(w);
  default: return source % w->size;
  }
}
