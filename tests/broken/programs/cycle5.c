/* Five ranks send a large message to the next one before any receives. */
#include <mpi.h>
#include <stdlib.h>

#define N 4000000

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double *out = calloc(N, sizeof *out), *in = calloc(N, sizeof *in);
  MPI_Send(out, N, MPI_DOUBLE, (rank + 1) % size, 0, MPI_COMM_WORLD);
  MPI_Recv(in, N, MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
