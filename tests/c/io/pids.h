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

/* Goes on in a process that is number 1 of a pid namespace, with its /proc; the caller waits for it and ends as it does. */
static inline void own_pids(char **argv)
{
  char map[64];
  int st, user = geteuid() != 0;
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
  if (waitpid(child, &st, 0) != child) pids_refused("waitpid");
  if (WIFSIGNALED(st)) {
    signal(WTERMSIG(st), SIG_DFL);
    raise(WTERMSIG(st));
  }
  exit(WEXITSTATUS(st));
}
#endif
