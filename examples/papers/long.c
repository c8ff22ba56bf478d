/* long.c - messages of one size from rank 0 to rank 1, each answered: how they have gone, and how many MB in a second (docs/papers.md, S4.2, S4.3, S4.6).
 *
 *     spxrun -n 2 ./long BYTES [MESSAGES] */
#include <stdio.h>
#include <string.h>
#include "counters.h"

int main(int argc, char **argv)
{
  int rank, bytes = argc > 1 ? atoi(argv[1]) : 200000, n = argc > 2 ? atoi(argv[2]) : 1000, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *data = malloc((size_t)bytes);
  static const char *const names[] = {"spx_messages_announced", "spx_gets", "spx_streams"};
  counter c[3];
  for (int i = 0; i < 3; i++) c[i] = count_from_here(names[i], MPI_T_PVAR_CLASS_COUNTER);
  counter direct = count_from_here("spx_bytes_direct", MPI_T_PVAR_CLASS_AGGREGATE);
  memset(data, 1 - rank, (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  for (int i = 0; i < n; i++) {
    if (rank == 0) {
      data[i % bytes] = (char)i;
      MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      wrong += data[i % bytes] != (char)i;
      MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  }
  double took = MPI_Wtime() - begin;
  long long own[4] = {counted(c[0]), counted(c[1]), counted(c[2]), counted(direct) / bytes}, all[4];
  MPI_Reduce(own, all, 4, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d messages of %d bytes, %d wrong: %lld announced, %lld read by the receiver, %lld in pieces, %lld "
           "straight to the socket; %.1f MB in a second\n",
           n, bytes, wrong, all[0], all[1], all[2], all[3], 1e-6 * bytes * n / took);
  free(data);
  MPI_T_finalize();
  MPI_Finalize();
  return wrong != 0;
}
