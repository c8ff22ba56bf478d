/* A process of another job connects and is killed at any moment of that: whoever accepts gets an error, or an intercommunicator whose
 * other side has failed, or meets the next that connects; nobody waits for ever, and the port goes on. */
// run: n=2 timeout=60
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../check.h"

enum { ROUNDS = 16, STEP_US = 3000 };

/* A process without a launcher that connects. */
static pid_t start(char *self, const char *how, const char *port)
{
  static const char *place[] = {
      "SPX_FD", "SPX_JOB", "SPX_PROC", "SPX_RANK", "SPX_SIZE", "SPX_AGENT", "OMPI_COMM_WORLD_SIZE"};
  pid_t p = fork();
  if (p != 0) return p;
  for (unsigned i = 0; i < sizeof place / sizeof *place; i++) unsetenv(place[i]);
  execl(self, self, how, port, NULL);
  _exit(127);
}

static int client(const char *port, int healthy)
{
  MPI_Comm server;
  MPI_Init(NULL, NULL);
  MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &server);
  MPI_Send(&healthy, 1, MPI_INT, 0, 0, server);
  if (!healthy) pause();
  MPI_Comm_disconnect(&server);
  MPI_Finalize();
  return 0;
}

/* Serves until the healthy one has come. */
static void serve(const char *port)
{
  for (int healthy = 0; !healthy;) {
    MPI_Comm c;
    if (MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c) != MPI_SUCCESS) continue;
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    int err = MPI_Recv(&healthy, 1, MPI_INT, 0, 0, c, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS && !healthy) err = MPI_Recv(&healthy, 1, MPI_INT, 0, 0, c, MPI_STATUS_IGNORE);
    if (err != MPI_SUCCESS) CHECK_CLASS(err, MPIX_ERR_PROC_FAILED);
    MPI_Comm_disconnect(&c);
  }
}

static void send_guests(char *self, const char *port, int round)
{
  struct timespec moment = {0, 1000L * STEP_US * round + 1000000};
  int status;
  pid_t p = start(self, "dies", port);
  nanosleep(&moment, NULL); /* any moment will do */
  kill(p, SIGKILL);
  CHECK(waitpid(p, &status, 0) == p);
  p = start(self, "healthy", port);
  CHECK(waitpid(p, &status, 0) == p && status == 0);
}

int main(int argc, char **argv)
{
  char port[MPI_MAX_PORT_NAME];
  int rank;
  if (argc > 2) return client(argv[2], strcmp(argv[1], "healthy") == 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int round = 0; round < ROUNDS; round++) {
    if (rank == 0)
      serve(port);
    else
      send_guests(argv[0], port, round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) MPI_Close_port(port);
  MPI_Finalize();
  return check_status();
}
