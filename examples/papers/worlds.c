/* worlds.c - an I/O process that says which worlds it is a member of, and hands on what comes in by two plain calls, both on MPI_COMM_WORLD (docs/papers.md, S1.1 to S1.3). */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <string.h>

static void describe(int index)
{
  MPI_Comm world;
  MPI_Info info;
  char name[64] = "", direction[16] = "";
  int size, rank, flag, length = sizeof name;
  MPISP_World_get(index, &world);
  MPI_Comm_size(world, &size);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_get_info(world, &info);
  MPI_Info_get_string(info, "spx_cluster", &length, name, &flag);
  length = sizeof direction;
  MPI_Info_get_string(info, "spx_direction", &length, direction, &flag);
  MPI_Info_free(&info);
  printf("world %d: %s, %d ranks, %s; my rank there: %s\n", index, name, size, direction,
         rank < 0 ? "none" : "an ordinary one");
}

int main(int argc, char **argv)
{
  int worlds, handed = 0;
  long x, from[8] = {0};
  MPI_Init(&argc, &argv);
  MPISP_World_count(&worlds);
  for (int i = 0; i < worlds; i++) describe(i);
  for (MPI_Status status;; handed++) {
    MPI_Recv(&x, 1, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status); /* the senders' world */
    if (status.MPI_SOURCE == MPI_PROC_NULL) break;
    from[status.MPI_SOURCE % 8]++;
    MPI_Send(&x, 1, MPI_LONG, 0, status.MPI_TAG, MPI_COMM_WORLD); /* the receivers' */
  }
  printf("MPI_COMM_WORLD: %ld received from its rank 0, %ld from its rank 1; %d sent to its rank 0\n", from[0], from[1],
         handed);
  MPI_Finalize();
  return 0;
}
