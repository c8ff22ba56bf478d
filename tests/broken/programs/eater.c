/* Rank 1 uses more and more memory, 2 GiB at most; the others wait for its end, of which they are told. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
  enum { PIECE = 16 << 20 };
  int rank, mark = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int n = 0; rank == 1 && n < 128; n++) {
    char *more = malloc(PIECE);
    if (!more) return 3;
    memset(more, 1, PIECE);
  }
  if (rank == 1) return 3;
  if (MPI_Recv(&mark, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    printf("rank %d lives\n", rank);
  MPI_Finalize();
  return 0;
}
