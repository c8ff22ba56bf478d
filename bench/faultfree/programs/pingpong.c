/* pingpong.c - nanoseconds of half a round trip of 8 bytes between ranks 0 and 1: the median of many short measurements, each of ROUNDS round trips. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 2000, LOOKS = 101 };

static void round_trips(int rank)
{
  long x = 0;
  for (int i = 0; i < ROUNDS; i++) {
    if (rank == 0) MPI_Send(&x, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(&x, 1, MPI_LONG, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&x, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
  }
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
  double ns[LOOKS];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  round_trips(rank);
  for (int k = 0; k < LOOKS; k++) {
    double start = MPI_Wtime();
    round_trips(rank);
    ns[k] = (MPI_Wtime() - start) * 1e9 / (2 * ROUNDS);
  }
  qsort(ns, LOOKS, sizeof *ns, ascending);
  if (rank == 0) printf("%.2f ns\n", ns[LOOKS / 2]);
  MPI_Finalize();
  return 0;
}
