/* A message goes through others while its receiver opens a connection with its sender, who makes no call of MPI meanwhile: the connection brings nothing, and the message comes through the others all the
 * same. The ranks between the two stand still until the connection has been asked for, since what the receiver has sent is not acknowledged. docs/connections.md. */
// run: n=4 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:2 timeout=60
// run: n=4 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:2 timeout=60
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../check.h"

enum { STAND_US = 900000, BEGIN_US = 200000, LIMIT_S = 20 };
static volatile sig_atomic_t came;
static void on_signal(int n) { came = n; }

/* Stops this process, which another one lets go on. */
static void stand_still(void)
{
  pid_t child = fork();
  if (child == 0) {
    usleep(STAND_US);
    kill(getppid(), SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
  waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int rank, n, pid = (int)getpid(), text = 5;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  signal(SIGUSR1, on_signal);
  MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    usleep(BEGIN_US);
    MPI_Send(&text, 1, MPI_INT, n - 1, 7, MPI_COMM_WORLD);
    for (time_t end = time(NULL) + LIMIT_S; !came && time(NULL) < end;) usleep(1000);
    CHECK(came);
    MPI_Recv(&text, 1, MPI_INT, n - 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(text == 6);
  } else if (rank == n - 1) {
    int got = 0, sent = 6;
    usleep(BEGIN_US);
    MPI_Send(&sent, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 5);
    kill((pid_t)pid, SIGUSR1);
  } else
    stand_still();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return check_status();
}
