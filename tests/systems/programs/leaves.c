/* leaves send COUNT BYTES: sends so many messages to MPISP_CLUSTER_OUT, and says how many were sent. leaves receive COUNT BYTES: receives so many, or until nothing comes any more, and ends whatever comes then. */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int count = argc > 3 ? atoi(argv[2]) : 0, bytes = argc > 3 ? atoi(argv[3]) : 0, n = 0;
  char *data = calloc(1, (size_t)bytes);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (argc > 1 && !strcmp(argv[1], "send"))
    while (n < count && MPI_Send(data, bytes, MPI_BYTE, MPISP_CLUSTER_OUT, 7, MPI_COMM_WORLD) == MPI_SUCCESS) n++;
  else
    for (MPI_Status s; n < count &&
                       MPI_Recv(data, bytes, MPI_BYTE, MPISP_CLUSTER_IN, 7, MPI_COMM_WORLD, &s) == MPI_SUCCESS &&
                       s.MPI_SOURCE != MPI_PROC_NULL;)
      n++;
  printf("%s: %d\n", argv[1], n);
  free(data);
  MPI_Finalize();
  return 0;
}
