/* A host whose loopback interface is down: a job over TCP fails with a message when it starts, and does not try for ever. Over shared memory it runs. */
// run: n=1 args=tcp stderr~"spxrun: .*cannot reach each other over TCP at 127.0.0.1.*loopback" timeout=40
// run: n=1 args=shm stdout~"rank 1 of 2" timeout=40
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"

/* spxrun in a network namespace of its own, where no interface is up. */
static int launch(char *self, const char *how)
{
  char launcher[64];
  int status = 0;
  snprintf(launcher, sizeof launcher, "/proc/%s/exe", getenv("SPX_AGENT"));
  if (fork() == 0) {
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) perror("unshare");
    if (strcmp(how, "tcp") == 0) setenv("SPX_TRANSPORTS", "tcp", 1);
    execl(launcher, "spxrun", "-n", "2", self, "rank", how, NULL);
    _exit(126);
  }
  wait(&status);
  CHECK(WIFEXITED(status) && (WEXITSTATUS(status) != 0) == (strcmp(how, "tcp") == 0));
  return check_status();
}

int main(int argc, char **argv)
{
  int rank, size;
  if (argc == 2) return launch(argv[0], argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d of %d\n", rank, size);
  MPI_Finalize();
  return check_status();
}
