/* load.c - foreign load on our processors. docs/decisions/smp.md, "Waiting".
 *
 * A late return from a yield means that another process had work to do. Among more ranks than
 * processors that may be another rank: then yielding is right. The processor times of the job's
 * processes decide: have they together used all the time that was not idle? If foreign processes
 * take a part, a yield is a gift to them. A sleeping process is woken at once only if it requests
 * shorter turns than the running one (sched_attr.sched_runtime, Linux 6.12). It gets no more time
 * by that. Under foreign load, the kernel places a woken process where it finds room, often beside
 * its own partner. Two ranks on one processor never run together, so the later of them moves on.
 * Where ranks outnumber processors they take no more than turns, and the kernel leaves three on one
 * processor and one on the other for tens of milliseconds: the last of the three moves. The kernel
 * often places the woken process on the waker's processor (virtual machines report an idle
 * processor as absent), and it runs first there, having slept. A waker that has more to do sends it
 * to another one (SPX_RING_AWAY). Or the woken process returns to where it slept, even if all the
 * others are there: a process that wakes many with work to do spreads them (SPX_RING_EVENLY). */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "deal.h"
#include "dp.h"

#define SAMPLES 32u /* processes that are sampled, at most */
/* ns: a shorter interval is inaccurate, the time of a running process is counted by ticks */
#define PROBE_MIN  30000000u
#define PROBE_MAX  200000000u
#define OURS       0.65     /* of the processors: the job uses more when there is no foreign load */
#define SLICE      100000u  /* ns */
#define MOVE_MIN   1000000u /* ns between two moves */
#define LEVEL_MIN  250000u  /* ns between two counts of the ranks on each processor */
#define LEVEL_CPUS 256      /* processors that are considered */
/* ranks for each processor; with more of them one more or less makes no difference */
#define LEVEL_MOST 8u

static uint64_t probe_start; /* 0: no probe */
static uint64_t probe_used, probe_idle;
static uint64_t moved;

/* Processor time of the job's processes, in ns; 0: unknown. */
static uint64_t used_by_job(void)
{
  uint32_t n = spx_segment->nprocs, step = (n + SAMPLES - 1) / SAMPLES, seen = 0;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i += step) {
    clockid_t clock;
    struct timespec t;
    if (spx_proc_of(i)->agent_state != SPX_AGENT_STARTED ||
        spx_proc_of(i)->host != spx_segment->host)
      continue;
    pid_t pid = spx_pid_of(i);
    /* an external process that this one has not met */
    if (!pid && spx_proc_of(i)->home_job != 0) continue;
    seen++;
    if (!pid || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    sum += (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
  }
  return seen ? sum * step : 0;
}

/* For how long the processors that this process may use had nothing to do, in ns; 0: unknown. */
static uint64_t unused(void)
{
  char line[256];
  cpu_set_t mine;
  unsigned long long idle, waiting, sum = 0;
  unsigned cpu;
  FILE *f = sched_getaffinity(0, sizeof mine, &mine) == 0 ? fopen("/proc/stat", "re") : NULL;
  while (f && fgets(line, sizeof line, f) && strncmp(line, "cpu", 3) == 0)
    if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &cpu, &idle, &waiting) == 3 &&
        cpu < CPU_SETSIZE && CPU_ISSET(cpu, &mine))
      sum += idle + waiting;
  if (f) fclose(f);
  return sum * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Many processes look less often each. */
static uint64_t probe_min(void)
{
  uint64_t n = 1 + spx_ranks_here / (8 * spx_segment->ncpus);
  return PROBE_MIN * (n < 4 ? n : 4);
}

bool spx_load_foreign(uint64_t now)
{
  if (!spx_crowded) return true; /* each has a processor of its own */
  uint64_t ns = now - probe_start;
  if (probe_start && ns < probe_min()) return false;
  uint64_t used = used_by_job(), idle = unused(), used_before = probe_used,
           idle_before = probe_idle;
  bool usable = probe_start && ns <= PROBE_MAX && used_before && used;
  probe_start = now;
  probe_used = used;
  probe_idle = idle;
  return usable && (double)(used - used_before) + (double)(idle - idle_before) <
                       OURS * (double)ns * spx_segment->ncpus;
}

static bool taken(uint32_t cpu, uint32_t *by)
{
  for (uint32_t i = 0; i < spx_segment->nprocs; i++) {
    const spx_proc *p = spx_proc_of(i);
    if (i == spx_me || __atomic_load_n(&p->cpu, __ATOMIC_RELAXED) != cpu + 1 ||
        p->owner_state != SPX_OWNER_INIT)
      continue;
    *by = i;
    return true;
  }
  return false;
}

/* Moves this thread to a processor of those that it may use, and lets it go from there. */
static void move_to(uint32_t cpu, const cpu_set_t *mine, uint64_t now)
{
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  moved = now;
  if (sched_setaffinity(0, sizeof one, &one) != 0) return;
  __atomic_store_n(&spx_proc_of(spx_me)->cpu, cpu + 1, __ATOMIC_RELAXED);
  sched_setaffinity(0, sizeof *mine, mine);
}

