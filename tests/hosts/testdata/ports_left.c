/* Four processes, one on each host. Rank 1 opens a port and publishes it; when a host is lost, those that are left shrink; one of them looks the name up and connects with rank 1 by the port that was there before, and by one that is
 * opened since. Argument: the exit status. */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, was;

/* The first of comm connects, who has been rank 1 accepts. */
static void meet(MPI_Comm comm, const char *service, const char *port, int accepts)
{
  char found[MPI_MAX_PORT_NAME];
  int word = 0, err = MPI_SUCCESS;
  MPI_Comm other;
  if (rank == accepts) {
    err = MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  } else if (rank == (accepts == 0)) {
    err = MPI_Lookup_name(service, MPI_INFO_NULL, found);
    if (err == MPI_SUCCESS) err = MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    word = 4711;
  } else
    return;
  if (err != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int n;
    MPI_Error_string(err, text, &n);
    printf("%s: %s\n", service, text);
    fflush(stdout);
    MPI_Abort(comm, 9);
  }
  if (word)
    MPI_Send(&word, 1, MPI_INT, 0, 0, other);
  else {
    MPI_Recv(&word, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    printf("%s: %d\n", service, word);
    fflush(stdout);
  }
  MPI_Comm_disconnect(&other);
}

int main(int argc, char **argv)
{
  char before[MPI_MAX_PORT_NAME], after[MPI_MAX_PORT_NAME];
  int err = MPI_SUCCESS, mine = 0, accepts;
  MPI_Comm comm, next;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &was);
  if (was == 1) {
    MPI_Open_port(MPI_INFO_NULL, before);
    MPI_Publish_name("from before", MPI_INFO_NULL, before);
  }
  MPI_Barrier(comm);
  if (was == 0) printf("all are there\n");
  fflush(stdout);
  while (err == MPI_SUCCESS) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    err = MPI_Barrier(comm);
  }
  do {
    MPIX_Comm_revoke(comm);
    MPIX_Comm_shrink(comm, &next);
    MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
    MPI_Comm_free(&comm);
    comm = next;
  } while (MPI_Barrier(comm) != MPI_SUCCESS);
  MPI_Comm_rank(comm, &rank);
  if (was == 1) {
    mine = rank;
    if (MPI_Open_port(MPI_INFO_NULL, after) == MPI_SUCCESS) MPI_Publish_name("from after", MPI_INFO_NULL, after);
  }
  MPI_Allreduce(&mine, &accepts, 1, MPI_INT, MPI_MAX, comm);
  meet(comm, "from before", before, accepts);
  meet(comm, "from after", after, accepts);
  if (was == 1) {
    MPI_Unpublish_name("from before", MPI_INFO_NULL, before);
    MPI_Close_port(before);
  }
  MPI_Barrier(comm);
  err = MPI_Lookup_name("from before", MPI_INFO_NULL, before);
  MPI_Error_class(err, &err);
  if (rank == 0) printf("then %s\n", err == MPI_ERR_NAME ? "it is gone" : "IT IS THERE");
  fflush(stdout);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return atoi(argv[1]);
}
