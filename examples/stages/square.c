/* A stage between two others: squares what comes in. It ends when nothing comes any more. What it knows is saved by MPISP_Commit, so that a standby can go on where a
 * rank has died; without standbys that does nothing. */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  int rank;
  long x, seen = 0, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPISP_Register(&seen, 1, MPI_LONG);
  MPISP_Commit();
  for (MPI_Status status;;) {
    MPI_Recv(&x, 1, MPI_LONG, MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD, &status);
    if (status.MPI_SOURCE == MPI_PROC_NULL) break;
    x *= x;
    MPI_Send(&x, 1, MPI_LONG, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD);
    if (++seen % 16 == 0) MPISP_Commit();
  }
  MPI_Reduce(&seen, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%ld numbers were squared\n", all);
  MPI_Finalize();
  return 0;
}
