/* A message is relayed while its receiver opens a connection to the sender, which makes no MPI call meanwhile:
 * nothing comes on the connection, and the message must be accepted from the relay. The ranks between the two
 * are stopped until the receiver asks for the connection, because its own message is not acknowledged.
 * docs/connections.md. */
// run: n=4 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:2 timeout=60
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"

enum { STOPPED_US = 900000, BEGIN_US = 200000, COMPUTE_S = 7, LIMIT_S = 5 };

/* Stops this process; a child continues it. */
static void stop(void)
{
  pid_t child = fork();
  if (child == 0) {
    usleep(STOPPED_US);
    kill(getppid(), SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
  waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int rank, n, sent, got = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    usleep(BEGIN_US);
    sent = 5;
    MPI_Send(&sent, 1, MPI_INT, n - 1, 7, MPI_COMM_WORLD);
    sleep(COMPUTE_S); /* in no MPI call */
    MPI_Recv(&got, 1, MPI_INT, n - 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 6);
  } else if (rank == n - 1) {
    usleep(BEGIN_US);
    double begin = MPI_Wtime();
    sent = 6;
    MPI_Send(&sent, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 5);
    CHECK(MPI_Wtime() - begin < LIMIT_S); /* before its sender's next call */
  } else
    stop();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return check_status();
}
