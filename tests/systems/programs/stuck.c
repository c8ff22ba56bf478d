/* stuck: `stuck front`: two ranks wait for each other and never send anything to the other cluster. `stuck back`: rank 0 waits for the other
 * cluster, the others for rank 0. */
#include <mpi.h>
#include <mpisp.h>
#include <string.h>

int main(int argc, char **argv)
{
  int rank, x = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(argv[1], "front") == 0) {
    MPI_Recv(&x, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&x, 1, MPI_INT, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD);
  } else {
    if (rank == 0) MPI_Recv(&x, 1, MPI_INT, MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
