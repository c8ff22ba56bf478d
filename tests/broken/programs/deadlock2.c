/* Two ranks receive before they send. */
#include <mpi.h>

static int swap(int mine, int other)
{
  int theirs;
  MPI_Recv(&theirs, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&mine, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
  return theirs;
}

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int got = swap(rank, 1 - rank);
  MPI_Finalize();
  return got == rank;
}
