/* halfmade: a cluster of three ranks with a standby (notified mode), of which rank 2 learns late, and at once, that it has part in a communicator and that MPI_COMM_WORLD is revoked: it is stopped while it makes one, rank 0
 * makes it, too, and then calls MPISP_Repair, and rank 1, which has no part in it, has rank 2 go on when it knows of that. The communicator stays revoked for both that have it, and all make another one in its place. */
#define _GNU_SOURCE
#include <mpi-ext.h>
#include <mpi.h>
#include <mpisp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../../c/check.h"

/* Waits until a process is in a state, as /proc says it, at ten looks in a row. */
static void await_state(int pid, char state)
{
  for (int looks = 0; looks < 10; usleep(1000)) {
    char name[64], text[512] = "";
    snprintf(name, sizeof name, "/proc/%d/stat", pid);
    FILE *f = fopen(name, "r");
    CHECK(f && fgets(text, sizeof text, f));
    if (f) fclose(f);
    const char *at = strrchr(text, ')');
    looks = at && at[1] && at[2] == state ? looks + 1 : 0;
  }
}

int main(int argc, char **argv)
{
  int rank, replaced, revoked, pids[3], pid = (int)getpid(), sum = 0;
  MPI_Comm first = MPI_COMM_NULL, second;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  if (rank == 0) {
    await_state(pids[2], 'S'); /* in MPI_Comm_dup */
    CHECK(kill(pids[2], SIGSTOP) == 0);
    await_state(pids[2], 'T');
  }
  if (rank != 1) CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &first) == MPI_SUCCESS);
  for (revoked = 0; rank == 1 && !revoked;) {
    int flag; /* progress */
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &revoked) == MPI_SUCCESS);
  }
  if (rank == 1) CHECK(kill(pids[2], SIGCONT) == 0);
  CHECK(MPISP_Repair(&replaced) == MPI_SUCCESS && replaced == 0);
  if (first != MPI_COMM_NULL) {
    CHECK(MPIX_Comm_is_revoked(first, &revoked) == MPI_SUCCESS && revoked);
    MPI_Comm_free(&first);
  }
  CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &second) == MPI_SUCCESS);
  CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, second) == MPI_SUCCESS && sum == 3);
  if (rank == 0) printf("made again\n");
  MPI_Finalize();
  return check_status();
}
