/* sets.c - collectives of sets of ranks that have no communicator; the set comes as a bitmap with the task. Each result is checked (docs/papers.md, S2.9). */
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>

enum { TASKS = 50, TASK = 1, WORK = 2, MOST = 256 };

int main(int argc, char **argv)
{
  int rank, size, wrong = 0, all = 0, calls = 0, sum_of_calls;
  unsigned char bits[MOST / 8];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  srand(17);
  for (int t = 0; t < TASKS; t++) {
    int n = 0, first = 0, members[MOST], me = -1, got[MOST] = {0}, out[MOST], sum = 0, want = 0, in;
    for (int i = 0; i < MOST / 8; i++) bits[i] = 0;
    for (int r = 1; r < size;
         r++) /* rank 0 is the master, no member; all compute the same, but only the master needs to */
      if (rand() % 3 == 0 || (r == size - 1 && n == 0)) {
        bits[r / 8] |= (unsigned char)(1 << r % 8);
        if (r == rank) me = n;
        members[n++] = r;
        want += r;
      }
    if (rank > 0 && me < 0) continue; /* no member: it calls nothing */
    MPIX_Rankset set;
    if (rank == 0) {
      MPIX_Rankset_from_bitmap(MPI_COMM_WORLD, bits, &set);
      MPIX_Mcast(bits, MOST / 8, MPI_BYTE, set, TASK, MPI_COMM_WORLD);
      MPIX_Mreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, 0, set, WORK, MPI_COMM_WORLD);
      MPIX_Mgather(MPI_IN_PLACE, 1, MPI_INT, got, 1, MPI_INT, 0, set, WORK, MPI_COMM_WORLD);
      for (int i = 0; i < n; i++) wrong += got[i] != members[i];
      wrong += sum != want;
    } else {
      MPI_Recv(bits, MOST / 8, MPI_BYTE, MPI_ANY_SOURCE, TASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPIX_Rankset_from_bitmap(MPI_COMM_WORLD, bits, &set);
      MPIX_Mreduce(&rank, NULL, 1, MPI_INT, MPI_SUM, 0, set, WORK, MPI_COMM_WORLD);
      MPIX_Mgather(&rank, 1, MPI_INT, NULL, 1, MPI_INT, 0, set, WORK, MPI_COMM_WORLD);
      for (int i = 0; i < n; i++) out[i] = 1000 * rank + members[i];
      MPIX_Malltoall(out, 1, MPI_INT, got, 1, MPI_INT, set, WORK, MPI_COMM_WORLD);
      for (int i = 0; i < n; i++) wrong += got[i] != 1000 * members[i] + rank;
      in = rank;
      MPIX_Mallreduce(&in, &first, 1, MPI_INT, MPI_MIN, set, WORK, MPI_COMM_WORLD);
      wrong += first != members[0];
      MPIX_Mbarrier(set, WORK, MPI_COMM_WORLD);
    }
    calls++;
    MPIX_Rankset_free(&set);
  }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&calls, &sum_of_calls, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d sets, reduce, gather, alltoall, allreduce and barrier over each: %d wrong; on average %d of %d ranks "
           "took part\n",
           TASKS, all, (sum_of_calls - TASKS) / TASKS, size - 1);
  MPI_Finalize();
  return all != 0;
}
