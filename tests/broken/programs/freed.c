/* A communicator is used after it was freed. */
#include <mpi.h>

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm mine, copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  copy = mine;
  MPI_Comm_free(&mine);
  MPI_Barrier(copy);
  MPI_Finalize();
  return 0;
}
