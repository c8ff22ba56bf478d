/* All ranks send all others a word, again and again, in short messages and in long ones, and check what comes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char word[] = "plain-word-of-a-message-";

static int exchange(int rank, int n, int words)
{
  int bytes = words * (int)(sizeof word - 1), wrong = 0;
  char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
  for (int i = 0; i < words; i++) memcpy(out + (size_t)i * (sizeof word - 1), word, sizeof word - 1);
  for (int step = 1; step < n; step++) {
    memset(in, 0, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + step) % n, 0, in, bytes, MPI_CHAR, (rank - step + n) % n, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong += memcmp(in, out, (size_t)bytes) != 0;
  }
  free(out);
  free(in);
  return wrong;
}

int main(int argc, char **argv)
{
  int rank, n, wrong = 0, all;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  for (int words = 1; words < 200000; words *= 3) wrong += exchange(rank, n, words);
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\n", all);
  MPI_Finalize();
  return all != 0 && rank == 0;
}
