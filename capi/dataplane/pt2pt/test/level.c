/* Four ranks on two processors, three of which begin on one: while they yield the last of them
 * moves to the other, and may go anywhere again. */
// sanitize: address,undefined
#include "job.h"
#include <sched.h>

enum { RANKS = 4 };

static cpu_set_t allowed;

/* The first two processors that may be used; false: there is one only. */
static bool two(uint32_t cpu[2])
{
  uint32_t n = 0;
  CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  for (uint32_t i = 0; i < CPU_SETSIZE && n < 2; i++)
    if (CPU_ISSET(i, &allowed)) cpu[n++] = i;
  return n == 2;
}

static void go_to(uint32_t cpu)
{
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0 &&
        sched_setaffinity(0, sizeof allowed, &allowed) == 0);
}

/* Every rank has published its processor, and no processor has two more than another. */
static bool is_level(const uint32_t cpu[2])
{
  uint32_t on[2] = {0};
  for (uint32_t i = 0; i < RANKS; i++)
    for (int k = 0; k < 2; k++)
      on[k] += __atomic_load_n(&spx_proc_of(i)->cpu, __ATOMIC_RELAXED) == cpu[k] + 1;
  return on[0] == RANKS / 2 && on[1] == RANKS / 2;
}

static void body(spx_comm *c)
{
  uint32_t cpu[2];
  cpu_set_t after;
  (void)c;
  alarm(30);
  if (!two(cpu)) return;
  /* to the first two processors, so that it is known how many a level machine has on each */
  CPU_ZERO(&allowed);
  CPU_SET(cpu[0], &allowed);
  CPU_SET(cpu[1], &allowed);
  go_to(cpu[spx_me == RANKS - 1]);
  while (!is_level(cpu)) {
    spx_load_level(spx_now_ns());
    sched_yield();
  }
  CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&after, &allowed));
}

int main(void) { return run_job((job){.procs = RANKS, .ncpus = 2}, body); }
