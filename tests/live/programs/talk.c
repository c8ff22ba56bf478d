/* talk.c - traffic to be watched. Neighbours (0 and 1, 2 and 3, ...) talk with each other.
 *
 *   talk count N BYTES   each even rank sends N messages of BYTES to its neighbour, which answers none; then all but rank 0 are in a barrier, to which rank 0
 *                        comes when its standard input ends
 *   talk stream          they send a message of 64 bytes to and fro every millisecond, for ever; a neighbour's death is taken quietly
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, other;

static void count(int n, int bytes)
{
  char *buf = calloc(1, (size_t)bytes + 1);
  for (int i = 0; i < n; i++)
    if (rank % 2 == 0)
      MPI_Send(buf, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    else
      MPI_Recv(buf, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  free(buf);
  while (rank == 0 && getchar() != EOF)
    ;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void stream(void)
{
  char buf[64] = {0};
  struct timespec pause = {0, 1000000};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (;;) {
    int err = MPI_SUCCESS;
    if (rank % 2 == 0) err = MPI_Send(buf, sizeof buf, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    if (err == MPI_SUCCESS) err = MPI_Recv(buf, sizeof buf, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS && rank % 2) err = MPI_Send(buf, sizeof buf, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    nanosleep(&pause, NULL);
  }
}

int main(int argc, char **argv)
{
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  other = rank ^ 1;
  if (size % 2) {
    fprintf(stderr, "talk: an even number of ranks is needed\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (argc == 4 && !strcmp(argv[1], "count"))
    count(atoi(argv[2]), atoi(argv[3]));
  else
    stream();
  MPI_Finalize();
  return 0;
}
