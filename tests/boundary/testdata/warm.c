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

/* Every collective operation, with arrays of counts that change from round to round; the nonblocking ones too. */
static void collectives(void)
{
  static int in[256], out[256], counts[16], displs[16], round;
  MPI_Request r[3];
  MPI_Comm c = MPI_COMM_WORLD;
  int root = 1 % size;
  round++;
  for (int i = 0; i < size; i++) counts[i] = 1 + (i + round) % 3, displs[i] = 4 * i;
  MPI_Bcast(in, 5, MPI_INT, root, c);
  MPI_Gather(in, 2, MPI_INT, out, 2, MPI_INT, root, c);
  MPI_Scatter(in, 2, MPI_INT, out, 2, MPI_INT, root, c);
  MPI_Allgather(in, 2, MPI_INT, out, 2, MPI_INT, c);
  MPI_Alltoall(in, 2, MPI_INT, out, 2, MPI_INT, c);
  MPI_Reduce(in, out, 3, MPI_INT, MPI_SUM, root, c);
  MPI_Allreduce(in, out, 3, MPI_INT, MPI_MAX, c);
  MPI_Reduce_scatter_block(in, out, 2, MPI_INT, MPI_SUM, c);
  MPI_Scan(in, out, 3, MPI_INT, MPI_SUM, c);
  MPI_Exscan(in, out, 3, MPI_INT, MPI_SUM, c);
  MPI_Gatherv(in, counts[rank], MPI_INT, out, counts, displs, MPI_INT, root, c);
  MPI_Scatterv(in, counts, displs, MPI_INT, out, counts[rank], MPI_INT, root, c);
  MPI_Ibarrier(c, &r[0]);
  MPI_Ibcast(in, 5, MPI_INT, root, c, &r[1]);
  MPI_Iallreduce(in, out, 3, MPI_INT, MPI_SUM, c, &r[2]);
  MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  void (*loop)(void) = !strcmp(argv[1], "barrier")       ? barrier
                       : !strcmp(argv[1], "pingpong")    ? pingpong
                       : !strcmp(argv[1], "collectives") ? collectives
                                                         : nonblocking;
  for (int i = 0; i < 10 + atoi(argv[2]); i++) loop();
  MPI_Finalize();
  return 0;
}
