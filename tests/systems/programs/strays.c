/* strays RIGHT STEPS: three ranks of a cluster with a standby that takes over transparently. Rank 0 commits in the middle of a step, and dies once in the next one. If RIGHT is 1 what it commits
 * tells where it is in the step, and who takes its place goes on there; if it is 0 that one begins with a step instead, which is not what the one before has done since it committed. */
#include <fcntl.h>
#include <mpi.h>
#include <mpisp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../c/check.h"

static struct {
  int step, within;
} s;

static void maybe_die(void)
{
  if (s.step == 3 && open("died", O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0) raise(SIGKILL);
}

/* One rank is sent to by one function, the other by another one: the order in which a step calls them is seen in neither. */
static void give(bool right, int steps)
{
  while (s.step < steps || s.within) {
    if (!right || !s.within) {
      MPI_Send(&s.step, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
      maybe_die();
      s.step++;
      s.within = 1;
      MPISP_Commit();
    }
    MPI_Ssend(&s.step, 1, MPI_INT, 2, 1, MPI_COMM_WORLD);
    s.within = 0;
  }
}

static void take(int first, int steps)
{
  for (int i = 0, n; i < steps; i++) {
    MPI_Recv(&n, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(n == first + i);
  }
}

int main(int argc, char **argv)
{
  int rank;
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPISP_Register(&s, sizeof s, MPI_BYTE);
  MPISP_Commit();
  if (rank == 0)
    give(atoi(argv[1]) != 0, atoi(argv[2]));
  else
    take(rank - 1, atoi(argv[2]));
  if (rank == 1) printf("done\n");
  MPI_Finalize();
  return check_failures != 0;
}
