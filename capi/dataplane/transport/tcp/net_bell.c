/* net_bell.c - which sockets have something, and sleeping until one has, or until another process
 * of this host wakes this one. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "net_conn.h"
#include "progress.h"

/* Datagrams read before each sleep. More are left for the next: a process of any user may send as
 * fast as it can. */
enum { BELL_TURN = 64 };
static int epoll = -1, bell_fd = -1;
static bool sleeping_here; /* a thread sleeps on the sockets */

/* The address of the socket of that name (spx_proc.bell_name), which lives as long as its
 * socket. */
static socklen_t bell_address(struct sockaddr_un *a, uint64_t name)
{
  memset(a, 0, sizeof *a);
  a->sun_family = AF_UNIX;
  int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "spx-bell-%016llx",
                   (unsigned long long)name);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Binds the socket on which this process is woken, and publishes its name. 0 or an errno. */
static int bind_bell(void)
{
  struct sockaddr_un a;
  uint64_t name = 0;
  int err = EADDRINUSE;
  for (int i = 0; i < 8 && err == EADDRINUSE; i++) {
    if (getrandom(&name, sizeof name, 0) != (ssize_t)sizeof name) return errno;
    socklen_t len = bell_address(&a, name);
    err = name && bind(bell_fd, (struct sockaddr *)&a, len) == 0 ? 0 : name ? errno : EADDRINUSE;
  }
  if (!err) __atomic_store_n(&spx_proc_of(spx_me)->bell_name, name, __ATOMIC_RELEASE);
  return err;
}

int spx_net_bell(void)
{
  epoll = epoll_create1(EPOLL_CLOEXEC);
  bell_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (epoll < 0 || bell_fd < 0 || spx_net_watch(bell_fd, EPOLLIN, EPOLL_CTL_ADD, UINT64_MAX) != 0)
    return errno;
  return bind_bell();
}

void spx_net_no_bell(void)
{
  if (epoll >= 0) close(epoll);
  if (bell_fd >= 0) close(bell_fd);
  epoll = bell_fd = -1;
}

int spx_net_watch(int fd, uint32_t events, int op, uint64_t what)
{
  struct epoll_event e = {.events = events, .data.u64 = what};
  return epoll_ctl(epoll, op, fd, &e);
}

int spx_net_events(struct epoll_event *events, int most)
{
  return epoll_wait(epoll, events, most, 0);
}

/* Of the thread that sleeps here. Set with the lock, since they depend on all connections; read
 * without. */
static uint64_t longest;    /* ns to sleep at most; 0: not at all */
static uint64_t longest_by; /* the same because of a by-way */
/* ns: when it began to, and for how long; began 0: nothing depends on it */
static uint64_t began, asked;

static bool reserve(bool takes)
{
  if (takes && sleeping_here) return false;
  sleeping_here = takes;
  if (takes) {
    longest = spx_net.held ? 0 : spx_detours->sleep();
    longest_by = SPX_UNLIKELY(spx_byways != NULL) ? spx_byways->sleep() : UINT64_MAX;
    began = 0;
  } else if (began)
    spx_detours->slept(began, asked);
  return true;
}

static bool sleep_until(uint32_t value, uint64_t ns)
{
  char word[8];
  for (int i = 0; i < BELL_TURN && recv(bell_fd, word, sizeof word, MSG_DONTWAIT) >= 0; i++) {}
  if (!longest || !longest_by ||
      __atomic_load_n(&spx_proc_of(spx_me)->bell, __ATOMIC_SEQ_CST) != value)
    return false;
  struct epoll_event e;
  asked = ns < longest ? ns : longest;
  if (asked > longest_by) asked = longest_by;
  if (longest != UINT64_MAX) began = spx_now_ns();
  struct timespec t = {(time_t)(asked / 1000000000u), (long)(asked % 1000000000u)};
  int rc = epoll_pwait2(epoll, &e, 1, asked == UINT64_MAX ? NULL : &t, NULL);
  return rc == 0 && ns <= asked;
}

void spx_net_wake(const spx_seg *file, uint32_t i)
{
  static _Atomic int fd = -1; /* kept */
  int s = atomic_load(&fd), none = -1;
  if (s < 0) {
    s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (!atomic_compare_exchange_strong(&fd, &none, s)) { /* another thread was faster */
      close(s);
      s = none;
    }
  }
  struct sockaddr_un a;
  const spx_proc *p =
      (const spx_proc *)((const char *)file + file->proc_off + (uint64_t)i * file->proc_stride);
  socklen_t len = bell_address(&a, __atomic_load_n(&p->bell_name, __ATOMIC_ACQUIRE));
  /* a full queue wakes it, too */
  sendto(s, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, len);
}

const spx_socket_sleep spx_net_sleeping = {spx_net_flush, spx_net_wake, reserve, sleep_until};
