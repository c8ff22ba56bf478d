/* Rank 0 sends with tag 9, rank 1 receives tag 8. */
#include <mpi.h>

int main(int argc, char **argv)
{
  int rank, x = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    MPI_Send(&x, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
    MPI_Recv(&x, 1, MPI_INT, 1, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&x, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&x, 1, MPI_INT, 0, 10, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
