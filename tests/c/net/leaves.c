/* A send that is over arrives, whatever its program does then (MPI-5.0 3.5): rank 0 sends to rank 1, which reads nothing, until there is no room for more, and makes no call of MPI before
 * rank 1 has all. The end of what was sent lies in a buffer of this process then, since the socket is full. first: so does the one message, since rank 1, which is stopped, has no connection with rank 0 yet.
 * docs/network.md. */
// run: n=2 env=SPX_TRANSPORTS=tcp timeout=60
// run: n=2 args="first" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=2 args="first" env=SPX_TRANSPORTS=tcp env=SPX_TLS=1 timeout=60
// run: n=2 args="65536" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=2 args="threads" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=2 env=SPX_TRANSPORTS=tcp env=SPX_TLS=1 timeout=60
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../check.h"

enum { MOST = 200000 };

static void put(int fd, int n) { CHECK(write(fd, &n, sizeof n) == sizeof n); }

static int get(int fd)
{
  int n = 0;
  CHECK(read(fd, &n, sizeof n) == sizeof n);
  return n;
}

/* The end of a pipe of one name that both know: who has started them is the same. No message has passed between them. */
static int pipe_end(int which, int flags)
{
  char name[64];
  snprintf(name, sizeof name, "/tmp/leaves-%d-%d", (int)getppid(), which);
  CHECK(mkfifo(name, 0600) == 0 || errno == EEXIST);
  int fd = open(name, flags); /* waits for the other end */
  CHECK(fd >= 0);
  unlink(name);
  return fd;
}

static char *buffer;
static int bytes = 8000;

/* Message n and those behind it, until there is no room: the number of the one that is not over. */
static int send_all(MPI_Request *r)
{
  int over = 1, n;
  for (n = -1; over && n < MOST;) {
    n++;
    memcpy(buffer, &n, sizeof n);
    MPI_Isend(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, r);
    if (n == 0) MPI_Wait(r, MPI_STATUS_IGNORE); /* the connection takes a while */
    MPI_Test(r, &over, MPI_STATUS_IGNORE);
  }
  CHECK(!over && (long)n * bytes > 80000); /* how much there is room for is the kernel's affair */
  return n;
}

static void receive(int i)
{
  int n;
  MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  memcpy(&n, buffer, sizeof n);
  CHECK(n == i);
}

static void await_stop(int pid)
{
  char name[64], state = 0;
  snprintf(name, sizeof name, "/proc/%d/stat", pid);
  while (state != 'T') {
    FILE *f = fopen(name, "r");
    CHECK(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
    fclose(f);
    usleep(1000);
  }
}

static void first(int rank, int there, int back)
{
  if (rank == 0) {
    int pid = get(back), n = 0;
    await_stop(pid);
    memcpy(buffer, &n, sizeof n);
    MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    kill(pid, SIGCONT);
    CHECK(get(back) == 1);
    put(there, 1); /* until then rank 1 makes no call either */
  } else {
    put(back, (int)getpid());
    raise(SIGSTOP);
    receive(0);
    put(back, 1);
    CHECK(get(there) == 1);
  }
}

static void last(int rank, int there, int back)
{
  if (rank == 0) {
    MPI_Request r;
    int n = send_all(&r);
    put(there, n);
    CHECK(get(back) == n);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  } else {
    int n = get(there);
    for (int i = 0; i < n; i++) receive(i);
    put(back, n);
    receive(n);
  }
}

int main(int argc, char **argv)
{
  int rank, level, threads = argc > 1 && !strcmp(argv[1], "threads");
  const char *what = argc > 1 ? argv[1] : NULL;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (what && atoi(what)) bytes = atoi(what);
  CHECK((buffer = calloc(1, (size_t)bytes)) != NULL);
  int there = pipe_end(0, rank == 0 ? O_WRONLY : O_RDONLY), back = pipe_end(1, rank == 0 ? O_RDONLY : O_WRONLY);
  (what && !strcmp(what, "first") ? first : last)(rank, there, back);
  free(buffer);
  MPI_Finalize();
  return check_status();
}
