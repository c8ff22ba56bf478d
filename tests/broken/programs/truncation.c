/* The message is longer than the buffer of its receive. */
#include <mpi.h>

int main(int argc, char **argv)
{
  int rank, data[100] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    MPI_Send(data, 100, MPI_INT, 1, 5, MPI_COMM_WORLD);
  else
    MPI_Recv(data, 50, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
