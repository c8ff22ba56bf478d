// run: n=1,2,4 timeout=60
// run: n=3 env=SPX_CMA=0 timeout=60
// run: n=3 env=SPX_TRANSPORTS=tcp timeout=60
/* Windows come and go, of all kinds, sizes and communicators, several at a time, so that memory is used again in another order than
 * it was given back. Memory that MPI allocates is zero at first, nobody sees what belongs to another window, and a window outlives
 * the communicator that it was made of. MPI-5.0, 12.2. */
#include "../check.h"
#include "near.h"
#include <stdlib.h>
#include <string.h>

enum { ALIVE = 5, ROUNDS = 150 };

typedef struct {
  MPI_Win win;
  long *mine, *own; /* own: to be freed */
  int n, rank, size;
} window;

static unsigned seed = 7; /* the same on all processes */
static int below(int n)
{
  seed = seed * 1103515245u + 12345u;
  return (int)((seed >> 8) % (unsigned)n);
}

static MPI_Comm some_comm(int rank)
{
  MPI_Comm c;
  switch (below(4)) {
  case 0: MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &c); break;
  case 1: MPI_Comm_dup(MPI_COMM_SELF, &c); break;
  default: MPI_Comm_dup(MPI_COMM_WORLD, &c);
  }
  return c;
}

static void make(window *w, int rank)
{
  static const int sizes[] = {1, 8, 500, 512, 2000, 70000};
  MPI_Comm c = some_comm(rank);
  int kind = below(4), zero = 1, near = are_near(c);
  MPI_Comm_rank(c, &w->rank);
  MPI_Comm_size(c, &w->size);
  w->n = sizes[below(6)];
  w->own = NULL;
  MPI_Aint bytes = w->n * (MPI_Aint)sizeof(long);
  switch (kind == 1 && !near ? 0 : kind) {
  case 0: MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, c, &w->mine, &w->win); break;
  case 1: MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, c, &w->mine, &w->win); break;
  default:
    w->mine = w->own = calloc((size_t)w->n, sizeof(long));
    MPI_Win_create(w->mine, bytes, sizeof(long), MPI_INFO_NULL, c, &w->win);
  }
  for (int i = 0; i < w->n; i++) zero &= w->mine[i] == 0;
  CHECK(zero);
  MPI_Barrier(c);
  MPI_Comm_free(&c);
}

/* Everybody adds to his right neighbour, at both ends. */
static void use(window *w, int round)
{
  int to = (w->rank + 1) % w->size, from = (w->rank + w->size - 1) % w->size, last = w->n - 1;
  long add = 1000 * round + w->rank, before[2] = {w->mine[0], w->mine[last]};
  MPI_Group g, all;
  int result;
  if (round % 3 == 0) {
    MPI_Win_fence(0, w->win);
    MPI_Accumulate(&add, 1, MPI_LONG, to, 0, 1, MPI_LONG, MPI_SUM, w->win);
    MPI_Accumulate(&add, 1, MPI_LONG, to, last, 1, MPI_LONG, MPI_SUM, w->win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
  } else {
    MPI_Win_get_group(w->win, &g);
    MPI_Win_get_group(w->win, &all);
    MPI_Group_compare(g, all, &result);
    CHECK(result == MPI_IDENT);
    MPI_Win_post(g, 0, w->win);
    MPI_Win_start(g, 0, w->win);
    MPI_Accumulate(&add, 1, MPI_LONG, to, 0, 1, MPI_LONG, MPI_SUM, w->win);
    MPI_Accumulate(&add, 1, MPI_LONG, to, last, 1, MPI_LONG, MPI_SUM, w->win);
    MPI_Win_complete(w->win);
    MPI_Win_wait(w->win);
    MPI_Group_free(&g);
    MPI_Group_free(&all);
  }
  long got = 1000 * round + from;
  CHECK(w->mine[last] == before[1] + (last ? got : 2 * got));
  CHECK(w->mine[0] == before[0] + (last ? got : 2 * got));
}

int main(int argc, char **argv)
{
  static window alive[ALIVE];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < ALIVE; i++) alive[i].win = MPI_WIN_NULL;
  for (int round = 1; round <= ROUNDS; round++) {
    window *w = &alive[below(ALIVE)];
    if (w->win != MPI_WIN_NULL) {
      MPI_Win_free(&w->win);
      CHECK(w->win == MPI_WIN_NULL);
      free(w->own);
    } else
      make(w, rank);
    for (int i = 0; i < ALIVE; i++)
      if (alive[i].win != MPI_WIN_NULL) use(&alive[i], round);
  }
  for (int i = 0; i < ALIVE; i++)
    if (alive[i].win != MPI_WIN_NULL) {
      MPI_Win_free(&alive[i].win);
      free(alive[i].own);
    }
  MPI_Finalize();
  return check_status();
}
