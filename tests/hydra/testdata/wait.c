/* Each rank says that it is there, and waits for a message that never comes. With "early", rank 1 ends before MPI_Init;
   with "never" it stays, and does not call it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  int n = 0;
  const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("PMIX_RANK");
  if (argc > 1 && rank && !strcmp(rank, "1")) {
    if (!strcmp(argv[1], "early")) return 0;
    for (;;) pause();
  }
  MPI_Init(&argc, &argv);
  printf("up\n");
  fflush(stdout);
  MPI_Recv(&n, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return 1;
}
