/* reader.c - who may read a rank's memory: rank 1 reads a long message out of that of rank 0; a process of another user, which knows where to look, may not (docs/papers.md, S4.5). Run by
 * root, who alone can become another user. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counters.h"

enum { LONG = 4 << 20, NOBODY = 65534 };

static const char *stranger(pid_t who, void *where)
{
  int pipes[2];
  char got[16], word = '?';
  if (pipe(pipes)) MPI_Abort(MPI_COMM_WORLD, 1);
  pid_t child = fork();
  if (child == 0) {
    if (setgid(NOBODY) == 0 && setuid(NOBODY) == 0) {
      ssize_t n = process_vm_readv(who, &(struct iovec){got, sizeof got}, 1, &(struct iovec){where, sizeof got}, 1, 0);
      word = n < 0 && errno == EPERM ? 'r' : 'g';
    }
    _exit(write(pipes[1], &word, 1) != 1);
  }
  waitpid(child, NULL, 0);
  if (read(pipes[0], &word, 1) != 1) word = '?';
  return word == 'r' ? "refused" : word == 'g' ? "GRANTED" : "could not be tried";
}

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *data = malloc(LONG);
  memset(data, 'x', LONG);
  counter gets = count_from_here("spx_gets", MPI_T_PVAR_CLASS_COUNTER);
  if (rank == 0) {
    MPI_Send(data, LONG, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    printf("a process of another user: %s\n", stranger(getpid(), data));
  } else if (rank == 1) {
    MPI_Recv(data, LONG, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("a rank of the same job: %s\n",
           counted(gets) == 1 ? "has read the message out of the sender's memory" : "has NOT read it");
  }
  free(data);
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