void spx_load_spread(uint64_t now)
{
  uint32_t cpu = (uint32_t)sched_getcpu(), by;
  __atomic_store_n(&spx_proc_of(spx_me)->cpu, cpu + 1, __ATOMIC_RELAXED);
  if (spx_crowded || now - moved < MOVE_MIN || !taken(cpu, &by) || by > spx_me) return;
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return;
  for (uint32_t to = 0; to < CPU_SETSIZE; to++) {
    if (!CPU_ISSET(to, &mine) || to == cpu || taken(to, &by)) continue;
    move_to(to, &mine, now);
    return;
  }
}

/* The pid of a peer that lives; 0: it is not certain that the number is its. */
static pid_t named(uint32_t peer)
{
  bool lives =
      __atomic_load_n(&spx_proc_of(peer)->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_STARTED;
  return lives && spx_proc_of(spx_me)->pid_space ? spx_pid_of(peer) : 0;
}

void spx_load_note(void)
{
  __atomic_store_n(&spx_proc_of(spx_me)->cpu, (uint32_t)sched_getcpu() + 1, __ATOMIC_RELAXED);
}

static spx_deal deal; /* of those that are being woken up */

void spx_load_deal(uint32_t n)
{
  spx_deal_begin(&deal, n, spx_segment->ncpus, (uint32_t)sched_getcpu());
  spx_ring_to = SPX_RING_EVENLY;
}

_Static_assert(sizeof(spx_load_place) == sizeof(cpu_set_t), "a place holds a set of processors");
_Static_assert(sizeof(cpu_set_t) * 8 >= SPX_DEAL_CPUS && SPX_DEAL_CPUS == LEVEL_CPUS,
               "words of a set of processors");
bool spx_load_place_at(uint32_t peer, spx_ring_where where, spx_load_place *was)
{
  cpu_set_t mine, less;
  uint32_t slept = __atomic_load_n(&spx_proc_of(peer)->cpu, __ATOMIC_RELAXED) - 1, to;
  if (where == SPX_RING_EVENLY && spx_deal_stays(&deal, slept)) return false;
  pid_t pid = named(peer);
  if (!pid || sched_getaffinity(pid, sizeof mine, &mine) != 0) return false;
  less = mine;
  if (where == SPX_RING_AWAY)
    CPU_CLR(sched_getcpu(), &less);
  else {
    uint64_t may[SPX_DEAL_CPUS / 64];
    memcpy(may, &mine, sizeof may);
    if ((to = spx_deal_to(&deal, slept, may)) == slept) return false;
    CPU_ZERO(&less);
    CPU_SET(to, &less);
  }
  if (CPU_COUNT(&less) == 0 || sched_setaffinity(pid, sizeof less, &less) != 0) return false;
  memcpy(was, &mine, sizeof mine);
  return true;
}

void spx_load_let_go(uint32_t peer, const spx_load_place *was)
{
  pid_t pid = named(peer);
  if (pid) sched_setaffinity(pid, sizeof *was, (const cpu_set_t *)was);
}

/* How many of the job's processes each processor has; whether this process is the last of those on
 * its own. */
static bool count_ranks(uint32_t cpu, uint32_t on[LEVEL_CPUS])
{
  bool last = true;
  for (uint32_t i = 0; i < spx_segment->nprocs; i++) {
    const spx_proc *p = spx_proc_of(i);
    uint32_t c = __atomic_load_n(&p->cpu, __ATOMIC_RELAXED) - 1;
    if (c >= LEVEL_CPUS || p->owner_state != SPX_OWNER_INIT || p->agent_state != SPX_AGENT_STARTED)
      continue;
    on[c]++;
    if (c == cpu && i > spx_me) last = false;
  }
  return last;
}

void spx_load_level(uint64_t now)
{
  static uint64_t looked;
  uint32_t on[LEVEL_CPUS] = {0};
  uint32_t cpu, best;
  cpu_set_t mine;
  if (now - looked < LEVEL_MIN || spx_ranks_here > LEVEL_MOST * spx_segment->ncpus) return;
  looked = now;
  cpu = best = (uint32_t)sched_getcpu();
  if (cpu >= LEVEL_CPUS) return;
  __atomic_store_n(&spx_proc_of(spx_me)->cpu, cpu + 1, __ATOMIC_RELAXED);
  if (!count_ranks(cpu, on) || now - moved < MOVE_MIN) return;
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return;
  for (uint32_t to = 0; to < LEVEL_CPUS; to++)
    if (CPU_ISSET(to, &mine) && on[to] < on[best]) best = to;
  if (on[best] + 1 < on[cpu]) move_to(best, &mine, now);
}

/* ---- time slices ---- */

typedef struct { /* struct sched_attr of the kernel, its first version */
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
} sched_attributes;

void spx_load_slice(bool is_short)
{
  static SPX_TLS bool was_short;
  sched_attributes a = {0};
  if (is_short == was_short || syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0 ||
      a.policy != SCHED_OTHER)
    return;
  was_short = is_short;
  a.size = sizeof a;
  a.runtime = is_short ? SLICE : 0;
  syscall(SYS_sched_setattr, 0, &a, 0);
}
