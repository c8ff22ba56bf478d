/* ring [rounds [bytes]]: messages round a ring, small and large, blocking and not, then collectives: every rank counts what it has sent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void once(int rank, int size, int n, int tag)
{
  char *out = calloc(1, (size_t)n), *in = calloc(1, (size_t)n);
  MPI_Request r[2];
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Irecv(in, n, MPI_BYTE, before, tag, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(out, n, MPI_BYTE, next, tag, MPI_COMM_WORLD, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Sendrecv(out, n, MPI_BYTE, next, tag + 1, in, n, MPI_BYTE, MPI_ANY_SOURCE, tag + 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Send(out, n, MPI_BYTE, next, tag + 2, MPI_COMM_WORLD);
  MPI_Recv(in, n, MPI_BYTE, before, tag + 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank != 0) MPI_Send(in, n, MPI_BYTE, next, tag + 2, MPI_COMM_WORLD);
  free(out);
  free(in);
}

int main(int argc, char **argv)
{
  int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 3, large = argc > 2 ? atoi(argv[2]) : 1000000;
  double x = 1, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < rounds; i++) {
    once(rank, size, 8, 10);
    once(rank, size, large, 20);
    MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
