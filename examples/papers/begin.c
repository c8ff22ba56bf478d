/* begin.c - says whether a file was there when MPI_Init returned (docs/papers.md, S1.11). */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && argc > 1)
    printf("MPI_Init has returned; %s is %s\n", argv[1], access(argv[1], F_OK) == 0 ? "there" : "NOT there");
  MPI_Finalize();
  return 0;
}
