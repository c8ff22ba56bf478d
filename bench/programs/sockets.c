/* sockets.c - what two processes can do over loopback TCP with sockets alone, without any MPI: lines "limit bytes microseconds".
 *
 *   sockets [-t MS] [NAME ...]      NAMEs: those limits alone
 *
 *   socket-pingpong   half a round trip: the better of the next two
 *   socket-blocking   the same, asleep in recv until it has come
 *   socket-polling    the same, calling recv again and again
 *   socket-stream     one message of WINDOW, each given to the socket by itself, an answer after each window
 *   socket-both       one message of DEEP, while as many come the other way
 *
 * TCP_NODELAY is set; buffers are as large as the kernel makes them. A message is over when its last byte lies in its place: buffers rotate
 * as those of rows.c do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 3, POOL = 32 << 20, SLOTS = 64, WINDOW = 64, DEEP = 16 };

typedef void body(size_t bytes, long times);
/* What the helper is to do; times 0: to end. */
typedef struct order {
  int kind;
  size_t bytes;
  long times;
} order;

static char *out, *in;
static int conn, control; /* the connection that is measured, and the one for orders */
static int parent = 1;
static double batch = 4e-3;
static int names;
static char **name;

static char *slot(char *base, size_t bytes, long i)
{
  size_t stride = ((bytes + 63) & ~(size_t)63) + (bytes >= 4096 ? 64 : 0), n = POOL / stride;
  return base + (size_t)i % (n > SLOTS ? SLOTS : n < 1 ? 1 : n) * stride;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
  perror(what);
  exit(1);
}

/* What the socket does now: bytes, 0 when it would have to wait. */
static size_t some(ssize_t moved)
{
  if (moved > 0) return (size_t)moved;
  if (moved == 0 || (errno != EAGAIN && errno != EINTR)) fail("sockets: the connection");
  return 0;
}

static void put(const char *from, size_t bytes, int flags)
{
  for (size_t at = 0; at < bytes;) at += some(send(conn, from + at, bytes - at, flags | MSG_NOSIGNAL));
}

static void take(char *to, size_t bytes, int flags)
{
  for (size_t at = 0; at < bytes;) at += some(recv(conn, to + at, bytes - at, flags));
}

static void pingpong(size_t bytes, long times, int flags)
{
  for (long i = 0; i < times; i++) {
    if (parent) put(slot(out, bytes, i), bytes, flags);
    take(slot(in, bytes, i), bytes, flags);
    if (!parent) put(slot(out, bytes, i), bytes, flags);
  }
}

static void blocking(size_t bytes, long times) { pingpong(bytes, times, 0); }
static void polling(size_t bytes, long times) { pingpong(bytes, times, MSG_DONTWAIT); }

static void stream(size_t bytes, long times)
{
  char answer[4] = {0};
  for (long i = 0; i < times; i++) {
    for (int k = 0; k < WINDOW; k++) {
      if (parent)
        put(slot(out, bytes, k), bytes, MSG_DONTWAIT);
      else
        take(slot(in, bytes, k), bytes, MSG_DONTWAIT);
    }
    if (parent)
      take(answer, sizeof answer, MSG_DONTWAIT);
    else
      put(answer, sizeof answer, MSG_DONTWAIT);
  }
}

static void both(size_t bytes, long times)
{
  for (long i = 0; i < times; i++) {
    size_t sent = 0, got = 0, all = DEEP * bytes;
    while (sent < all || got < all) {
      if (sent < all) {
        ssize_t n = send(conn, slot(out, bytes, (long)(sent / bytes)) + sent % bytes, bytes - sent % bytes,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += some(n);
      }
      if (got < all)
        got += some(recv(conn, slot(in, bytes, (long)(got / bytes)) + got % bytes, bytes - got % bytes, MSG_DONTWAIT));
    }
  }
}

static const struct {
  const char *name;
  body *run;
  double operations;
} limits[] = {{"socket-blocking", blocking, 2},
              {"socket-polling", polling, 2},
              {"socket-stream", stream, WINDOW},
              {"socket-both", both, DEEP}};
enum { BLOCKING, POLLING, STREAM, BOTH };

static double run(int kind, size_t bytes, long times)
{
  order o = {kind, bytes, times};
  char ready;
  if (write(control, &o, sizeof o) != sizeof o || read(control, &ready, 1) != 1) fail("sockets: the helper");
  double start = now();
  limits[kind].run(bytes, times);
  return now() - start;
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Microseconds of an operation: the median of batches that last long enough. */
static double measure(int kind, size_t bytes)
{
  double seconds[BATCHES];
  long times = 1;
  for (;;) {
    double s = run(kind, bytes, times);
    if (s >= batch * 0.7) break;
    times = s < batch / 10 ? times * 8 : (long)((double)times * batch / s) + 1;
  }
  for (int i = 0; i < BATCHES; i++) seconds[i] = run(kind, bytes, times);
  qsort(seconds, BATCHES, sizeof(double), ascending);
  return seconds[BATCHES / 2] * 1e6 / (double)times / limits[kind].operations;
}

static int wanted(const char *limit)
{
  for (int i = 0; i < names; i++)
    if (!strcmp(name[i], limit)) return 1;
  return names == 0;
}

/* The helper: does what it is told to. */
static void help(void)
{
  order o;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  parent = 0;
  while (read(control, &o, sizeof o) == sizeof o) {
    if (write(control, "", 1) != 1) break;
    limits[o.kind].run(o.bytes, o.times);
  }
  exit(0);
}

/* Starts the helper, at the other end of a connection. */
static pid_t connect_helper(void)
{
  int listener = socket(AF_INET, SOCK_STREAM, 0), pair[2], on = 1;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof a;
  if (listener < 0 || bind(listener, (struct sockaddr *)&a, len) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr *)&a, &len) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
    fail("sockets");
  pid_t pid = fork();
  if (pid < 0) fail("sockets");
  if (pid == 0) {
    close(pair[0]);
    control = pair[1];
    conn = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(conn, (struct sockaddr *)&a, len)) fail("sockets: connect");
  } else {
    close(pair[1]);
    control = pair[0];
    conn = accept(listener, NULL, NULL);
  }
  close(listener);
  if (conn < 0 || setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on)) fail("sockets");
  if (pid == 0) help();
  return pid;
}

int main(int argc, char **argv)
{
  static const size_t sizes[] = {8,      64,     512,    1024,    4096,    8192,    16384, 65536,
                                 200000, 262144, 524288, 1048576, 2097152, 4194304, 0};
  for (int c; (c = getopt(argc, argv, "t:")) != -1;) {
    if (c != 't') return 2;
    batch = atof(optarg) * 1e-3;
  }
  name = argv + optind, names = argc - optind;
  out = malloc(POOL + 4096);
  in = malloc(POOL + 4096);
  if (!out || !in) return 1;
  memset(out, 'o', POOL);
  pid_t helper = connect_helper();
  memset(in, 'i', POOL);
  for (const size_t *s = sizes; *s; s++) {
    if (wanted("socket-pingpong")) {
      double b = measure(BLOCKING, *s), p = measure(POLLING, *s);
      printf("socket-blocking %zu %.4f\nsocket-polling %zu %.4f\nsocket-pingpong %zu %.4f\n", *s, b, *s, p, *s,
             b < p ? b : p);
    }
    for (int k = STREAM; k <= BOTH; k++)
      if (wanted(limits[k].name)) printf("%s %zu %.4f\n", limits[k].name, *s, measure(k, *s));
  }
  close(control);
  waitpid(helper, NULL, 0);
  return 0;
}
