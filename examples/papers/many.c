/* many.c - every rank talks to every other one, in turn, and watches how many connections it has; the argument is how many it may have (docs/papers.md, S1.10). */
#include <stdio.h>
#include "counters.h"

int main(int argc, char **argv)
{
  int rank, size, x, wrong = 0;
  long long own[3] = {0}, most[3], limit = argc > 1 ? atoi(argv[1]) : 1 << 20;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  counter open = count_from_here("spx_connections_open", MPI_T_PVAR_CLASS_LEVEL);
  counter evicted = count_from_here("spx_connections_evicted", MPI_T_PVAR_CLASS_COUNTER);
  for (int round = 0; round < 2; round++)
    for (int by = 1; by < size; by++) {
      int to = (rank + by) % size, from = (rank - by + size) % size;
      MPI_Sendrecv(&rank, 1, MPI_INT, to, round, &x, 1, MPI_INT, from, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      wrong += x != from;
      if (counted(open) > own[0]) own[0] = counted(open);
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
