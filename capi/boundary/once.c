/* once.c - a message that many processes have is printed by one: each queries the agent of its host
 * first, which queries the one of spxrun's host (launch/agent/once.go). The request has the form of
 * launch/service, and is written here, because it must be possible before MPI_Init and when the
 * engine has failed. */
#define _GNU_SOURCE
#include "once.h"
#include "runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
  PATIENCE_MS = 2000,
  MOST = 600, /* bytes of a text that are sent; texts that are alike so far are taken as the same */
  SAY = 28,   /* service.Say */
  SAID = 29,
  SAID_FIRST = 1,
  SAID_AGAIN = 2,
  PEER_BYTES = 28,              /* of service.Peer: of no process */
  NUMBER_AT = 4 + 1 + 4 + 4,    /* of the answer: behind its length, kind, class and world */
  ANSWER_BYTES = NUMBER_AT + 8, /* the part of it that is parsed */
  LISTS = 4                     /* at the end, all empty */
};

typedef struct {
  char bytes[256 + 2 * MOST];
  size_t n;
} message;

static void put(message *m, const void *from, size_t n)
{
  memcpy(m->bytes + m->n, from, n);
  m->n += n;
}

static void put32(message *m, uint32_t v) { put(m, &v, sizeof v); }

static void put_text(message *m, const char *text)
{
  size_t n = strnlen(text, MOST);
  put32(m, (uint32_t)n);
  put(m, text, n);
}

static void question(message *m, uint8_t kind, const char *cause, const char *shortly)
{
  static const char nobody[PEER_BYTES];
  bool here = spx_segment != NULL;
  const char *rank = secure_getenv("SPX_RANK");
  uint64_t number = here ? spx_proc_of(spx_me)->world_rank : rank ? strtoull(rank, NULL, 10) : 0;
  m->n = sizeof(uint32_t);
  put(m, &kind, 1);
  put32(m, 0); /* class */
  put32(m, here ? spx_proc_of(spx_me)->world_id : 0);
  put(m, &number, sizeof number);
  put_text(m, cause);
  put_text(m, shortly);
  put(m, nobody, PEER_BYTES);
  for (int i = 0; i < LISTS; i++) put32(m, 0);
  uint32_t length = (uint32_t)(m->n - sizeof length);
  memcpy(m->bytes, &length, sizeof length);
}

/* The first eight bytes of the job's id, 0 without a job: from the memory file or, before that is
 * there, from the environment. */
static uint64_t job_number(void)
{
  uint64_t job = 0;
  const char *hex = secure_getenv("SPX_JOB");
  uint8_t id[sizeof job];
  if (spx_segment) {
    memcpy(&job, spx_segment->job_id, sizeof job);
    return job;
  }
  for (size_t i = 0; i < sizeof id; i++)
    if (!hex || sscanf(hex + 2 * i, "%2hhx", &id[i]) != 1) return 0;
  memcpy(&job, id, sizeof job);
  return job;
}

static int64_t now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Moves n bytes through a socket that does not block; false when that fails, or the time is
 * over. */
static bool carry(int fd, bool out, char *bytes, size_t n, int64_t until)
{
  for (size_t done = 0; done < n;) {
    ssize_t k =
        out ? send(fd, bytes + done, n - done, MSG_NOSIGNAL) : recv(fd, bytes + done, n - done, 0);
    if (k > 0) {
      done += (size_t)k;
      continue;
    }
    if (k == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    int64_t left = until - now_ms();
    struct pollfd p = {.fd = fd, .events = out ? POLLOUT : POLLIN};
    if (left <= 0) return false;
    poll(&p, 1, (int)left);
  }
  return true;
}

/* The question's answer: Number; 0 when there is none. */
static uint64_t ask(int fd, message *m, int64_t until)
{
  char answer[256];
  uint32_t rest;
  uint64_t number = 0;
  if (!carry(fd, true, m->bytes, m->n, until) || !carry(fd, false, answer, sizeof rest, until))
    return 0;
  memcpy(&rest, answer, sizeof rest);
  /* it refuses, with a long text */
  if (rest < ANSWER_BYTES - sizeof rest || rest > sizeof answer - sizeof rest) return 0;
  if (!carry(fd, false, answer + sizeof rest, rest, until)) return 0;
  memcpy(&number, answer + NUMBER_AT, sizeof number);
  return number;
}

/* Connects, and waits while other processes fill the agent's backlog: a socket that does not block
 * would be refused then, and no event reports when there is room. */
static bool calls(int fd, const struct sockaddr_un *to, socklen_t size, int64_t until)
{
  int64_t left;
  while ((left = until - now_ms()) > 0) {
    struct timeval t = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) != 0) return false;
    if (connect(fd, (const struct sockaddr *)to, size) == 0) return true;
    if (errno != EINTR) return false;
  }
  return false;
}

