/* many.c - every rank talks to every other one, in turn, and watches how many connections it has; the arguments are how many it may have, and how many messages each gets in a row (docs/papers.md, S1.10 and S5.4). */
#include <stdio.h>
#include "counters.h"

int main(int argc, char **argv)
{
  int rank, size, wrong = 0;
  long long own[3] = {0}, most[3], limit = argc > 1 ? atoi(argv[1]) : 1 << 20, row = argc > 2 ? atoi(argv[2]) : 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  counter open = count_from_here("spx_connections_open", MPI_T_PVAR_CLASS_LEVEL);
  counter evicted = count_from_here("spx_connections_evicted", MPI_T_PVAR_CLASS_COUNTER);
  for (int round = 0; round < 2; round++)
    for (int by = 1; by < size; by++) {
      int to = (rank + by) % size, from = (rank - by + size) % size;
      for (long long i = 0; i < row; i++) {
        long long out = rank * row + i, in;
        MPI_Sendrecv(&out, 1, MPI_LONG_LONG, to, round, &in, 1, MPI_LONG_LONG, from, round, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        wrong += in != from * row + i;
        if (counted(open) > own[0]) own[0] = counted(open);
      }
    }
  own[1] = counted(evicted);
  own[2] = wrong;
  MPI_Reduce(own, most, 3, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d ranks have talked, each to all others, twice; %lld wrong messages\n", size, most[2]);
    printf("connections of a rank: %s\n", most[0] > limit ? "MORE than allowed" : "never more than allowed");
    printf("closed because others were wanted: %s\n", most[1] ? "some" : "none");
  }
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
