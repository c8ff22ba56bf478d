/* spawn.c - see spawn.h. */
#define _GNU_SOURCE
#include "spawn.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

const char *spx_library_path(void)
{
  Dl_info info;
  return dladdr((void *)(uintptr_t)spx_library_path, &info) && info.dli_fname ? info.dli_fname : "";
}

char **spx_environ(void) { return environ; }

/* In the grandchild, which shares nothing but descriptors with the application: only what may be
 * called after a fork. */
static _Noreturn void become_agent(const char *path, const char *argument, int fd, int report)
{
  static const char name[] = "spx-agent";
  char *const argv[] = {(char *)(uintptr_t)name, (char *)(uintptr_t)argument, NULL};
  sigset_t none;
  sigemptyset(&none);
  for (int i = 1; i < NSIG; i++) signal(i, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  int r = fcntl(report, F_DUPFD_CLOEXEC, 10);
  if (null >= 0) dup2(null, 0);
  if (fd == 3)
    fcntl(fd, F_SETFD, 0);
  else
    dup2(fd, 3);
  syscall(SYS_close_range, 4u, ~0u, CLOSE_RANGE_CLOEXEC);
  execv(path, argv);
  int err = errno;
  if (write(r, &err, sizeof err) < 0) _exit(126);
  _exit(127);
}

int spx_start_agent(const char *path, const char *argument, int fd)
{
  int report[2], err = 0;
  if (pipe2(report, O_CLOEXEC) != 0) return errno;
  pid_t child = fork();
  if (child < 0) err = errno;
  if (child == 0) {
    setsid();
    if (fork() == 0) become_agent(path, argument, fd, report[1]);
    _exit(0);
  }
  close(report[1]);
  if (child > 0) {
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    int said = 0;
    ssize_t n;
    do n = read(report[0], &said, sizeof said);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof said) err = said;
  }
  close(report[0]);
  return err;
}
