/* chain first: each rank sends one message out of its cluster; then rank 0 says when it is, and dies. chain middle, chain last: hand on what comes (the last one: count it), until nothing
 * comes any more, and say when that was, in milliseconds of the clock that all hosts of one machine share. */
#include <mpi.h>
#include <mpisp.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include "../../c/check.h"

static void say(const char *what)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  printf("%s %lld\n", what, (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000);
  fflush(stdout);
}

int main(int argc, char **argv)
{
  int x = 7, rank, got = 0;
  MPI_Status st;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1 && strcmp(argv[1], "first") == 0) {
    MPI_Ssend(&x, 1, MPI_INT, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      say("first");
      raise(SIGKILL);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* ended with its cluster */
    return 1;
  }
  for (;;) {
    MPI_Recv(&x, 1, MPI_INT, MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    CHECK(x == 7);
    got++;
    if (strcmp(argv[1], "middle") == 0) MPI_Send(&x, 1, MPI_INT, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD);
  }
  CHECK(got == 1);
  say(argv[1]);
  MPI_Finalize();
  return check_failures != 0;
}
