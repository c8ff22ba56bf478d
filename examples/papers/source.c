/* source.c - each rank sends N numbers to whatever cluster comes next, if one does. It says who it is: the same, whatever is attached (docs/papers.md, S1.3, S1.5). */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  int rank, size, sent = 0, n = argc > 1 ? atoi(argv[1]) : 10, out = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* alone there is no way out: MPI_ERR_RANK */
  for (long i = 0; i < n; i++) sent += MPI_Send(&i, 1, MPI_LONG, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
  MPI_Reduce(&sent, &out, 1, MPI_INT, MPI_SUM, size - 1, MPI_COMM_WORLD);
  printf("I am rank %d of %d\n", rank, size);
  if (rank == size - 1) printf("%d numbers have left\n", out);
  MPI_Finalize();
  return 0;
}
