/* twin.c - receives numbers from anywhere: those of rank 1 of its own cluster, and those of other clusters (docs/papers.md, S1.4). */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  int rank, size, own = 0, others = 0;
  long x = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 1)
    for (int i = 0; i < 10; i++) MPI_Send(&x, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
  for (MPI_Status status; rank == 0;) {
    MPI_Recv(&x, 1, MPI_LONG, own < 10 ? MPI_ANY_SOURCE : MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD, &status);
    if (status.MPI_SOURCE == MPI_PROC_NULL) break;
    if (status.MPI_SOURCE == 1) own++;
    if (status.MPI_SOURCE == MPISP_CLUSTER_IN) others++;
  }
  if (rank == 0) printf("%d messages from rank 1, %d from MPISP_CLUSTER_IN\n", own, others);
  MPI_Finalize();
  return 0;
}
