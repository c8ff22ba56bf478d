/* The first of several stages (docs/tutorial-systems.md): its ranks send the numbers below N, each rank every size-th, to whatever cluster comes next, one in MS
 * milliseconds. */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long n = argc > 1 ? atol(argv[1]) : 1000, ms = argc > 2 ? atol(argv[2]) : 0;
  for (long i = rank; i < n; i += size) {
    MPI_Send(&i, 1, MPI_LONG, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD);
    if (ms > 0) usleep((useconds_t)ms * 1000);
  }
  if (rank == 0) printf("%d ranks have sent %ld numbers\n", size, n);
  fflush(stdout); /* MPI_Finalize waits for what is on its way */
  MPI_Finalize();
  return 0;
}
