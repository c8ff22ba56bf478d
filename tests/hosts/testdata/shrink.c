/* All meet in barriers, as long as it takes until somebody is lost; the others shrink, meet again, and tell how many they are and when that was, on
 * the clock that the hosts share. Arguments: how often hosts will be lost, before all end, the exit status then, and how many processes
 * are to be spawned before: they meet with the others. */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Parents and those whom they have spawned meet. */
static void meet(MPI_Comm other, bool high)
{
  MPI_Comm both;
  int size;
  MPI_Intercomm_merge(other, high, &both);
  MPI_Barrier(both);
  MPI_Comm_size(both, &size);
  printf("%s of %d together\n", high ? "child" : "parent", size);
  fflush(stdout);
  MPI_Comm_free(&both);
  MPI_Comm_disconnect(&other);
}

int main(int argc, char **argv)
{
  int rank, size, losses = argc > 1 ? atoi(argv[1]) : 1;
  MPI_Comm comm, next;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&next);
  if (next != MPI_COMM_NULL) {
    meet(next, true);
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Barrier(comm);
  if (rank == 0) printf("all are there\n");
  fflush(stdout);
  for (int lost = 0; lost < losses; lost++) {
    int err = MPI_SUCCESS;
    while (err == MPI_SUCCESS) {
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* they have processors enough for other things */
      err = MPI_Barrier(comm);
    }
    do {
      MPIX_Comm_revoke(comm);
      MPIX_Comm_shrink(comm, &next);
      MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
      MPI_Comm_free(&comm);
      comm = next;
    } while (MPI_Barrier(comm) != MPI_SUCCESS);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    MPI_Comm_size(comm, &size);
    printf("rank %d of %d at %lld\n", rank, size, now.tv_sec * 1000LL + now.tv_nsec / 1000000);
    fflush(stdout);
  }
  if (argc > 3) {
    char port[MPI_MAX_PORT_NAME], text[MPI_MAX_ERROR_STRING];
    int code =
            MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, atoi(argv[3]), MPI_INFO_NULL, 0, comm, &next, MPI_ERRCODES_IGNORE),
        n;
    MPI_Error_string(code, text, &n);
    if (code == MPI_SUCCESS)
      meet(next, false);
    else
      printf("spawn: %s\n", text);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_string(MPI_Open_port(MPI_INFO_NULL, port), text, &n);
    printf("port: %s\n", text);
    fflush(stdout);
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return argc > 2 ? atoi(argv[2]) : 0;
}
