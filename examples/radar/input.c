/* input FRAMES - the first stage: rank r of n makes the frames r, r + n, r + 2n ... and sends them off. A frame's number is its tag. */
#include <mpi.h>
#include <mpisp.h>
#include "radar.h"

int main(int argc, char **argv)
{
  int rank, size, frames = argc > 1 ? atoi(argv[1]) : 100;
  sample *cube = memory(CELLS * sizeof *cube);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int frame = rank; frame < frames; frame += size) {
    look(frame, cube);
    MPI_Send(cube, CELLS, MPI_C_DOUBLE_COMPLEX, MPISP_CLUSTER_OUT, frame, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  free(cube);
  return 0;
}
