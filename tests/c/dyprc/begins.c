/* A process dies while the others make mworld, or before: they go on without it. */
// run: n=3 spxrun=--with-ft stdout~"^2 of 3 go on" args="before"
// run: n=3 spxrun=--with-ft stdout~"^2 of 3 go on" args="first"
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ulfm_dyprc.h>

int main(int argc, char **argv)
{
  MPI_Comm mworld;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1 && rank == (strcmp(argv[1], "first") == 0 ? 0 : 2)) raise(SIGKILL);
  int newcomer = ulfm_dyprc_merge_child(&mworld);
  ulfm_dyprc_setjmp(mworld, newcomer);
  MPI_Comm_rank(mworld, &rank);
  MPI_Comm_size(mworld, &size);
  if (rank == 0) printf("%d of 3 go on\n", size);
  MPI_Finalize();
  return size != 2;
}
