/* A job of several programs: each rank says which it is of. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  int rank, size, *part, found;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &part, &found);
  printf("rank %d of %d: program %d (%s)\n", rank, size, found ? *part : -1, argc > 1 ? argv[1] : "");
  MPI_Finalize();
  return 0;
}
