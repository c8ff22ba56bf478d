/* compress - the second stage: whatever frame comes in goes out compressed, until nothing comes any more. */
#include <mpi.h>
#include <mpisp.h>
#include "radar.h"

int main(int argc, char **argv)
{
  sample *cube = memory(CELLS * sizeof *cube);
  MPI_Status from;
  MPI_Init(&argc, &argv);
  for (;;) {
    MPI_Recv(cube, CELLS, MPI_C_DOUBLE_COMPLEX, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &from);
    if (from.MPI_SOURCE == MPI_PROC_NULL) break;
    compress(cube);
    MPI_Send(cube, CELLS, MPI_C_DOUBLE_COMPLEX, MPISP_CLUSTER_OUT, from.MPI_TAG, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  free(cube);
  return 0;
}
