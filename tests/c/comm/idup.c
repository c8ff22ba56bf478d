/* MPI_Comm_idup (MPI-5.0, 7.4.2): several at once, completed in another order; none waits for another process at the call. */
// run: n=1,2,4,9
#include "../check.h"

enum { N = 8 };

static void ring(MPI_Comm c, int rank, int size)
{
  int got = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0, c,
               MPI_STATUS_IGNORE);
  CHECK(got == (rank + size - 1) % size);
}

/* The last rank sends after its own idup what rank 0, which decides the context, receives before its own. */
static void not_synchronizing(int rank, int size)
{
  MPI_Comm c;
  MPI_Request q;
  int word = 42;
  if (size == 1) return;
  if (rank == 0) MPI_Recv(&word, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Comm_idup(MPI_COMM_WORLD, &c, &q);
  if (rank == size - 1) MPI_Send(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  ring(c, rank, size);
  MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
  MPI_Comm c[N], d;
  MPI_Request q[N];
  int rank, size, result;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int k = 0; k < N; k++) MPI_Comm_idup(MPI_COMM_WORLD, &c[k], &q[k]);
  MPI_Comm_dup(MPI_COMM_WORLD, &d); /* a blocking one in between */
  for (int k = N - 1; k >= 0; k--) MPI_Wait(&q[k], MPI_STATUS_IGNORE);
  for (int k = 0; k < N; k++) {
    MPI_Comm_compare(c[k], d, &result);
    CHECK(result == MPI_CONGRUENT);
    ring(c[k], rank, size);
  }
  for (int k = 0; k < N; k++) MPI_Comm_free(&c[k]);
  MPI_Comm_free(&d);
  not_synchronizing(rank, size);
  MPI_Finalize();
  return check_status();
}
