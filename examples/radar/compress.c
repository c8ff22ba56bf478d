/* compress - the second stage: whatever frame comes in goes out compressed, until nothing comes any more. */
#include <mpi.h>
#include <mpisp.h>
#include "radar.h"

int main(int argc, char **argv)
{
  sample *cube = memory(CELLS * sizeof *cube);
  MPI_Status from;
  MPI_Init(&argc, &argv);
  int rank, again;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPISP_Is_replacement(&again);
  MPISP_Commit();
  here("compress", rank, again);
  for (;;) {
    MPI_Recv(cube, CELLS, MPI_C_DOUBLE_COMPLEX, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &from);
    if (from.MPI_SOURCE == MPI_PROC_NULL) break;
    compress(cube);
    MPI_Send(cube, CELLS, MPI_C_DOUBLE_COMPLEX, MPISP_CLUSTER_OUT, from.MPI_TAG, MPI_COMM_WORLD);
    MPISP_Commit(); /* nothing to be remembered but that this frame is done */
  }
  MPI_Finalize();
  free(cube);
  return 0;
}
