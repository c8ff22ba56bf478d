/* MPI_ERRORS_ABORT on a communicator ends its processes and no others (MPI-5.0, 10.3). */
// run: n=4 spxrun="--with-ft" status=6 stdout~"rank 2 goes on" stdout~"rank 3 goes on" stderr~"MPI_Send on half failed.*MPI_ERR_RANK"
#include "boundary.h"

int main(int argc, char **argv)
{
  int rank, x;
  MPI_Comm half;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
  MPI_Comm_set_name(half, "half");
  MPI_Comm_set_errhandler(half, MPI_ERRORS_ABORT);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) MPI_Send(NULL, 0, MPI_INT, 77, 0, half);
  if (rank == 1) MPI_Recv(&x, 1, MPI_INT, 0, 0, half, MPI_STATUS_IGNORE);
  if (rank < 2) FAIL("rank %d is still there", rank);
  CHECK(MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  MPI_Barrier(half);
  printf("rank %d goes on\n", rank);
  MPI_Finalize();
  return 0;
}
