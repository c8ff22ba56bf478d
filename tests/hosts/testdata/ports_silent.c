/* The host of one of two jobs falls silent. Arguments: keep, call or late, and a folder. Of the first two, rank 0 talks with that of the other job, rank 1 parts from it, rank 2 waits at a second port of it, and rank 3 has called
 * MPI_Comm_join, which the other one has not; late is a job that connects at the first port when all is silent. Each makes a file before the call that does not come back before the host is silent, and says what came of it. */
#include <mpi-ext.h>
#include <mpi.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TALKS, PARTS, WAITS, JOINS };

static const char *dir;
static int rank;

/* The file NAME.RANK of the folder. */
static const char *path(const char *name, const char *more)
{
  static char out[2][1024];
  static int turn;
  char *to = out[turn ^= 1];
  snprintf(to, sizeof out[0], "%s/%s.%d%s", dir, name, rank, more);
  return to;
}

static void tell(const char *name, const char *text)
{
  FILE *f = fopen(path(name, ".new"), "w");
  if (!f || fprintf(f, "%s\n", text) < 0 || fclose(f) != 0 || rename(path(name, ".new"), path(name, "")) != 0)
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static void hear(const char *name, char *text, int size)
{
  FILE *f;
  while (!(f = fopen(path(name, ""), "r"))) usleep(2000);
  if (!fgets(text, size, f)) text[0] = 0;
  text[strcspn(text, "\n")] = 0;
  fclose(f);
}

static void say(const char *what, int err)
{
  int class;
  MPI_Error_class(err, &class);
  printf("%s: %s\n", what,
         class == MPI_SUCCESS            ? "MPI_SUCCESS"
         : class == MPI_ERR_PORT         ? "MPI_ERR_PORT"
         : class == MPI_ERR_OTHER        ? "MPI_ERR_OTHER"
         : class == MPIX_ERR_PROC_FAILED ? "MPIX_ERR_PROC_FAILED"
                                         : "another class");
  fflush(stdout);
}

static MPI_Comm meet(int keeps, char *port)
{
  MPI_Comm other;
  int err;
  if (keeps) {
    MPI_Open_port(MPI_INFO_NULL, port);
    tell("port", port);
    err = MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  } else {
    hear("port", port, MPI_MAX_PORT_NAME);
    err = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  }
  if (err != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 8);
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  return other;
}

/* A socket between the two, with options of the program's own. */
static int between(int keeps, const char *host)
{
  struct sockaddr_in at = {.sin_family = AF_INET};
  struct addrinfo want = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
  socklen_t len = sizeof at;
  char port[32];
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (keeps) {
    if (bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0)
      return -1;
    snprintf(port, sizeof port, "%d", ntohs(at.sin_port));
    tell("socket", port);
    return accept(fd, NULL, NULL);
  }
  hear("socket", port, sizeof port);
  if (getaddrinfo(host, port, &want, &found) != 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0) return -1;
  freeaddrinfo(found);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){77}, sizeof(int));
  return fd;
}

static void join(int fd)
{
  MPI_Comm other;
  int idle = 0, alive = 1;
  unsigned limit = 1;
  socklen_t len = sizeof idle;
  tell("ready", "");
  say("join", MPI_Comm_join(fd, &other));
  getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &len);
  getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &alive, &len);
  getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &len);
  printf("the socket: %d, %d, %u\n", idle, alive, limit);
}

static void call(const char *host)
{
  char port[MPI_MAX_PORT_NAME];
  int word;
  if (rank == JOINS) {
    join(between(0, host));
    return;
  }
  MPI_Comm other = meet(0, port);
  if (rank == TALKS) {
    tell("ready", "");
    say("receive", MPI_Recv(&word, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE));
  }
  if (rank == PARTS) tell("ready", "");
  if (rank != WAITS) {
    say("disconnect", MPI_Comm_disconnect(&other));
    return;
  }
  hear("second", port, sizeof port);
  tell("ready", "");
  say("connect", MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other));
}

static void keep(void)
{
  char port[MPI_MAX_PORT_NAME];
  if (rank == JOINS)
    between(1, NULL);
  else
    meet(1, port);
  if (rank == WAITS) {
    MPI_Open_port(MPI_INFO_NULL, port);
    tell("second", port);
  }
  hear("end", port, sizeof port);
}

int main(int argc, char **argv)
{
  MPI_Comm other;
  char port[MPI_MAX_PORT_NAME];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (argc < 4) return 2;
  dir = argv[2];
  if (!strcmp(argv[1], "keep")) {
    keep();
    MPI_Abort(MPI_COMM_WORLD, 0); /* it has guests that are as silent */
  } else if (!strcmp(argv[1], "call")) {
    call(argv[3]);
  } else {
    hear("port", port, sizeof port);
    say("late", MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other));
  }
  MPI_Finalize();
  return 0;
}
