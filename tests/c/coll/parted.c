/* Calls whose counts do not match, so that some processes take part by messages and others in shared memory: those that cannot get what they
 * ask for are told, whoever is first; nobody hangs, and the next operation works. */
// run: n=2,4,16 timeout=60
#include "../check.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64 };

/* Those of whom `late` says so come after the others have begun to wait: they would be here by now. */
static void wait_for_others(int late)
{
  if (late) usleep(20000);
}

static void scattered(MPI_Comm comm, int rank, int size, int mine, int theirs, int late, int nonblocking)
{
  int *out = calloc((size_t)(MOST * size), sizeof *out), in[MOST] = {0}, err, count = rank == 0 ? mine : theirs;
  MPI_Request r;
  wait_for_others(rank == 0 && late);
  if (nonblocking) {
    MPI_Iscatter(out, count, MPI_INT, in, count, MPI_INT, 0, comm, &r);
    err = MPI_Wait(&r, MPI_STATUS_IGNORE);
  } else {
    err = MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, 0, comm);
  }
  if (rank != 0) CHECK(err != MPI_SUCCESS);
  free(out);
  /* what comes after it works */
  for (int i = 0; i < 3; i++) {
    int one = 1, sum = 0;
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == size);
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
  }
}

/* The root asks for less than it is given: it is told. The others have sent their data, and know nothing. */
static void gathered(MPI_Comm comm, int rank, int size, int theirs, int late)
{
  int count = rank == 0 ? 1 : theirs;
  int *out = calloc((size_t)count, sizeof *out), *in = calloc((size_t)size, sizeof *in);
  wait_for_others((rank == 0) == late);
  int err = MPI_Gather(out, count, MPI_INT, in, 1, MPI_INT, 0, comm);
  if (rank == 0) CHECK(err != MPI_SUCCESS);
  free(out);
  free(in);
}

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int how = 0; how < 8; how++) {
    MPI_Comm fresh;
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    MPI_Comm_set_errhandler(fresh, MPI_ERRORS_RETURN);
    if (how & 4) MPI_Barrier(fresh); /* shared memory is in use before */
    scattered(fresh, rank, size, 1, 60, how & 1, how & 2);
    gathered(fresh, rank, size, 60, how & 1);
    MPI_Comm_free(&fresh);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return check_status();
}
