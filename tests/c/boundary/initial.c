/* spxrun -initial-errhandler: the handler that MPI_COMM_WORLD and MPI_COMM_SELF begin with (MPI-5.0, 12.5). One that returns
 * means that the process wants to know of a death. */
// run: n=2 spxrun="-initial-errhandler mpi_errors_return" args="return"
// run: n=2 args="fatal" status=6 stderr~"MPI_ERRORS_ARE_FATAL"
// run: n=2 spxrun="-initial-errhandler mpi_errors_abort" args="fatal" status=6 stderr~"MPI_ERRORS_ABORT"
// run: n=3 spxrun="-initial-errhandler mpi_errors_return" args="death" stdout~"rank 1 knows" stdout~"rank 2 knows"
#include "boundary.h"
#include <mpi-ext.h>
#include <signal.h>

int main(int argc, char **argv)
{
  MPI_Errhandler eh;
  int rank, x;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &eh);
  if (!strcmp(argv[1], "death")) {
    MPI_Barrier(MPI_COMM_WORLD); /* all have told by then */
    if (rank == 0) _exit(9);
    int err = MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(err == MPIX_ERR_PROC_FAILED);
    printf("rank %d knows\n", rank);
  } else {
    CHECK((eh == MPI_ERRORS_RETURN) == !strcmp(argv[1], "return"));
    CHECK(MPI_Send(NULL, 0, MPI_INT, 4242, 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
  }
  MPI_Finalize();
  return 0;
}
