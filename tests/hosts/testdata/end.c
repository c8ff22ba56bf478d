/* What the end of a process of one host means on the others. Argument: how rank 2 ends; the others see what comes of it. "told RANK US": another
 * rank, at a moment that does not depend on what it does; it and the others shrink as soon as they notice.
 *   kill    by a signal, nobody has asked to know
 *   late    the same, and the launcher's daemon of its host notices it a quarter of a second later
 *   told    by a signal, the others have error handlers that return
 *   agent   the agent of its host is killed, and with it the host's processes
 *   abort   in MPI_Abort
 *   well    not at all */
#include <mpi-ext.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *kill_at(void *us)
{
  usleep(*(useconds_t *)us);
  raise(SIGKILL);
  return NULL;
}

/* Barriers, and a shrink, while a thread ends this process; then say how many go on. */
static int at_any_moment(int victim, useconds_t us)
{
  int rank, size;
  MPI_Comm comm, next;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_size(comm, &size);
  MPI_Barrier(comm); /* all have it */
  int all = size;
  pthread_t thread;
  if (rank == victim) pthread_create(&thread, NULL, kill_at, &us);
  while (size == all) {
    if (MPI_Barrier(comm) == MPI_SUCCESS) continue; /* who gets no further has it revoked by those who know */
    MPIX_Comm_revoke(comm);
    MPIX_Comm_shrink(comm, &next);
    MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
    MPI_Comm_free(&comm);
    comm = next;
    MPI_Comm_size(comm, &size);
  }
  int err = MPI_Barrier(comm);
  printf("rank %d: one of %d, %d\n", rank, size, err);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}

/* Stops the launcher's daemon, has it go on after a while by a process that is not the job's, and dies. */
static void die_late(void)
{
  char daemon[16];
  snprintf(daemon, sizeof daemon, "%d", (int)getppid());
  if (fork() == 0) {
    setsid();
    execl("/bin/sh", "sh", "-c", "sleep 0.25; kill -CONT $0", daemon, (char *)NULL);
    _exit(1);
  }
  kill(getppid(), SIGSTOP);
  raise(SIGKILL);
}

int main(int argc, char **argv)
{
  int rank, err = MPI_SUCCESS;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char *how = argc > 1 ? argv[1] : "well";
  if (!strcmp(how, "told") || !strcmp(how, "agent")) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 3) return at_any_moment(atoi(argv[2]), (useconds_t)atoi(argv[3]));
  if (rank == 2 && !strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
  if (rank == 2 && !strcmp(how, "agent")) kill(getppid(), SIGKILL);
  if (rank == 2 && !strcmp(how, "late")) die_late();
  if (rank == 2 && strcmp(how, "well")) raise(SIGKILL);
  for (int i = 0; err == MPI_SUCCESS && (i < 100 || strcmp(how, "well")); i++) err = MPI_Barrier(MPI_COMM_WORLD);
  int class = err;
  if (err != MPI_SUCCESS) MPI_Error_class(err, &class);
  printf("rank %d: %d\n", rank, class);
  MPI_Finalize();
  return 0;
}
