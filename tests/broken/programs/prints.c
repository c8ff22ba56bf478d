/* Ranks print more than a small file system holds; with an argument rank 1 then dies of a signal. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 1000; i++) printf("line %d of rank %d, and some words to fill the file\n", i, rank);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1 && rank == 1) abort();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
