/* All ranks exchange a number with each other, and say whether they have got what was sent. Then, by the argument:
 *   (none)     that is all
 *   stay       they wait for their end
 *   survive N  they wait until hosts are lost, and go on as N ranks: whoever has said that it is right has all that it needs for that */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int exchange(MPI_Comm comm)
{
  int rank, size, right = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int *to = malloc(sizeof *to * (size_t)size), *from = malloc(sizeof *from * (size_t)size);
  for (int i = 0; i < size; i++) to[i] = rank * 1000 + i;
  int err = MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, comm);
  for (int i = 0; i < size; i++) right = right && from[i] == i * 1000 + rank;
  free(to);
  free(from);
  return err == MPI_SUCCESS && right;
}

int main(int argc, char **argv)
{
  int rank, size;
  MPI_Comm comm = MPI_COMM_NULL, next;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 2) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  printf("rank %d: %s\n", rank, exchange(MPI_COMM_WORLD) ? "right" : "wrong");
  fflush(stdout);
  if (argc > 1 && !strcmp(argv[1], "stay")) {
    while (1) pause();
  }
  if (argc > 2) {
    int want = atoi(argv[2]);
    for (MPI_Comm_size(comm, &size); size > want; MPI_Comm_size(comm, &size)) {
      if (MPI_Barrier(comm) == MPI_SUCCESS) {
        usleep(1000);
        continue;
      }
      MPIX_Comm_revoke(comm);
      MPIX_Comm_shrink(comm, &next);
      MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
      MPI_Comm_free(&comm);
      comm = next;
    }
    MPI_Comm_rank(comm, &rank);
    printf("one of %d: %s\n", size, exchange(comm) ? "right" : "wrong");
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  return 0;
}
