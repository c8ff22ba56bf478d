/* Rank 1 receives 2,000 messages a second, and sleeps for less than 1 ms for each. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  int rank, n = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (;; n++) {
    if (rank == 0) {
      MPI_Send(&n, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
      usleep(400);
    } else
      MPI_Recv(&n, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}
