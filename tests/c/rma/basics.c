// run: n=1,2,5 timeout=60
// run: n=1,3 env=SPX_CMA=0 timeout=60
// run: n=1,2,4 env=SPX_TRANSPORTS=tcp timeout=60
/* Windows of all flavors: put, get and accumulates under fences, locks, and post-start-complete-wait give what a program on one
 * memory would. MPI-5.0, 12.2 to 12.5. With SPX_CMA=0 no process may read another: operations go by mail. With
 * SPX_TRANSPORTS=tcp, or between hosts, they are messages, and there is no shared memory. */
#include "../check.h"
#include "near.h"
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* A window of n longs, of each flavor; *base is its memory. */
static MPI_Win make(int flavor, int n, long **base)
{
  MPI_Win w;
  MPI_Aint bytes = n * (MPI_Aint)sizeof(long);
  switch (flavor) {
  case MPI_WIN_FLAVOR_ALLOCATE: MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, base, &w); break;
  case MPI_WIN_FLAVOR_SHARED:
    MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, base, &w);
    break;
  default: *base = malloc((size_t)bytes); MPI_Win_create(*base, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  }
  MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
  return w;
}

static void fences(MPI_Win w, long *base)
{
  for (int i = 0; i < size + 1; i++) base[i] = -1;
  CHECK(MPI_Win_fence(0, w) == MPI_SUCCESS);
  long mine = 100 + rank, one = 1;
  for (int t = 0; t < size; t++) {
    CHECK(MPI_Put(&mine, 1, MPI_LONG, t, rank, 1, MPI_LONG, w) == MPI_SUCCESS);
    for (int k = 0; k < 10; k++)
      CHECK(MPI_Accumulate(&one, 1, MPI_LONG, t, size, 1, MPI_LONG, MPI_SUM, w) == MPI_SUCCESS);
  }
  CHECK(MPI_Win_fence(0, w) == MPI_SUCCESS);
  for (int i = 0; i < size; i++) CHECK(base[i] == 100 + i);
  CHECK(base[size] == 10 * size - 1);
  long got[64];
  memset(got, 0, sizeof got);
  for (int t = 0; t < size; t++) CHECK(MPI_Get(&got[t], 1, MPI_LONG, t, t, 1, MPI_LONG, w) == MPI_SUCCESS);
  CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w) == MPI_SUCCESS);
  for (int t = 0; t < size; t++) CHECK(got[t] == 100 + t);
}

/* A counter that all add to by get and put under an exclusive lock, and by fetch-and-op under a shared one. */
static void locks(MPI_Win w, long *base)
{
  enum { ROUNDS = 50 };
  long v, one = 1, seen = -1;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w);
  base[0] = 0;
  MPI_Win_unlock(rank, w);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < ROUNDS; k++) {
    CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w) == MPI_SUCCESS);
    MPI_Get(&v, 1, MPI_LONG, 0, 0, 1, MPI_LONG, w);
    MPI_Win_flush(0, w);
    v++;
    MPI_Put(&v, 1, MPI_LONG, 0, 0, 1, MPI_LONG, w);
    CHECK(MPI_Win_unlock(0, w) == MPI_SUCCESS);
  }
  CHECK(MPI_Win_lock_all(0, w) == MPI_SUCCESS);
  for (int k = 0; k < ROUNDS; k++) {
    CHECK(MPI_Fetch_and_op(&one, &v, MPI_LONG, 0, 0, MPI_SUM, w) == MPI_SUCCESS);
    MPI_Win_flush_local(0, w);
    CHECK(v > seen); /* a counter that only grows */
    seen = v;
  }
  CHECK(MPI_Win_unlock_all(w) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w) == MPI_SUCCESS);
  CHECK(MPI_Fetch_and_op(NULL, &v, MPI_LONG, 0, 0, MPI_NO_OP, w) == MPI_SUCCESS);
  CHECK(MPI_Win_unlock(0, w) == MPI_SUCCESS);
  CHECK(v == 2L * ROUNDS * size);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Each process puts into the next one's window; groups of one. */
