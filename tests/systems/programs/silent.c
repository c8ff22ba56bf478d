/* silent MS WORD...: rank 0 takes a message of rank 1 and computes for MS ms, while another one waits for it; then it takes that. A WORD alive=N says MPISP_Alive(N) before,
 * sleep: it sleeps instead. */
#define _GNU_SOURCE
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  int rank, n = 0;
  double ms = argc > 1 ? atof(argv[1]) : 0;
  int alive = -1, sleeps = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 2; i < argc; i++) {
    if (sscanf(argv[i], "alive=%d", &alive) != 1) sleeps = !strcmp(argv[i], "sleep");
  }
  if (rank == 1)
    for (int i = 0; i < 2; i++) {
      MPI_Send(&i, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
      usleep(100000); /* the other one has taken it, and is in no call when the next one comes */
    }
  if (rank == 0) {
    MPI_Recv(&n, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (alive >= 0) MPISP_Alive(alive);
    if (sleeps) usleep((useconds_t)(ms * 1000));
    for (double end = MPI_Wtime() + ms * 1e-3; !sleeps && MPI_Wtime() < end;) n++;
    MPI_Recv(&n, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("done\n");
  MPI_Finalize();
  return 0;
}
