/* A connection breaks while both ends run: the job ends with an error that names both, whoever waits for whom, instead of hanging. A rank that has left MPI and lives on is no such
 * case, though its end is closed.
 *   lost reset        the connection is reset, as a firewall would
 *   lost closed       it is closed
 *   lost foreign      the program puts a file of its own in the place of the socket
 *   lost left         rank 1 calls MPI_Finalize and closes its connections, long before the others
 */
// run: n=2 args="reset" env=SPX_TRANSPORTS=tcp timeout=30 status=16 stderr~"the connection between rank (0 of .* and rank 1|1 of .* and rank 0) of .* has broken \(.*\) although both run"
// run: n=2 args="closed" env=SPX_TRANSPORTS=tcp timeout=30 status=16 stderr~"the connection between rank (0 of .* and rank 1|1 of .* and rank 0) of .* has broken \(it was closed\) although both run"
// run: n=2 args="foreign" env=SPX_TRANSPORTS=tcp timeout=30 status=16 stderr~"although both run: messages are lost; .*closed descriptors that are not its own"
// run: n=4 args="reset" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:1 timeout=30 status=16 stderr~"although both run"
// run: n=2 args="reset" env=SPX_TRANSPORTS=tcp env=SPX_TLS=1 timeout=30 status=16 stderr~"although both run"
// run: n=3 args="left" env=SPX_TRANSPORTS=tcp timeout=30
#include "../check.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DESCRIPTORS = 1024 };

/* The descriptor is a TCP socket with another end. */
static int is_connection(int fd)
{
  struct sockaddr_storage a;
  socklen_t len = sizeof a;
  return getpeername(fd, (struct sockaddr *)&a, &len) == 0 && (a.ss_family == AF_INET || a.ss_family == AF_INET6);
}

static int break_one(const char *how, int fd)
{
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  if (strcmp(how, "reset") == 0) return connect(fd, &none, sizeof none);
  if (strcmp(how, "closed") == 0) return shutdown(fd, SHUT_RDWR);
  int file = open("/dev/null", O_RDWR);
  return dup2(file, fd) == fd ? close(file) : -1;
}

/* Breaks all connections of this rank, and waits for what never comes. */
static void break_all(const char *how)
{
  int n = 0;
  for (int fd = 3; fd < DESCRIPTORS; fd++)
    if (is_connection(fd)) {
      CHECK(break_one(how, fd) == 0);
      n++;
    }
  if (n == 0) MPI_Abort(MPI_COMM_WORLD, 3);
}

/* Rank 1 leaves; rank 0 is in MPI all the time, and rank 2 lets it wait for longer than some calls of rank 1 take. */
static void leave(int rank)
{
  int word = 7;
  if (rank == 1) {
    MPI_Finalize();
    for (int fd = 3; fd < DESCRIPTORS; fd++)
      if (is_connection(fd)) close(fd);
  }
  struct timespec t = {.tv_sec = 2};
  if (rank != 0) nanosleep(&t, NULL);
  if (rank == 1) _exit(0);
  if (rank == 2) MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&word, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(word == 7);
}

int main(int argc, char **argv)
{
  int rank, size, word = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 3; i++)
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, (int[16]){0}, 1, MPI_INT, MPI_COMM_WORLD);
  if (argc > 1 && strcmp(argv[1], "left") == 0) {
    leave(rank);
  } else {
    if (argc > 1 && rank == 1) break_all(argv[1]);
    MPI_Recv(&word, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* nobody sends it */
  }
  MPI_Finalize();
  return check_status();
}
