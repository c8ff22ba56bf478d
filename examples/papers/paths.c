/* paths.c - one interface for all peers: rank 0 sends the same way to each other rank, and says by which path the message has gone (docs/papers.md, S4.1). */
#include <stdio.h>
#include <string.h>
#include "counters.h"

int main(int argc, char **argv)
{
  int rank, size, length;
  char host[MPI_MAX_PROCESSOR_NAME], other[MPI_MAX_PROCESSOR_NAME];
  static char data[1 << 20];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  memset(host, 0, sizeof host);
  MPI_Get_processor_name(host, &length);
  counter sockets = count_from_here("spx_connections_opened", MPI_T_PVAR_CLASS_COUNTER);
  if (rank > 0) {
    MPI_Recv(data, sizeof data, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(host, sizeof host, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  }
  for (int to = 1; to < size && rank == 0; to++) {
    long long had = counted(sockets);
    MPI_Send(data, sizeof data, MPI_BYTE, to, 0, MPI_COMM_WORLD);
    MPI_Recv(other, sizeof other, MPI_BYTE, to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("to rank %d on %s: %s\n", to, strcmp(host, other) ? "another host" : "this host",
           counted(sockets) > had ? "over a connection, which was made for it"
                                  : "through shared memory, without a connection");
  }
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
