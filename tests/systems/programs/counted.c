/* All ranks of a cluster count themselves, until nobody fails: one has died in MPI_Init. */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  int rank, size, sum = 0, replaced;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int one = 1; MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS;)
    if (MPISP_Repair(&replaced) != MPI_SUCCESS) return 1;
  if (rank == 0) printf("%d of %d ranks\n", sum, size);
  MPI_Finalize();
  return 0;
}
