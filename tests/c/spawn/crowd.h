/* crowd.h - makes the calling thread a slow one, so that others are always quicker: for what goes wrong only then. */
#ifndef SPX_TEST_CROWD_H
#define SPX_TEST_CROWD_H
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Keeps the processor busy on which this thread, which steps back for everybody, runs from now on. _GNU_SOURCE is needed. */
static inline pid_t crowd_begin(void)
{
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET((unsigned)sched_getcpu(), &here);
  sched_setaffinity(0, sizeof here, &here);
  setpriority(PRIO_PROCESS, 0, 19);
  pid_t me = getpid(), p = fork();
  if (p == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpriority(PRIO_PROCESS, 0, 0); /* where that is allowed */
    while (getppid() == me) {}
    _exit(0);
  }
  return p;
}

static inline void crowd_end(pid_t p)
{
  kill(p, SIGKILL);
  waitpid(p, NULL, 0);
}
#endif
