/* Rank 0 sends a large message that nobody receives; rank 1 waits for something else. */
#include <mpi.h>
#include <stdlib.h>

#define N 1000000

int main(int argc, char **argv)
{
  int rank;
  double *data = calloc(N, sizeof *data);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) MPI_Send(data, N, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  free(data);
  MPI_Finalize();
  return 0;
}
