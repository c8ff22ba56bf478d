/* detect REPORT PICTURE [TIMES] - the last stage: rank r of n looks through the frames r, r + n, r + 2n ...; rank 0 collects what n ranks have found, and
 * writes a line for every frame, in order, into the file REPORT, and at the end a picture. TIMES: how far a target stands out (default 25). */
#include <mpi.h>
#include <mpisp.h>
#include "radar.h"

int main(int argc, char **argv)
{
  int rank, size, frame, count, *counts, frames = 0, all = 0;
  double *power = memory(CELLS * sizeof *power), times = argc > 3 ? atof(argv[3]) : 25;
  picture *p = memory(sizeof *p);
  detection found[MOST], *of_all;
  MPI_Status from;
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  counts = memory((size_t)size * sizeof *counts);
  of_all = memory((size_t)size * sizeof found);
  FILE *out = rank == 0 ? fopen(argv[1], "w") : NULL;
  if (rank == 0 && !out) {
    perror(argv[1]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (frame = rank;; frame += size) {
    MPI_Recv(power, CELLS, MPI_DOUBLE, MPISP_CLUSTER_IN, frame, MPI_COMM_WORLD, &from);
    count = from.MPI_SOURCE == MPI_PROC_NULL ? -1 : detect(frame, power, times, found); /* -1: nothing comes any more */
    if (frame == 0) draw_map(p, power);
    MPI_Allgather(&count, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Gather(found, sizeof found, MPI_BYTE, of_all, sizeof found, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < size && counts[r] >= 0; r++) {
      char line[4096];
      fwrite(line, 1, (size_t)report(line, sizeof line, frame + r, of_all + r * MOST, counts[r]), out);
      for (int i = 0; i < counts[r]; i++) draw_detection(p, of_all + r * MOST + i);
      frames++;
      all += counts[r];
    }
    if (counts[size - 1] < 0) break; /* who has none of this round is last */
  }
  if (rank == 0 && (fclose(out) || write_picture(p, argv[2]))) {
    perror("detect");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) printf("%d frames, %d detections\n", frames, all);
  MPI_Finalize();
  free(power);
  free(p);
  free(counts);
  free(of_all);
  return 0;
}
