/* All meet in barriers, as long as it takes until somebody is lost; the others shrink, meet again, and tell how many they are and when that was, on
 * the clock that the hosts share. Arguments: how often hosts will be lost, before all end, the exit status then, and a program that is
 * to be spawned before. */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
  int rank, size, losses = argc > 1 ? atoi(argv[1]) : 1;
  MPI_Comm comm, next;
  MPI_Init(&argc, &argv);
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
    int class;
    MPI_Error_class(MPI_Comm_spawn(argv[3], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, comm, &next, MPI_ERRCODES_IGNORE),
                    &class);
    printf("spawn: %s\n", class == MPI_ERR_UNSUPPORTED_OPERATION ? "MPI_ERR_UNSUPPORTED_OPERATION" : "another class");
    fflush(stdout);
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return argc > 2 ? atoi(argv[2]) : 0;
}
