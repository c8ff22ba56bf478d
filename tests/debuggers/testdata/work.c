/* The sum, over ranks, of a variable that only a debugger sets. With an argument each process exits with that status, after MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

volatile int seen_by_debugger = 0;

int main(int argc, char **argv)
{
  int rank, mine, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  mine = seen_by_debugger;
  MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("rank 0 sum %d\n", sum);
  MPI_Finalize();
  return argc > 1 ? atoi(argv[1]) : 0;
}
