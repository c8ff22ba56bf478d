/* route.c - the destination of a message: the sender named no rank, only that it leaves its
 * cluster. */
#include <stdint.h>
#include <stdlib.h>
#include "relay.h"

world *relay_from(relay *r, int cluster)
{
  for (int i = 0; i < r->worlds; i++)
    if (r->world[i].cluster == cluster) return &r->world[i];
  relay_fail("a message has come from cluster %d, which this I/O process does not belong to",
             cluster);
}

enum { ALIVE, LEFT, DEAD }; /* or not yet there: a message for it waits */

static void mark(const world *w, MPI_Group of, char *state, char as)
{
  MPI_Group all;
  int n = 0;
  MPI_Group_size(of, &n);
  if (n && MPI_Comm_group(w->comm, &all) == MPI_SUCCESS) {
    for (int i = 0, rank; i < n; i++)
      if (MPI_Group_translate_ranks(of, 1, &i, all, &rank) == MPI_SUCCESS && rank >= 0)
        state[rank] = as;
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
  w->hurt = dead + left > 0; /* a cluster may return */
  return left == w->size || (dead + left == w->size && !w->heals);
}

bool relay_may_take(const world *w, int rank)
{
  int state = state_of(w, rank);
  return state == ALIVE || (state == DEAD && w->heals && !w->lost[rank]);
}

/* Numbers from a number, as if by chance. */
static uint64_t mixed(uint64_t n)
{
  n += 0x9e3779b97f4a7c15u;
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
  n = (n ^ n >> 27) * 0x94d049bb133111ebu;
  return n ^ n >> 31;
}

/* The one in turn of so many, of the turn-th message of a sender. Each round begins with another
 * one: a part of the messages, as every second one, which is what one relay of several gets, is
 * shared out as well. */
static int in_turn(uint64_t turn, int of, uint64_t sender)
{
  uint64_t n = (uint64_t)of;
  return (int)((turn % n + mixed(turn / n ^ mixed(sender)) % n) % n);
}

/* A number for the sender of a message: its cluster and rank. */
static uint64_t sender_of(const MPI_Status *message)
{
  int cluster, rank;
  MPISP_Status_get_cluster(message, &cluster);
  MPISP_Status_get_rank(message, &rank);
  return (uint64_t)cluster << 32 | (uint32_t)rank;
}

/* The rank that the fewest messages wait for, of those that may take some; turns decide between
 * equal ones. */
static int least_waiting(world *w)
{
  int best = w->next++ % w->size;
  for (int i = 1; i < w->size; i++) {
    int rank = (best + i) % w->size;
    if (w->lost[best] != w->lost[rank] ? w->lost[best] : w->waiting[rank] < w->waiting[best])
      best = rank;
  }
  return best;
}

/* turn: of the messages that go to w, the number of this one, from 0; -1: it is not known. */
static choice choose_rank(const relay *r, world *w, const MPI_Status *message, MPI_Count turn)
{
  int source;
  MPISP_Status_get_rank(message, &source);
  if (w->next < 0) w->next = 0;
  switch (r->route) {
  case ROUTE_SPREAD:
    return (choice){
        w, turn < 0 ? w->next++ % w->size : in_turn((uint64_t)turn, w->size, sender_of(message)),
        false};
  case ROUTE_TAG: return (choice){w, message->MPI_TAG % w->size, false};
  case ROUTE_DEMAND: return (choice){w, least_waiting(w), w->size > 1};
  default: return (choice){w, source % w->size, false};
  }
}

choice relay_choose_rank(const relay *r, world *w, const MPI_Status *message)
{
  MPI_Count number;
  MPISP_Status_get_number(message, &number);
  choice c = choose_rank(r, w, message, number - 1);
  c.assign = false; /* it goes to several, each of which may be chosen anew */
  return c;
}

choice relay_choose(relay *r, world *from, const MPI_Status *message)
{
  MPI_Count number;
  int index, rank;
  MPISP_Status_get_assigned(message, &index, &rank); /* be it by a relay that is gone */
  if (index >= 0 && !relay_is_gone(&r->world[index])) return (choice){&r->world[index], rank, true};
  MPISP_Status_get_number(message, &number);
  if (from->turn < 0) from->turn = 0;
  int first = number ? in_turn((uint64_t)number - 1, from->tos, sender_of(message))
                     : from->turn++ % from->tos;
  for (int i = 0; i < from->tos; i++) {
    world *to = &r->world[from->to[(first + i) % from->tos]];
    if (relay_is_gone(to)) continue;
    choice c = choose_rank(r, to, message, number ? (number - 1) / from->tos : -1);
    c.assign |= i > 0 || index >= 0;
    return c;
  }
  return (choice){NULL, 0, false};
}
