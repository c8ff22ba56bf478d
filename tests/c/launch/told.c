/* A rank is killed, and a survivor's error handler returns: the survivors are told, their calls on the dead return
 * MPIX_ERR_PROC_FAILED, and the job's status is theirs. With --with-ft any rank may go on that does not need the dead. */
// run: n=4 status=0 stderr~"rank 2 .*killed by signal 9 .SIGKILL.*; the other 3 are told and go on" timeout=20
// run: n=4 args=3 status=3 stderr~"the other 3 are told" timeout=20
// run: n=4 args="0 quiet" status=0 spxrun="--with-ft ulfm" stderr~"the other 3 are told" timeout=20
// run: n=4 args="0 quiet" status=0 spxrun="--on-death=continue" stderr~"the other 3 are told" timeout=20
// run: n=4 args="0 quiet" status=137 stderr~"the job is ended with exit status 137" timeout=20
// run: n=4 status=137 spxrun="--on-death=kill" stderr~"the job is ended with exit status 137" timeout=20
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "../check.h"

int main(int argc, char **argv)
{
  int rank, x = 0, status = argc > 1 ? atoi(argv[1]) : 0, quiet = argc > 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!quiet) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) kill(getpid(), SIGKILL);
  if (quiet) {
    sleep(1);
    _Exit(0 * MPI_Finalize());
  }
  CHECK_CLASS(MPI_Recv(&x, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  MPI_Finalize();
  return check_status() ? 1 : rank == 1 ? status : 0;
}
