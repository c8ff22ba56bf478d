/* Permission to print: the agent is simulated here, by a thread that answers as set, not at all, or
 * with half an answer. */
// sanitize: address,undefined thread
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "once.h"

#define CHECK(x)                                                                                   \
  do {                                                                                             \
    if (!(x)) fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1);                     \
  } while (0)

_Atomic int spx_state;
spx_seg *spx_segment;
uint32_t spx_me;

enum { FIRST = 1, AGAIN = 2, NOTHING, HALF, HANG_UP };
enum { SAY = 28 };

typedef struct {
  int listener, how;
  int over;       /* an eventfd: the request has been sent, or could not be */
  bool slow;      /* it accepts when the request has been waiting for a moment */
  char got[4096]; /* the question */
  size_t bytes;
  int said;
  bool asked;
  bool late; /* the answer was not waited for any more */
} agent;

/* Receives a request of this program; -1: there was none. Programs that list jobs (spxctl) connect
 * to each socket that has such a name, and are disconnected. */
static int question(agent *a)
{
  for (;;) {
    uint32_t n = 0;
    struct pollfd p[] = {{.fd = a->listener, .events = POLLIN}, {.fd = a->over, .events = POLLIN}};
    CHECK(poll(p, 2, -1) > 0);
    if (!p[0].revents) return -1;
    int fd = accept(a->listener, NULL, NULL);
    CHECK(fd >= 0);
    bool whole = recv(fd, &n, 4, MSG_WAITALL) == 4 && n < sizeof a->got;
    whole = whole && recv(fd, a->got, n, MSG_WAITALL) == (ssize_t)n && a->got[0] == SAY;
    if (whole) {
      a->bytes = n;
      return fd;
    }
    close(fd);
  }
}

static void *serve(void *arg)
{
  agent *a = arg;
  struct pollfd over = {.fd = a->over, .events = POLLIN};
  if (a->slow) poll(&over, 1, 200);
  int fd = question(a);
  char answer[64] = {0}, byte;
  a->said = -1;
  if (fd < 0) return NULL;
  a->asked = true;
  uint64_t number = a->how == AGAIN ? 2 : 1;
  uint32_t rest = 36;
  memcpy(answer, &rest, sizeof rest);
  memcpy(answer + 13, &number, 8);
  if (a->how == FIRST || a->how == AGAIN) a->late = send(fd, answer, 40, MSG_NOSIGNAL) != 40;
  if (a->how == HALF) a->late = send(fd, answer, 17, MSG_NOSIGNAL) != 17;
  if (a->how != HANG_UP)
    for (int i = 0; read(fd, &byte, 1) > 0; i++)
      if (i == 4) a->said = byte; /* the kind of what follows */
  close(fd);
  return NULL;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Other processes connect, until the backlog is full. */
static int crowd(const struct sockaddr_un *at, socklen_t size, int *fds, int most)
{
  for (int n = 0;; n++) {
    CHECK(n < most);
    fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(fds[n] >= 0);
    if (connect(fds[n], (const struct sockaddr *)at, size) == 0) {
      shutdown(fds[n], SHUT_WR); /* it sends no request */
      continue;
    }
    CHECK(errno == EAGAIN);
    close(fds[n]);
    return n;
  }
}

/* The outcome of a request that the agent answers so; how long it took. */
static bool asked_once(int listener, int how, const char *cause, double *seconds, agent *a)
{
  pthread_t t;
  uint64_t one = 1;
  *a = (agent){.listener = listener, .how = how, .slow = a->slow, .over = eventfd(0, EFD_CLOEXEC)};
  CHECK(a->over >= 0);
  CHECK(pthread_create(&t, NULL, serve, a) == 0);
  double began = now();
  int turn;
  bool may = spx_may_say(cause, "short", &turn);
  *seconds = now() - began;
  bool in_time = *seconds < 1.9 || how == NOTHING || how == HALF;
  CHECK((turn >= 0) == (how == FIRST) || !in_time); /* it was allowed, not just unanswered */
  spx_said(turn);
  CHECK(write(a->over, &one, sizeof one) == sizeof one);
  CHECK(pthread_join(t, NULL) == 0);
  close(a->over);
  CHECK(a->asked || !in_time);
  if (!in_time) a->late = true;
  return may;
}

/* Again where the machine stood still for as long as an answer is waited for. */
static bool asked(int listener, int how, const char *cause, double *seconds, agent *a)
{
  bool may = asked_once(listener, how, cause, seconds, a);
  for (int more = 0; a->late && more < 5; more++)
    may = asked_once(listener, how, cause, seconds, a);
  CHECK(!a->late);
  return may;
}

int main(void)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  char job[33], longest[3000];
  double seconds;
  static agent a;
  int turn;
  CHECK(spx_may_say("x", "x", &turn) && turn == -1); /* there is no job */
  snprintf(job, sizeof job, "%02x%02x%02x%02xa1b2c3d4%016d", (unsigned)getpid() & 255,
           (unsigned)getpid() >> 8 & 255, (unsigned)getpid() >> 16 & 255, 7, 0);
  setenv("SPX_JOB", job, 1);
  setenv("SPX_RANK", "5", 1);
  CHECK(spx_may_say("x", "x", &turn) && turn == -1); /* there is no agent */
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  /* the bytes of the job's id, the last of the first eight in front */
  int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "spx-job-d4c3b2a107%02x%02x%02x",
                   (unsigned)getpid() >> 16 & 255, (unsigned)getpid() >> 8 & 255,
                   (unsigned)getpid() & 255);
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
  CHECK(bind(listener, (struct sockaddr *)&at, size) == 0);
  CHECK(listen(listener, 4) == 0);

  CHECK(asked(listener, FIRST, "cause", &seconds, &a));
  CHECK(a.got[0] == SAY); /* kind; class and world are 0; then the number, which is the rank */
  CHECK(a.got[9] == 5 && a.got[17] == 5 && memcmp(a.got + 21, "cause", 5) == 0 &&
        memcmp(a.got + 30, "short", 5) == 0);
  CHECK(a.bytes == 1 + 4 + 4 + 8 + (4 + 5) + (4 + 5) + 28 + 4 * 4);
  CHECK(a.said == 29);
  CHECK(!asked(listener, AGAIN, "cause", &seconds, &a) && a.said == -1);
  CHECK(asked(listener, HANG_UP, "cause", &seconds, &a));
  CHECK(asked(listener, NOTHING, "cause", &seconds, &a) && seconds > 1.9 && seconds < 60);
  CHECK(asked(listener, HALF, "cause", &seconds, &a) && seconds > 1.9 && seconds < 60);

  /* The backlog is full of other connections, made while the agent was busy: the request waits for
   * its turn. */
  int others[16], n_others = crowd(&at, size, others, 16);
  a.slow = true;
  CHECK(!asked(listener, AGAIN, "cause", &seconds, &a) && seconds < 1.9);
  a.slow = false;
  while (n_others > 0) close(others[--n_others]);

  memset(longest, 'z', sizeof longest - 1);
  longest[sizeof longest - 1] = 0;
  CHECK(!asked(listener, AGAIN, longest, &seconds, &a) && a.bytes < 1000);
  close(listener);
  return 0;
}
