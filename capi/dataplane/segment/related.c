/* related.c - which processes may read this process's memory. Long messages and windows are read by
 * process_vm_readv, which is allowed as tracing is. Where Yama is active, a process allows it to
 * its ancestors, and to one more process with all of that one's descendants, which it names
 * (PR_SET_PTRACER). All of the user's processes, which could be named as well, are more than the
 * job.
 *
 * A process that is not among them, such as one of another job that is connected later, finds that
 * it may not read at its first attempt (spx_may_read). Its messages are then streamed, and its
 * window operations served by mailbox. */
#define _GNU_SOURCE
#include "related.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "dp.h"

enum { DEEP = 128 }; /* ancestors at most: what is farther above is related to too many */

static pid_t parent_of(const char *proc, pid_t pid)
{
  char name[256], text[512];
  int parent = 0;
  snprintf(name, sizeof name, "%s/%d/stat", proc, (int)pid);
  FILE *f = fopen(name, "re");
  if (!f) return 0;
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = 0;
  const char *rest = strrchr(text, ')'); /* the name before it may have any characters */
  return rest && sscanf(rest + 1, " %*c %d", &parent) == 1 && parent > 0 ? parent : 0;
}

static bool descends(const char *proc, pid_t pid, pid_t from)
{
  for (int i = 0; pid > 0 && i < DEEP; i++)
    if ((pid = parent_of(proc, pid)) == from) return true;
  return false;
}

static bool all_descend(const char *proc, const pid_t *ranks, uint32_t n, pid_t from)
{
  for (uint32_t i = 0; i < n; i++)
    if (!descends(proc, ranks[i], from)) return false;
  return true;
}

pid_t spx_related(const char *proc, pid_t self, pid_t agent, const pid_t *ranks, uint32_t n)
{
  if (agent > 0 && descends(proc, self, agent)) return agent;
  for (uint32_t i = 0; i < n; i++)
    if (ranks[i] <= 0) return 0;
  pid_t above = n > 1 ? parent_of(proc, self) : 0;
  for (int i = 0; above > 1 && i < DEEP; i++, above = parent_of(proc, above))
    if (all_descend(proc, ranks, n, above)) return above;
  return 0;
}

/* The agent's pid, as the agent itself sees it. */
static pid_t agent_pid(void)
{
  const char *text = secure_getenv("SPX_AGENT");
  return text ? (pid_t)strtol(text, NULL, 10) : 0;
}

void spx_related_name(void)
{
  pid_t self = getpid(), *ranks = malloc(spx_segment->nprocs * sizeof *ranks);
  bool same_space = spx_proc_of(spx_me)->pid == (uint32_t)self; /* as its agent sees it */
  uint32_t n = 0;
  for (uint32_t i = 0; ranks && i < spx_segment->nprocs; i++) {
    const spx_proc *p = spx_proc_of(i);
    uint32_t state = __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE);
    if (p->home_job == 0 && p->host == spx_segment->host && state != SPX_AGENT_DEAD &&
        state != SPX_AGENT_EXITED)
      ranks[n++] = same_space ? (pid_t)p->pid : 0;
  }
  /* has no effect, and needs none, where Yama is not active; 0 revokes what was allowed before */
  prctl(PR_SET_PTRACER, (unsigned long)spx_related("/proc", self, agent_pid(), ranks, n), 0, 0, 0);
  free(ranks);
}
