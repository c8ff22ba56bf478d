/* A rank dies in the middle of a run of collectives: the others learn of it by an error, not by a hang; they revoke, shrink, and
 * go on with collectives among themselves. Every kind of collective, blocking and not. */
// run: n=4,9 args="0" spxrun="--with-ft" timeout=40
// run: n=5 args="1" spxrun="--with-ft" timeout=40
// run: n=8 args="2" spxrun="--with-ft" timeout=40
// run: n=16 args="0" spxrun="--with-ft" env=SPX_COLL_ALLTOALL=by_switch env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:4 timeout=60
// run: n=16 args="1" spxrun="--with-ft" env=SPX_COLL_ALLTOALL=by_switch env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:4 timeout=60 full=1
#include <mpi-ext.h>
#include "../check.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { LONG = 40000 };
static int in[LONG * 16], out[LONG * 16];

static int step(MPI_Comm c, int kind, int size, int n)
{
  MPI_Request r;
  int err;
  switch (kind % 8) {
  case 0: return MPI_Barrier(c);
  case 1: return MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, c);
  case 2: return MPI_Bcast(in, n, MPI_INT, kind / 8 % size, c);
  case 3: return MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, c);
  case 4: return MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, c);
  case 5: return MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, c);
  case 6: err = MPI_Ibarrier(c, &r); return err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);
  default:
    err = MPI_Iallreduce(in, out, n, MPI_INT, MPI_MAX, c, &r);
    return err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char **argv)
{
  int rank, size, class, survivors, err = MPI_SUCCESS, victim, when = 20 + 7 * atoi(argv[1]),
                                    n = atoi(argv[1]) == 1 ? LONG : 10;
  MPI_Comm rest;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  victim = atoi(argv[1]) % size;
  for (int i = 0; err == MPI_SUCCESS; i++) {
    if (i == when && rank == victim) kill(getpid(), SIGKILL);
    err = step(MPI_COMM_WORLD, i, size, n);
  }
  MPI_Error_class(err, &class);
  CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
  MPIX_Comm_revoke(MPI_COMM_WORLD);
  CHECK_CLASS(MPI_Barrier(MPI_COMM_WORLD), MPIX_ERR_REVOKED);
  CHECK_CLASS(MPIX_Comm_shrink(MPI_COMM_WORLD, &rest), MPI_SUCCESS);
  MPI_Comm_size(rest, &survivors);
  CHECK(survivors == size - 1);
  for (int i = 0; i < 16; i++) CHECK_CLASS(step(rest, i, survivors, n), MPI_SUCCESS);
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, rest);
  CHECK(sum == survivors);
  MPI_Comm_free(&rest);
  MPI_Finalize();
  return check_status();
}
