/* Says its rank, and with an argument waits for the end of its input before it ends. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("%d of %d\n", rank, size);
  fflush(stdout);
  while (argc > 1 && getchar() != EOF) {}
  MPI_Finalize();
  return 0;
}
