/* detect REPORT PICTURE [TIMES] - the last stage: rank r of n looks through the frames r, r + n, r + 2n ...; rank 0 collects what n ranks have found, and
 * writes a line for every frame, in order, into the file REPORT, and at the end a picture. What it has written is part of what it commits: who takes over goes on there. TIMES: how far a target stands out (default 25). */
#include <fcntl.h>
#include <mpi.h>
#include <mpisp.h>
#include "radar.h"

enum { ROUNDS = 16 }; /* from commit to commit */
static struct {
  int frame, frames, all;
  off_t at; /* in the report */
  picture p;
} s;

int main(int argc, char **argv)
{
  int rank, size, again, count, *counts, done = 0;
  double *power = memory(CELLS * sizeof *power), times = argc > 3 ? atof(argv[3]) : 25;
  detection found[MOST] = {0}, *of_all;
  MPI_Status from;
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPISP_Is_replacement(&again);
  counts = memory((size_t)size * sizeof *counts);
  of_all = memory((size_t)size * sizeof found);
  int out = rank == 0 ? open(argv[1], O_WRONLY | O_CREAT | (again ? 0 : O_TRUNC), 0666) : -1;
  if (rank == 0 && out < 0) {
    perror(argv[1]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  s.frame = rank;
  MPISP_Register(&s, sizeof s, MPI_BYTE);
  MPISP_Commit();
  here("detect", rank, again);
  for (int round = 1; !done; round++, s.frame += size) {
    MPI_Recv(power, CELLS, MPI_DOUBLE, MPISP_CLUSTER_IN, s.frame, MPI_COMM_WORLD, &from);
    count =
        from.MPI_SOURCE == MPI_PROC_NULL ? -1 : detect(s.frame, power, times, found); /* -1: nothing comes any more */
    if (s.frame == 0) draw_map(&s.p, power);
    MPI_Allgather(&count, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Gather(found, sizeof found, MPI_BYTE, of_all, sizeof found, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < size && counts[r] >= 0; r++) {
      char line[4096];
      int n = report(line, sizeof line, s.frame + r, of_all + r * MOST, counts[r]);
      if (pwrite(out, line, (size_t)n, s.at) != n) MPI_Abort(MPI_COMM_WORLD, 1);
      s.at += n;
      for (int i = 0; i < counts[r]; i++) draw_detection(&s.p, of_all + r * MOST + i);
      s.frames++;
      s.all += counts[r];
    }
    done = counts[size - 1] < 0; /* who has none of this round is last */
    if (round % ROUNDS == 0 && !done) {
      s.frame += size;
      MPISP_Commit();
      s.frame -= size;
    }
  }
  if (rank == 0 && (close(out) || write_picture(&s.p, argv[2]))) {
    perror("detect");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) printf("%d frames, %d detections\n", s.frames, s.all);
  MPI_Finalize();
  free(power);
  free(counts);
  free(of_all);
  return 0;
}
