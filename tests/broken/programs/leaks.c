/* What is left at MPI_Finalize: a request, a communicator, a datatype, and a message that was never received. With an argument: nothing. */
#include <mpi.h>

int main(int argc, char **argv)
{
  int rank, x = 0, y = 0;
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Comm c = MPI_COMM_NULL;
  MPI_Datatype t = MPI_DATATYPE_NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Type_vector(2, 1, 2, MPI_INT, &t);
  MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 11, c, &r);
  if (rank == 0) MPI_Send(&x, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1) {
    if (rank == 1) MPI_Recv(&y, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Cancel(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Type_free(&t);
    MPI_Comm_free(&c);
  }
  MPI_Finalize();
  return 0;
}
