/* Rank 0 broadcasts ten doubles, the others expect ten ints. */
#include <mpi.h>

int main(int argc, char **argv)
{
  int rank;
  double d[10] = {0};
  int i[10] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    MPI_Bcast(d, 10, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  else
    MPI_Bcast(i, 10, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
