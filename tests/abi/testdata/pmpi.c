/* A program (or a tool linked with it) puts its own functions in place of the library's (MPI-5.0, 15.2). The library itself calls
 * none of them: each is counted exactly as often as the program calls it. */
#include <mpi.h>
#include <stdio.h>

static int sizes, sends, allreduces, classes;

int MPI_Comm_size(MPI_Comm comm, int *size)
{
  sizes++;
  return PMPI_Comm_size(comm, size);
}
int MPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
  sends++;
  return PMPI_Isend(buf, count, datatype, dest, tag, comm, request);
}
int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
  allreduces++;
  return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}
int MPI_Error_class(int errorcode, int *errorclass)
{
  classes++;
  return PMPI_Error_class(errorcode, errorclass);
}

int main(int argc, char **argv)
{
  int size, one = 1, two = 0, sum = 0, class;
  MPI_Request request;
  MPI_Comm dup;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_SELF, &size);
  MPI_Isend(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
  MPI_Recv(&two, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  MPI_Barrier(dup);
  MPI_Comm_free(&dup);
  MPI_Error_class(MPI_ERR_TAG, &class);
  MPI_Finalize();
  if (sizes == 1 && sends == 1 && allreduces == 1 && classes == 1 && two == 1 && sum == 1) return 0;
  printf("Comm_size %d, Isend %d, Allreduce %d, Error_class %d calls; received %d, sum %d\n", sizes, sends, allreduces,
         classes, two, sum);
  return 1;
}
