/* input FRAMES [MS] - the first stage: rank r of n makes the frames r, r + n, r + 2n ... and sends them off, one every MS milliseconds. A frame's number is its
 * tag. Who takes over a rank whose process has died goes on at the frame of the last commit. */
#include <mpi.h>
#include <mpisp.h>
#include "radar.h"

int main(int argc, char **argv)
{
  int rank, size, frame, again, frames = argc > 1 ? atoi(argv[1]) : 100, pause = argc > 2 ? atoi(argv[2]) : 0;
  sample *cube = memory(CELLS * sizeof *cube);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPISP_Is_replacement(&again);
  frame = rank;
  MPISP_Register(&frame, 1, MPI_INT);
  MPISP_Commit();
  here("input", rank, again);
  while (frame < frames) {
    look(frame, cube);
    MPI_Send(cube, CELLS, MPI_C_DOUBLE_COMPLEX, MPISP_CLUSTER_OUT, frame, MPI_COMM_WORLD);
    frame += size;
    MPISP_Commit();
    if (pause) usleep(1000 * (useconds_t)pause);
  }
  MPI_Finalize();
  free(cube);
  return 0;
}
