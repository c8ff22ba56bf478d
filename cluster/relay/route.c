/* route.c - whom a message goes to: the sender named no rank, only that it leaves its cluster. */
#include <stdlib.h>
#include "relay.h"

world *relay_from(relay *r, int cluster)
{
  for (int i = 0; i < r->worlds; i++)
    if (r->world[i].cluster == cluster) return &r->world[i];
  relay_fail("a message has come from cluster %d, which this I/O process does not belong to", cluster);
}

enum { ALIVE, LEFT, DEAD }; /* or not yet there: a message for it waits */

static void mark(const world *w, MPI_Group of, char *state, char as)
{
  MPI_Group all;
  int n = 0;
  MPI_Group_size(of, &n);
  if (n && MPI_Comm_group(w->comm, &all) == MPI_SUCCESS) {
    for (int i = 0, rank; i < n; i++)
      if (MPI_Group_translate_ranks(of, 1, &i, all, &rank) == MPI_SUCCESS && rank >= 0) state[rank] = as;
    MPI_Group_free(&all);
  }
  if (of != MPI_GROUP_EMPTY) MPI_Group_free(&of);
}

/* How the ranks of w are now, behind each other. */
static char *states(const world *w)
{
  char *state = calloc((size_t)w->size, sizeof *state);
  MPI_Group some;
  if (!state) relay_fail("no memory");
  if (MPISP_World_left(w->comm, &some) == MPI_SUCCESS) mark(w, some, state, LEFT);
  if (MPIX_Comm_get_failed(w->comm, &some) == MPI_SUCCESS) mark(w, some, state, DEAD);
  return state;
}

static int state_of(const world *w, int rank)
{
  char *all = states(w), state = all[rank];
  free(all);
  return state;
}

bool relay_is_gone(world *w)
{
  if (!w->hurt) return false;
  char *state = states(w);
  int dead = 0, left = 0;
  for (int i = 0; i < w->size; i++) {
    dead += state[i] == DEAD;
    left += state[i] == LEFT;
  }
  free(state);
  w->hurt = dead + left > 0; /* a cluster may come again */
  return left == w->size || (dead + left == w->size && !w->heals);
}

bool relay_may_take(const world *w, int rank)
{
  int state = state_of(w, rank);
  return state == ALIVE || (state == DEAD && w->heals && !w->lost[rank]);
}

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
