/* handing: every rank hands on what comes into its cluster, as it is, until nothing comes any more. */
#include <mpi.h>
#include <mpisp.h>
#include "../../c/check.h"

int main(int argc, char **argv)
{
  static int data[1000];
  int count;
  MPI_Status s;
  CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
  for (;;) {
    MPI_Recv(data, 1000, MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    if (s.MPI_SOURCE == MPI_PROC_NULL) break;
    MPI_Get_count(&s, MPI_INT, &count);
    MPI_Send(data, count, MPI_INT, MPISP_CLUSTER_OUT, s.MPI_TAG, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
