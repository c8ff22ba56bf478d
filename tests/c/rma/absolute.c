// run: n=2,4
// run: n=2 env="SPX_CMA=0"
// run: n=3 env=SPX_TRANSPORTS=tcp
/* Buffers at MPI_BOTTOM, of datatypes with absolute addresses: each call that has an origin or a
 * result, blocking and with a request, in windows of the library's and of the user's memory. MPI-5.0,
 * 5.1.5 and 12.3. */
#include "../check.h"
#include <stdlib.h>

#define OK(call) CHECK_CLASS(call, MPI_SUCCESS)

enum { BLOCKS = 3, N = 4 * BLOCKS, SPACE = 4096 };

static int rank, size, peer, *mem, *origin, *result;

/* Two of every four elements: at absolute addresses, and relative to a window. */
static MPI_Datatype absolute(const int *a)
{
  MPI_Aint at[BLOCKS];
  MPI_Datatype t;
  for (int i = 0; i < BLOCKS; i++) OK(MPI_Get_address(a + 4 * i, at + i));
  OK(MPI_Type_create_hindexed_block(BLOCKS, 2, at, MPI_INT, &t));
  OK(MPI_Type_commit(&t));
  return t;
}

static void fill(int *a, int v)
{
  for (int i = 0; i < N; i++) a[i] = v < 0 ? v : v + i;
}

static void same(const int *a, int v)
{
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += a[i] != (i % 4 < 2 ? v + i : -1);
  CHECK(wrong == 0);
}

static void start(MPI_Win w)
{
  OK(MPI_Win_unlock_all(w));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  fill(mem, 1000 * rank);
  fill(origin, 100 * rank + 50);
  fill(result, -1);
  OK(MPI_Win_lock_all(0, w));
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* The calls that return something, into the result. */
static void fetched(MPI_Win w, MPI_Request *r)
{
  if (r) OK(MPI_Wait(r, MPI_STATUS_IGNORE));
  OK(MPI_Win_flush_local(peer, w));
  same(result, 1000 * peer);
}

/* What the peer before this one has done to this window, times the old values. */
static void stored(MPI_Win w, int times)
{
  OK(MPI_Win_flush(peer, w));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_sync(w));
  int from = (rank + size - 1) % size, wrong = 0;
  for (int i = 0; i < N; i++) {
    int old = 1000 * rank + i, new = 100 * from + 50 + i + times *old;
    wrong += mem[i] != (i % 4 < 2 ? new : old);
  }
  CHECK(wrong == 0);
}

static void fetches(MPI_Win w, MPI_Datatype o, MPI_Datatype got, MPI_Datatype there)
{
  MPI_Op ops[] = {MPI_NO_OP, MPI_REPLACE, MPI_SUM};
  for (int i = 0; i < 3; i++)
    for (int request = 0; request < 2; request++) {
      MPI_Request r = MPI_REQUEST_NULL;
      int n = ops[i] != MPI_NO_OP;
      start(w);
      if (request)
        OK(MPI_Rget_accumulate(MPI_BOTTOM, n, o, MPI_BOTTOM, 1, got, peer, 0, 1, there, ops[i], w, &r));
      else
        OK(MPI_Get_accumulate(MPI_BOTTOM, n, o, MPI_BOTTOM, 1, got, peer, 0, 1, there, ops[i], w));
      fetched(w, request ? &r : NULL);
      if (n) stored(w, ops[i] == MPI_SUM);
    }
}

static void all(MPI_Win w)
{
  MPI_Datatype o = absolute(origin), got = absolute(result), there;
  MPI_Request r = MPI_REQUEST_NULL;
  OK(MPI_Type_vector(BLOCKS, 2, 4, MPI_INT, &there));
  OK(MPI_Type_commit(&there));
  OK(MPI_Win_lock_all(0, w));
  fetches(w, o, got, there);

  start(w);
  OK(MPI_Get(MPI_BOTTOM, 1, got, peer, 0, 1, there, w));
  fetched(w, NULL);
  start(w);
  OK(MPI_Rget(MPI_BOTTOM, 1, got, peer, 0, 1, there, w, &r));
  fetched(w, &r);
  start(w);
  OK(MPI_Put(MPI_BOTTOM, 1, o, peer, 0, 1, there, w));
  stored(w, 0);
  start(w);
  OK(MPI_Rput(MPI_BOTTOM, 1, o, peer, 0, 1, there, w, &r));
  OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
  stored(w, 0);
  start(w);
  OK(MPI_Accumulate(MPI_BOTTOM, 1, o, peer, 0, 1, there, MPI_SUM, w));
  stored(w, 1);
  start(w);
  OK(MPI_Raccumulate(MPI_BOTTOM, 1, o, peer, 0, 1, there, MPI_SUM, w, &r));
  OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
  stored(w, 1);

  OK(MPI_Win_unlock_all(w));
  OK(MPI_Type_free(&o));
  OK(MPI_Type_free(&got));
  OK(MPI_Type_free(&there));
}

int main(int argc, char **argv)
{
  MPI_Win w;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  peer = (rank + 1) % size;
  origin = malloc(N * sizeof *origin);
  result = malloc(N * sizeof *result);
  OK(MPI_Win_allocate(SPACE, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &w));
  OK(MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN));
  all(w);
  OK(MPI_Win_free(&w));
  mem = malloc(SPACE);
  OK(MPI_Win_create(mem, SPACE, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &w));
  OK(MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN));
  all(w);
  OK(MPI_Win_free(&w));
  free(mem);
  free(origin);
  free(result);
  OK(MPI_Finalize());
  return check_status();
}
