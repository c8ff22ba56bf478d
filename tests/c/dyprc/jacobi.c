/* A stencil whose number of processes changes while it runs, as in figure 3 of the paper on DyProReconf: a failure or a command from
 * outside leads back to ulfm_dyprc_setjmp, where all restore the last checkpoint that all have. The arithmetic is that of integers:
 * whatever has happened, the result must be what one process computes alone, in every bit.
 *
 *     jacobi steps N       ends after N steps
 *     jacobi stop FILE     ends when FILE exists, at the next checkpoint */
// run: n=1,4 args="steps 300" stdout~"^right after 300 steps"
#include <mpi.h>
#include <mpi-ext.h>
#include <ulfm_dyprc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CELLS = 480, EVERY = 10 };
typedef struct {
  int64_t step; /* -1: none */
  int64_t last;
  uint64_t cell[CELLS];
} version;

static MPI_Comm mworld;
static version saved[2]; /* the two latest: a failure may come while some have the newer one already */
static version now;
static const char *stop;
static int64_t begin; /* what now.last is at first */

static int first_of(int rank, int size) { return (int)((int64_t)CELLS * rank / size); }

static uint64_t next(uint64_t left, uint64_t mine, uint64_t right, int i)
{
  return left * 3 + mine * 0x9e3779b97f4a7c15u + right * 5 + (uint64_t)i;
}

static void alone(version *v, int64_t steps)
{
  uint64_t old[CELLS];
  for (int i = 0; i < CELLS; i++) v->cell[i] = (uint64_t)i;
  for (v->step = 0; v->step < steps; v->step++) {
    memcpy(old, v->cell, sizeof old);
    for (int i = 0; i < CELLS; i++) v->cell[i] = next(old[(i + CELLS - 1) % CELLS], old[i], old[(i + 1) % CELLS], i);
  }
}

/* Everybody gets everything. */
static void call_checkpoint(void)
{
  int rank, size, count[CELLS], at[CELLS];
  MPI_Comm_rank(mworld, &rank);
  MPI_Comm_size(mworld, &size);
  version *v = &saved[now.step / EVERY % 2];
  for (int r = 0; r < size; r++) {
    at[r] = first_of(r, size);
    count[r] = first_of(r + 1, size) - at[r];
  }
  v->step = -1;
  MPI_Allgatherv(now.cell + at[rank], count[rank], MPI_UINT64_T, v->cell, count, at, MPI_UINT64_T, mworld);
  v->step = now.step;
  v->last = now.last;
}

/* The latest version that all have who have any; the others get it from one of them. */
static void call_restore(void)
{
  int rank, size, from;
  MPI_Comm_rank(mworld, &rank);
  MPI_Comm_size(mworld, &size);
  int64_t newest = saved[0].step > saved[1].step ? saved[0].step : saved[1].step, step;
  if (newest < 0) newest = INT64_MAX;
  MPI_Allreduce(&newest, &step, 1, MPI_INT64_T, MPI_MIN, mworld);
  version *v = NULL;
  for (int k = 0; k < 2; k++)
    if (saved[k].step == step) v = &saved[k];
  int mine = v ? rank : size;
  MPI_Allreduce(&mine, &from, 1, MPI_INT, MPI_MIN, mworld);
  if (step == INT64_MAX) { /* nobody has any yet */
    alone(&now, 0);
    now.last = begin;
    return;
  }
  if (from == size) {
    fprintf(stderr, "rank %d of %d: nobody has version %lld\n", rank, size, (long long)step);
    MPI_Abort(MPI_COMM_WORLD, 5);
  }
  version got;
  if (v) got = *v;
  MPI_Bcast(&got, sizeof got, MPI_BYTE, from, mworld);
  now = got;
  saved[step / EVERY % 2] = got;
  saved[(step / EVERY + 1) % 2].step = -1;
}

static void step(void)
{
  int rank, size;
  MPI_Comm_rank(mworld, &rank);
  MPI_Comm_size(mworld, &size);
  uint64_t old[CELLS + 2];
  int a = first_of(rank, size), n = first_of(rank + 1, size) - a, left = (rank + size - 1) % size,
      right = (rank + 1) % size;
  memcpy(old + 1, now.cell + a, (size_t)n * sizeof *old);
  MPI_Sendrecv(&old[1], 1, MPI_UINT64_T, left, 1, &old[n + 1], 1, MPI_UINT64_T, right, 1, mworld, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&old[n], 1, MPI_UINT64_T, right, 2, &old[0], 1, MPI_UINT64_T, left, 2, mworld, MPI_STATUS_IGNORE);
  for (int i = 0; i < n; i++) now.cell[a + i] = next(old[i], old[i + 1], old[i + 2], a + i);
  now.step++;
}

static void call_calc(void)
{
  for (int i = 0; i < EVERY; i++) {
    step();
    ulfm_dyprc_poll(mworld);
  }
  if (now.last == INT64_MAX && stop && access(stop, F_OK) == 0)
    now.last = now.step + EVERY; /* what rank 0 sees counts */
  MPI_Bcast(&now.last, 1, MPI_INT64_T, 0, mworld);
}

static void main_loop(int newcomer)
{
  for (;;) {
    if (ulfm_dyprc_setjmp(mworld, newcomer) != 0)
      call_restore();
    else
      call_checkpoint();
    if (now.step >= now.last) return;
    call_calc();
  }
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  begin = argc > 2 && strcmp(argv[1], "steps") == 0 ? atoll(argv[2]) : INT64_MAX;
  if (argc > 2 && strcmp(argv[1], "stop") == 0) stop = argv[2];
  saved[0].step = saved[1].step = -1;
  int newcomer = ulfm_dyprc_merge_child(&mworld);
  if (!newcomer) alone(&now, 0);
  now.last = begin;
  main_loop(newcomer);
  static version right;
  version *v = &saved[now.step / EVERY % 2];
  int rank, size;
  MPI_Comm_rank(mworld, &rank);
  MPI_Comm_size(mworld, &size);
  if (rank == 0) alone(&right, now.step);
  MPI_Bcast(right.cell, CELLS, MPI_UINT64_T, 0, mworld);
  int same = memcmp(right.cell, v->cell, sizeof right.cell) == 0;
  if (!same) fprintf(stderr, "rank %d of %d: wrong after %lld steps\n", rank, size, (long long)now.step);
  if (rank == 0 && same) printf("right after %lld steps, %d processes at the end\n", (long long)now.step, size);
  MPI_Finalize();
  return !same;
}
