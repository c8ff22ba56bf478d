/* Ranks behind wrappers: what spxrun has started is not the process that calls MPI_Init. Whichever of the two ends first, the other one has ended too
 * when the rank is declared dead: it sends nothing any more. MPI_Abort on a communicator of some ends those, not their wrappers alone. */
// run: n=3 args=killed spxrun=--with-ft timeout=40
// run: n=3 args=forked spxrun=--with-ft timeout=40
// run: n=3 args=inside spxrun=--with-ft timeout=40
// run: n=4 args=abort spxrun=--with-ft status=5 timeout=40
// run: n=3 args=well timeout=40
#define _GNU_SOURCE
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"

enum { STATUS = 5, ENOUGH = 100 };

static const char *shell = "\"$0\" in \"$@\"; s=$?; [ $s = 0 ] || [ $s = 5 ] || sleep 100; exit $s";

/* The process that spxrun starts. In mode forked it leaves with the status that the program, which is no descendant of its any more and in a session
 * of its own, has written to it: rank 1 does so while it sends, the others at their end. */
static void wrap(char *self, char *mode)
{
  int ready[2];
  char fd[12], byte;
  if (strcmp(mode, "forked") != 0) {
    execl("/bin/sh", "sh", "-c", shell, self, mode, "-1", NULL);
    _exit(126);
  }
  if (pipe(ready) != 0) _exit(126);
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    close(ready[0]);
    snprintf(fd, sizeof fd, "%d", ready[1]);
    execl(self, self, "in", mode, fd, NULL);
    _exit(126);
  }
  close(ready[1]);
  wait(NULL);
  _exit(read(ready[0], &byte, 1) == 1 ? byte : 1);
}

/* Does a process of this number run? One that has ended and was not reaped yet does not. */
static int runs(int pid)
{
  char path[40], text[512], *end;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE *f = fopen(path, "r");
  if (!f) return 0;
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = 0;
  return (end = strrchr(text, ')')) && end[1] && end[2] != 'Z' && end[2] != 'X';
}

/* Rank 1: sends for ever, its wrapper gone or about to go; or ends itself. */
static void victim(const char *mode, int out)
{
  int pid = getpid();
  for (int i = 0;; i++) {
    MPI_Send(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    if (i != ENOUGH) continue;
    if (strcmp(mode, "killed") == 0) kill(getppid(), SIGKILL);
    if (strcmp(mode, "inside") == 0) kill(pid, SIGKILL);
    if (strcmp(mode, "forked") == 0 && write(out, "", 1) != 1) abort();
  }
}

/* Rank 0: receives from a rank until that is dead. */
static void survive(int from)
{
  int pid = 0, err, class, n = 0;
  while ((err = MPI_Recv(&pid, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) == MPI_SUCCESS) n++;
  CHECK(!runs(pid));
  MPI_Error_class(err, &class);
  CHECK(class == MPIX_ERR_PROC_FAILED);
  CHECK(n > ENOUGH && pid > 0);
}

static void abort_some(int rank)
{
  MPI_Comm some;
  int pid = getpid();
  MPI_Comm_split(MPI_COMM_WORLD, rank == 1 || rank == 2, 0, &some);
  for (int i = 0; rank == 1 && i <= ENOUGH; i++) MPI_Send(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  if (rank == 1) MPI_Abort(some, STATUS);
  while (rank == 2) MPI_Send(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  if (rank == 0) {
    survive(1);
    survive(2);
  }
}

int main(int argc, char **argv)
{
  int rank, size;
  if (argc == 2) wrap(argv[0], argv[1]);
  const char *mode = argv[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(mode, "well") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(mode, "abort") == 0)
      abort_some(rank);
    else if (rank == 1)
      victim(mode, atoi(argv[3]));
    else if (rank == 0)
      survive(1);
  }
  MPI_Finalize();
  char status = (char)check_status();
  if (strcmp(mode, "forked") == 0 && write(atoi(argv[3]), &status, 1) != 1) abort();
  return status;
}