/* Connects with a socket of this user: one of another user may have the name by now. */
static bool connects(int fd, const struct sockaddr_un *to, size_t n, int64_t until)
{
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
  struct ucred listens;
  socklen_t length = sizeof listens;
  return calls(fd, to, size, until) &&
         getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listens, &length) == 0 &&
         listens.uid == getuid() && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

/* Whether that process is the agent. Where this one has a pid namespace of its own, its number may
 * be that of another process, which may be the agent of another job: only the job's memory file
 * proves it (join.c). */
static bool is_agent(const char *pid, uint64_t job)
{
  char path[64];
  spx_seg head;
  const char *memory = getenv("SPX_FD");
  if (!pid || !memory ||
      snprintf(path, sizeof path, "/proc/%s/fd/%s", pid, memory) >= (int)sizeof path)
    return false;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return false;
  bool is = pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
            head.magic == SPX_SEG_MAGIC && memcmp(head.job_id, &job, sizeof job) == 0;
  close(fd);
  return is;
}

/* Connects with this process's agent: by the descriptor that leads to it or, if that was closed, by
 * its abstract name (launch/service/door.go). */
static bool reach_agent(int fd, uint64_t job, int64_t until)
{
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  const char *door = secure_getenv("SPX_DOOR"), *who[] = {"self", secure_getenv("SPX_AGENT")};
  int n, flags = door ? fcntl(atoi(door), F_GETFL) : -1;
  for (int i = 0; i < 2 && door; i++) {
    if (i > 0 ? !is_agent(who[i], job) : flags < 0 || !(flags & O_PATH)) continue;
    n = who[i] ? snprintf(to.sun_path, sizeof to.sun_path, "/proc/%s/fd/%s", who[i], door) : 0;
    if (n > 0 && n < (int)sizeof to.sun_path && connects(fd, &to, (size_t)n + 1, until))
      return true;
  }
  memset(to.sun_path, 0, sizeof to.sun_path);
  n = snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "spx-job-%016llx", (unsigned long long)job);
  return connects(fd, &to, 1 + (size_t)n, until);
}

bool spx_may_say(const char *cause, const char *shortly, int *turn)
{
  message m;
  uint64_t job = job_number(), number = 0;
  *turn = -1;
  if (!job) return true;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  int64_t until = now_ms() + PATIENCE_MS;
  if (reach_agent(fd, job, until)) {
    question(&m, SAY, cause, shortly);
    number = ask(fd, &m, until);
  }
  if (number == SAID_FIRST)
    *turn = fd;
  else
    close(fd); /* the agent lets other processes print, if it has kept this one waiting */
  return number != SAID_AGAIN;
}

void spx_said(int turn)
{
  message m;
  if (turn < 0) return;
  question(&m, SAID, "", "");
  carry(turn, true, m.bytes, m.n, now_ms() + PATIENCE_MS);
  close(turn);
}

void spx_say_once(const char *cause, const char *fmt, ...)
{
  char line[1024] = "libspx: ";
  size_t n = strlen(line);
  int turn;
  if (!spx_may_say(cause, cause, &turn)) return;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
  va_end(ap);
  n = strlen(line);
  line[n++] = '\n';
  for (size_t done = 0; done < n;) {
    ssize_t w = write(2, line + done, n - done);
    if (w < 0 && errno != EINTR) break;
    if (w > 0) done += (size_t)w;
  }
  spx_said(turn);
}