static void pscw(MPI_Win w, long *base)
{
  int next = (rank + 1) % size, before = (rank + size - 1) % size, flag = 0;
  MPI_Group all, to, from;
  MPI_Win_get_group(w, &all);
  MPI_Group_incl(all, 1, &next, &to);
  MPI_Group_incl(all, 1, &before, &from);
  for (int round = 0; round < 20; round++) {
    base[1] = -1;
    CHECK(MPI_Win_post(from, 0, w) == MPI_SUCCESS);
    CHECK(MPI_Win_start(to, 0, w) == MPI_SUCCESS);
    long v = 1000L * round + rank;
    CHECK(MPI_Put(&v, 1, MPI_LONG, next, 1, 1, MPI_LONG, w) == MPI_SUCCESS);
    CHECK(MPI_Win_complete(w) == MPI_SUCCESS);
    if (round % 2)
      CHECK(MPI_Win_wait(w) == MPI_SUCCESS);
    else
      for (flag = 0; !flag;) CHECK(MPI_Win_test(w, &flag) == MPI_SUCCESS);
    CHECK(base[1] == 1000L * round + before);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&to);
  MPI_Group_free(&from);
}

/* One process takes a lock by compare-and-swap; what it held last is counted. */
static void compare(MPI_Win w, long *base)
{
  MPI_Win_lock_all(0, w);
  base[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  long free_value = 0, mine = rank + 1, was, winners = 0, won;
  CHECK(MPI_Compare_and_swap(&mine, &free_value, &was, MPI_LONG, 0, 0, w) == MPI_SUCCESS);
  MPI_Win_flush(0, w);
  won = was == 0;
  MPI_Allreduce(&won, &winners, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK(winners == 1);
  if (!won) CHECK(was >= 1 && was <= size);
  MPI_Win_unlock_all(w);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* A column of a matrix travels into a column of the target's, and comes back by a get into a row. */
static void columns(MPI_Win w, long *base)
{
  enum { N = 7 };
  MPI_Datatype column;
  MPI_Type_vector(N, 1, N, MPI_LONG, &column);
  MPI_Type_commit(&column);
  long from[N * N], row[N], sums[N];
  int next = (rank + 1) % size;
  for (int i = 0; i < N * N; i++) from[i] = rank * 1000 + i, base[i] = 5;
  MPI_Win_fence(0, w);
  CHECK(MPI_Put(from + 2, 1, column, next, 3, 1, column, w) == MPI_SUCCESS);
  MPI_Win_fence(0, w);
  CHECK(MPI_Get(row, N, MPI_LONG, next, 3, 1, column, w) == MPI_SUCCESS);
  for (int i = 0; i < N; i++) CHECK(row[i] == rank * 1000 + i * N + 2);
  MPI_Win_fence(0, w);
  CHECK(MPI_Get_accumulate(row, N, MPI_LONG, sums, N, MPI_LONG, next, 3, 1, column, MPI_SUM, w) == MPI_SUCCESS);
  MPI_Win_fence(0, w);
  for (int i = 0; i < N; i++) {
    long there = (rank + size - 1) % size * 1000 + i * N + 2;
    CHECK(sums[i] == row[i] && base[i * N + 3] == 2 * there && base[i * N + 2] == 5);
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  MPI_Type_free(&column);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int flavors[] = {MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_CREATE};
  for (int f = 0; f < 3; f++) {
    long *base;
    if (flavors[f] == MPI_WIN_FLAVOR_SHARED && !are_near(MPI_COMM_WORLD)) continue;
    MPI_Win w = make(flavors[f], 64, &base);
    fences(w, base);
    locks(w, base);
    pscw(w, base);
    compare(w, base);
    columns(w, base);
    CHECK(MPI_Win_free(&w) == MPI_SUCCESS && w == MPI_WIN_NULL);
    if (flavors[f] == MPI_WIN_FLAVOR_CREATE) free(base);
  }
  MPI_Finalize();
  return check_status();
}
