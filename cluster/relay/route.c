/* route.c - whom a message goes to: the sender named no rank, only that it leaves its cluster. */
#include <stdlib.h>
#include "relay.h"

world *relay_from(relay *r, int cluster)
{
  for (int i = 0; i < r->worlds; i++)
    if (r->world[i].cluster == cluster) return &r->world[i];
  relay_fail("a message has come from cluster %d, which this I/O process does not belong to", cluster);
}

/* Which ranks of w are dead: one for each, behind each other; NULL: none. */
static bool *dead_ranks(const world *w)
{
  MPI_Group dead, all;
  bool *is = NULL;
  int n = 0;
  if (MPIX_Comm_get_failed(w->comm, &dead) != MPI_SUCCESS) return NULL;
  MPI_Group_size(dead, &n);
  if (n && MPI_Comm_group(w->comm, &all) == MPI_SUCCESS) {
    is = calloc((size_t)w->size, sizeof *is);
    for (int i = 0, rank; is && i < n; i++)
      if (MPI_Group_translate_ranks(dead, 1, &i, all, &rank) == MPI_SUCCESS && rank >= 0) is[rank] = true;
    MPI_Group_free(&all);
  }
  if (dead != MPI_GROUP_EMPTY) MPI_Group_free(&dead);
  return is;
}

static bool is_dead(const world *w, int rank)
{
  bool *dead = dead_ranks(w), is = dead && dead[rank];
  free(dead);
  return is;
}

void relay_has_ended(world *w, int rank)
{
  w->hurt = true;
  w->left[rank] = !is_dead(w, rank);
}

bool relay_is_gone(world *w)
{
  if (!w->hurt) return false;
  bool *dead = dead_ranks(w);
  int n = 0, left = 0;
  for (int i = 0; i < w->size; i++) {
    bool died = dead && dead[i];
    if (died) w->left[i] = false; /* the one that left came again, and has died */
    left += w->left[i];
    n += died;
  }
  free(dead);
  w->hurt = n + left > 0; /* a cluster may come again */
  return left == w->size || (n + left == w->size && !w->heals);
}

bool relay_is_awaited(const world *w, int rank) { return w->heals && is_dead(w, rank); }

world *relay_to(relay *r, world *from)
{
  if (from->turn < 0) from->turn = 0;
  for (int i = 0; i < from->tos; i++) {
    world *to = &r->world[from->to[from->turn++ % from->tos]];
    if (!relay_is_gone(to)) return to;
  }
  return NULL;
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
