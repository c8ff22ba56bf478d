/* midway COUNT STOP: sends COUNT messages, those of apart.c, to MPISP_CLUSTER_OUT, or until there is a file STOP, and does nothing else. All of its time passes in the middle of a send, where that looks at the clock before it answers others. */
#define _GNU_SOURCE
#include <mpi.h>
#include <mpisp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 2000000, SIZE = 1000 };

static __thread bool in_send;
static int looks;

/* In the place of that of the C library. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
  if (in_send) {
    looks++;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  }
  return (int)syscall(SYS_clock_gettime, clock, t);
}

int main(int argc, char **argv)
{
  int data[SIZE] = {0}, rank, i, before = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  for (i = 0; i < atoi(argv[1]) && access(argv[2], F_OK) != 0; i++) {
    data[0] = rank;
    data[1] = i;
    data[SIZE - 1] = i ^ rank;
    in_send = true;
    MPI_Send(data, i % 2 ? SIZE : 2, MPI_INT, MPISP_CLUSTER_OUT, 7, MPI_COMM_WORLD);
    in_send = false;
    if (looks == before) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    before = looks;
  }
  printf("rank %d sent %d, and looked at the clock %d times meanwhile\n", rank, i, looks);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
