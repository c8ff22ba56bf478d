/* Rank 1 kills itself while the others wait for a message of it: it has had what they send in the same call. With "on", the others see that, and go on without it. */
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <string.h>

int main(int argc, char **argv)
{
  int rank, x = 0, y = 0, err;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1 && strcmp(argv[1], "on") == 0) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Recv(&x, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&x, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    raise(SIGKILL);
  }
  err = MPI_Sendrecv(&y, 1, MPI_INT, 1, 7, &x, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (err != MPIX_ERR_PROC_FAILED) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Finalize();
  return 0;
}
