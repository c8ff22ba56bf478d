/* warm LOOP N: N rounds of a loop that must not enter Go, after as many rounds as make it warm. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void pingpong(void)
{
  char b[8] = "abcdefg";
  if (rank == 0) {
    MPI_Send(b, 8, MPI_CHAR, 1, 5, MPI_COMM_WORLD);
    MPI_Recv(b, 8, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(b, 8, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(b, 8, MPI_CHAR, 0, 5, MPI_COMM_WORLD);
  }
}

static void nonblocking(void)
{
  static int out[8], in[8];
  MPI_Request r[16];
  for (int i = 0; i < 8; i++) {
    MPI_Irecv(&in[i], 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD, &r[i]);
    MPI_Isend(&out[i], 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD, &r[8 + i]);
  }
  MPI_Waitall(16, r, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  void (*loop)(void) = !strcmp(argv[1], "barrier") ? barrier : !strcmp(argv[1], "pingpong") ? pingpong : nonblocking;
  for (int i = 0; i < 10 + atoi(argv[2]); i++) loop();
  MPI_Finalize();
  return 0;
}
