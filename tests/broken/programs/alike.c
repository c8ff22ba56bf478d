/* All ranks do the same wrong thing, named by the argument: MPI before MPI_Init, a wrong rank with an error handler that ends all or the
 * communicator's processes, a buffer that is none, or they leave a communicator. "held" DIR: the wrong rank, when each has written a file there, and
 * there is one called go; the last rank gives a wrong tag. With ALIKE_HELD=DIR all begin when there is one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void hold(const char *dir, int rank)
{
  struct timespec ms = {0, 1000000};
  char name[512], all[520];
  snprintf(name, sizeof name, "%s/new%d", dir, rank);
  FILE *f = fopen(name, "w");
  if (!f) exit(9);
  fprintf(f, "%d %s\n", (int)getpid(), getenv("SPX_AGENT"));
  fclose(f);
  snprintf(all, sizeof all, "%s/rank%d", dir, rank);
  rename(name, all);
  snprintf(name, sizeof name, "%s/go", dir);
  while (access(name, F_OK) != 0) nanosleep(&ms, NULL);
}

int main(int argc, char **argv)
{
  int rank = 0, size, x = 0;
  const char *what = argc > 1 ? argv[1] : "";
  if (getenv("ALIKE_HELD")) hold(getenv("ALIKE_HELD"), atoi(getenv("SPX_RANK")));
  if (strcmp(what, "early") == 0) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(what, "held") == 0) {
    hold(argv[2], rank);
    MPI_Send(&x, 1, MPI_INT, rank + 1 < size ? size : 0, rank + 1 < size ? 0 : -7, MPI_COMM_WORLD);
  }
  if (strcmp(what, "fatal") == 0) MPI_Send(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
  if (strcmp(what, "abort") == 0) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_ABORT);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&x, 1, MPI_INT, size, 0, half);
  }
  if (strcmp(what, "crash") == 0) MPI_Send((char *)64, 4, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
  if (strcmp(what, "leak") == 0) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (rank == 1) MPI_Comm_free(&copy); /* not quite all leave it */
  }
  MPI_Finalize();
  return 0;
}
