/* copies MS: two ranks, and what a message and a commit take there, for MS ms each. "NAME VALUE" on standard output, by rank 0: half of a round trip, the next send in a row, and a commit with a round trip behind it, in us. */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 16 << 20 };
static char data[MOST];
static struct {
  int rest;
  char bytes[4096];
} few;

/* What both do so often in MS ms: rank 0 has found that out. No more than may come between two commits. */
static int often(double seconds, double ms, int bytes)
{
  int n = (int)(ms * 1e-3 / seconds) + 1, most = (100 << 20) / (bytes + 100);
  if (n > most) n = most;
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return n;
}

static double pings(int rank, int bytes, int n)
{
  double from = MPI_Wtime();
  for (int i = 0; i < n; i++)
    if (rank == 0) {
      MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  return (MPI_Wtime() - from) / n / 2;
}

/* Messages in a row, and an answer to each 32. */
static double row(int rank, int bytes, int n)
{
  double from = MPI_Wtime();
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < 32; k++)
      if (rank == 0)
        MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      else
        MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
      MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - from) / n / 32;
}

/* Commits, each with a round trip behind it, which waits for all that was before it. */
static double commits(int rank, int n)
{
  double from = MPI_Wtime();
  for (int i = 0; i < n; i++) {
    MPISP_Commit();
    pings(rank, 8, 1);
  }
  return (MPI_Wtime() - from) / n;
}

static void all(int rank, double ms, const char *state)
{
  static const int sizes[] = {8, 4096, 65536};
  double us = 0;
  for (int i = 0; i < 3 && !*state; i++) {
    pings(rank, sizes[i], 3);
    us = 1e6 * pings(rank, sizes[i], often(2 * pings(rank, sizes[i], 10), ms, 2 * sizes[i]));
    if (rank == 0) printf("half a round trip, %d bytes %.3f\n", sizes[i], us);
    MPISP_Commit();
    row(rank, sizes[i], 1);
    us = 1e6 * row(rank, sizes[i], often(32 * row(rank, sizes[i], 2), ms, 32 * sizes[i]));
    if (rank == 0) printf("a send in a row, %d bytes %.3f\n", sizes[i], us);
    MPISP_Commit();
  }
  if (!*state) return;
  commits(rank, 2);
  us = 1e6 * commits(rank, often(commits(rank, 3), ms, 8));
  if (rank == 0) printf("a commit and a round trip, %s %.3f\n", state, us);
}

int main(int argc, char **argv)
{
  int rank;
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < MOST; i++) data[i] = (char)i;
  MPISP_Register(&few, sizeof few, MPI_BYTE);
  if (atoi(argv[2])) MPISP_Register(data, atoi(argv[2]), MPI_BYTE);
  MPISP_Commit();
  if (atoi(argv[2]) == 0) all(rank, atof(argv[1]), "");
  all(rank, atof(argv[1]), atoi(argv[2]) == 0 ? "4 KiB" : atoi(argv[2]) < 1 << 20 ? "64 KiB" : "16 MiB");
  MPI_Finalize();
  return 0;
}
