/* Rank 1 computes for ever: its iteration does not converge. */
#include <mpi.h>

static volatile double residual = 1;

static int iterate(void)
{
  int n = 0;
  while (residual > 1e-30) n++;
  return n;
}

int main(int argc, char **argv)
{
  int rank, n = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) n = iterate();
  MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
