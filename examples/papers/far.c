/* far.c - rank 0 sends long messages to each other rank, and says how many further streams it has made for them, and whether they went through others (docs/papers.md, S5.9). */
#include <stdio.h>
#include <string.h>
#include "counters.h"

enum { LONG = 8 << 20, MESSAGES = 3 };

int main(int argc, char **argv)
{
  int rank, size, wrong = 0, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char *data = malloc(LONG);
  memset(data, rank, LONG);
  counter streams = count_from_here("spx_streams_opened", MPI_T_PVAR_CLASS_COUNTER);
  counter bytes = count_from_here("spx_bytes_further", MPI_T_PVAR_CLASS_COUNTER);
  for (int to = 1; to < size; to++) {
    long long had = counted(streams), went = counted(bytes);
    for (int m = 0; m < MESSAGES; m++) {
      if (rank == 0) MPI_Send(data, LONG, MPI_BYTE, to, 0, MPI_COMM_WORLD);
      if (rank != to) continue;
      MPI_Recv(data, LONG, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < LONG; i++) wrong += data[i] != 0;
      memset(data, rank, LONG);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
      printf("to rank %d: %lld further streams, which have carried %s\n", to, counted(streams) - had,
             counted(bytes) > went ? "a part of the messages" : "nothing");
  }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong bytes\n", all);
  free(data);
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
