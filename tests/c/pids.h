/* pids.h - processes that each have pid numbers of their own, as in containers. Needs _GNU_SOURCE. */
#ifndef PIDS_H
#define PIDS_H
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void pids_refused(const char *what)
{
  perror(what);
  exit(1);
}

static inline void pids_write(const char *file, const char *text)
{
  int fd = open(file, O_WRONLY);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) pids_refused(file);
  close(fd);
}

/* Waits for a child, and ends as it does. */
static inline void pids_end_as(pid_t child)
{
  int st;
  if (waitpid(child, &st, 0) != child) pids_refused("waitpid");
  if (WIFSIGNALED(st)) {
    signal(WTERMSIG(st), SIG_DFL);
    raise(WTERMSIG(st));
  }
  exit(WEXITSTATUS(st));
}

/* Does the kernel let a process read another one of the same user? */
static inline int may_be_read(void)
{
  int word = 1, got = 0, ends[2], st;
  char ready;
  if (pipe(ends)) pids_refused("pipe");
  pid_t child = fork();
  if (child < 0) pids_refused("fork");
  if (child == 0) { /* it reads its parent, as a rank reads another */
    struct iovec to = {&got, sizeof got}, from = {&word, sizeof word};
    close(ends[1]);
    if (read(ends[0], &ready, 1) != 1) _exit(1);
    _exit(process_vm_readv(getppid(), &to, 1, &from, 1, 0) == sizeof got && got == word ? 0 : 1);
  }
  close(ends[0]);
  if (write(ends[1], "", 1) != 1 || waitpid(child, &st, 0) != child) pids_refused("a child");
  close(ends[1]);
  return WIFEXITED(st) && WEXITSTATUS(st) == 0;
}

/* Goes on in a child. */
static inline void below_wrapper(char **argv)
{
  if (getenv("BELOW_WRAPPER")) return;
  pid_t child = fork();
  if (child < 0) pids_refused("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("BELOW_WRAPPER", "1", 1);
    execv("/proc/self/exe", argv);
    pids_refused(argv[0]);
  }
  pids_end_as(child);
}

/* Goes on in a process that is number 1 of a pid namespace, with its /proc; the caller waits for it and ends as it does. */
static inline void own_pids(char **argv)
{
  char map[64];
  int user = geteuid() != 0;
  if (getenv("IN_OWN_PIDS")) return;
  snprintf(map, sizeof map, "0 %d 1", (int)geteuid());
  if (unshare(CLONE_NEWPID | CLONE_NEWNS | (user ? CLONE_NEWUSER : 0))) pids_refused("unshare");
  if (user) {
    pids_write("/proc/self/setgroups", "deny");
    pids_write("/proc/self/uid_map", map);
  }
  pid_t child = fork();
  if (child < 0) pids_refused("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", "/proc", "proc", 0, NULL))
      pids_refused("mount /proc");
    setenv("IN_OWN_PIDS", "1", 1);
    execv("/proc/self/exe", argv);
    pids_refused(argv[0]);
  }
  pids_end_as(child);
}
#endif
