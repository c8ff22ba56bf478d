/* Rank 1 gives another root than the others. */
#include <mpi.h>

int main(int argc, char **argv)
{
  int rank, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, rank == 1 ? 1 : 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
