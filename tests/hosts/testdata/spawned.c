/* Processes that have spawned others meet with them in barriers until a host is lost; those that are left shrink, meet again, spawn two more, meet with these, and end. Argument: the exit status. */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
  int rank, size, err = MPI_SUCCESS;
  MPI_Comm parent, other, comm, next;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL && argc > 1 && !strcmp(argv[1], "late")) {
    MPI_Intercomm_merge(parent, true, &comm);
    MPI_Barrier(comm);
    MPI_Finalize();
    return 0;
  }
  if (parent == MPI_COMM_NULL)
    MPI_Comm_spawn(argv[0], argv + 1, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
  else
    other = parent;
  MPI_Intercomm_merge(other, parent != MPI_COMM_NULL, &comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Barrier(comm);
  if (rank == 0) printf("all are there\n");
  fflush(stdout);
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
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  printf("rank %d of %d at %lld\n", rank, size, now.tv_sec * 1000LL + now.tv_nsec / 1000000);
  fflush(stdout);
  char *late[] = {"late", NULL};
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_spawn(argv[0], late, 2, MPI_INFO_NULL, 0, comm, &other, MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(other, false, &next);
  MPI_Barrier(next);
  MPI_Comm_size(next, &size);
  printf("%d with those that came late\n", size);
  fflush(stdout);
  MPI_Comm_free(&next);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return argc > 1 ? atoi(argv[1]) : 0;
}
