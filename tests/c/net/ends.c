/* Who has sent messages that are over can end, though their receiver makes no more calls of MPI for now: each rank sends to rank 0, which waits for the ends of all the others, and is in no call meanwhile.
 * "unread": rank 0 has not received them yet either, and does so then, while what it tells their senders of that reaches nobody. docs/connections.md. */
// run: n=4 env=SPX_TRANSPORTS=tcp timeout=60
// run: n=4,12 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:3 timeout=60
// run: n=4,12 args="unread" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:3 timeout=60
// run: n=12 args="unread" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=random:3:1 timeout=60
// run: n=2,4 args="unread 10" env=SPX_TRANSPORTS=tcp env=SPX_CREDIT=32K timeout=60
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../check.h"

enum { LIMIT_S = 30, INTS = 800 };
static int messages = 1, text[INTS];

static void receive(int n, int *pids)
{
  MPI_Status s;
  int *got = calloc((size_t)n, sizeof *got);
  for (int i = 0; i < messages * (n - 1); i++) {
    MPI_Recv(text, INTS, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &s);
    CHECK(text[0] == pids[s.MPI_SOURCE]);
    CHECK(text[INTS - 1] == got[s.MPI_SOURCE]++);
  }
  free(got);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int rank, n, unread = argc > 1 && strcmp(argv[1], "unread") == 0;
  if (argc > 2) messages = atoi(argv[2]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  int pid = (int)getpid(), *pids = calloc((size_t)n, sizeof *pids);
  MPI_Gather(&pid, 1, MPI_INT, pids, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank > 0) {
    text[0] = pid;
    for (int i = 0; i < messages; i++) {
      text[INTS - 1] = i;
      MPI_Send(text, INTS, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return check_status();
  }
  if (!unread) receive(n, pids);
  time_t end = time(NULL) + LIMIT_S;
  for (int i = 1; i < n; i++) {
    while (kill((pid_t)pids[i], 0) == 0 && time(NULL) < end) usleep(1000);
    CHECK(kill((pid_t)pids[i], 0) != 0);
  }
  if (unread) receive(n, pids);
  free(pids);
  MPI_Finalize();
  return check_status();
}
