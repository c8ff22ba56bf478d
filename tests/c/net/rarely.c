/* Messages go through others, and all but the two that talk compute: the sender looks only now and then, and yet finds that nothing gets on, and connects with the receiver itself. The others go on when the
 * message is there. docs/connections.md. */
// run: n=8 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:4 timeout=300
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "../check.h"

enum { LOOKS_MS = 30, LIMIT_S = 60 };

static int rank, size, pids[16];

/* What processes say past MPI; each signal is queued. */
static int through, asleep, arrived;

static void tell(int to, int number)
{
  if (to != rank) kill(pids[to], number);
}

/* Whether the signal has come, within so many seconds. */
static int was_told(int number, int seconds)
{
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  return sigtimedwait(&one, NULL, &(struct timespec){.tv_sec = seconds}) == number;
}

/* Takes part until all are through the barrier: then nothing is held for others any more. */
static void leave_together(void)
{
  for (int i = 0; i < size; i++) tell(i, through);
  for (int flag, n = 1; n < size; n += was_told(through, 0))
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

static void send_to(int receiver)
{
  MPI_Request r;
  int done = 0;
  for (int n = 2; n < size; n++) CHECK(was_told(asleep, LIMIT_S));
  MPI_Issend(&receiver, 1, MPI_INT, receiver, 1, MPI_COMM_WORLD, &r);
  while (!done) {
    nanosleep(&(struct timespec){.tv_nsec = LOOKS_MS * 1000000L}, NULL);
    MPI_Test(&r, &done, MPI_STATUS_IGNORE);
  }
}

static void receive(void)
{
  int got = -1;
  MPI_Recv(&got, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(got == rank);
  for (int i = 1; i < size; i++) tell(i, arrived);
}

static void compute(void)
{
  tell(0, asleep);
  CHECK(was_told(arrived, LIMIT_S));
}

int main(int argc, char **argv)
{
  sigset_t all;
  sigemptyset(&all);
  through = SIGRTMIN, asleep = SIGRTMIN + 1, arrived = SIGRTMIN + 2;
  for (int s = through; s <= arrived; s++) sigaddset(&all, s);
  sigprocmask(SIG_BLOCK, &all, NULL); /* in all threads */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int pid = (int)getpid();
  MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
  for (int receiver = 1; receiver < size; receiver++) {
    MPI_Barrier(MPI_COMM_WORLD);
    leave_together();
    if (rank == 0)
      send_to(receiver);
    else if (rank == receiver)
      receive();
    else
      compute();
  }
  MPI_Finalize();
  return check_status();
}
