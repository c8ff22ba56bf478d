/* The last of several stages: adds up what comes in, until nothing comes any more. */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  int rank, size;
  long x, mine[2] = {0, 0}, all[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (MPI_Status status;;) {
    MPI_Recv(&x, 1, MPI_LONG, MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD, &status);
    if (status.MPI_SOURCE == MPI_PROC_NULL) break;
    mine[0]++;
    mine[1] += x;
  }
  MPI_Reduce(mine, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks have received %ld numbers, their sum is %ld\n", size, all[0], all[1]);
  MPI_Finalize();
  return 0;
}
