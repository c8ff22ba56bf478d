/* A pid means a process in one pid namespace, and as long as it lives. What is read from a peer, or
 * set for it, by its pid: also where a wrapper is what the agent has started; not where the peer is
 * in another namespace, though a process here may have its number; not when it has ended. MPI-5.0
 * is silent on all this. */
// sanitize: address,undefined
#include "job.h"
#include <sched.h>

static _Atomic int *phase; /* 1: rank 1 has attached; 2: it may end */

static void await_phase(int n)
{
  while (*phase < n) sched_yield();
}

/* As if nothing was known of the peer. */
static bool may_read_anew(uint32_t peer)
{
  spx_rxs[peer].cma = 0;
  return spx_may_read(peer);
}

static void body(spx_comm *w)
{
  spx_load_place was;
  spx_proc *p = spx_proc_of(1);
  if (w->rank == 1) {
    CHECK(p->self_pid == (uint32_t)getpid() && p->pid_space != 0);
    *phase = 1;
    await_phase(2);
    return;
  }
  await_phase(1);
  pid_t peer = (pid_t)p->self_pid;
  CHECK(spx_pid_of(1) == peer && may_read_anew(1));
  p->pid = 1; /* the agent has started another process, which has started this one */
  CHECK(spx_pid_of(1) == peer && may_read_anew(1));
  /* there may be one processor alone */
  if (spx_load_place_at(1, SPX_RING_AWAY, &was)) spx_load_let_go(1, &was);
  uint32_t space = p->pid_space;
  /* its number is that of another process here, whose memory happens to be the same */
  p->pid_space = space + 1;
  CHECK(spx_pid_of(1) == 0 && !may_read_anew(1) && !spx_load_place_at(1, SPX_RING_AWAY, &was));
  p->pid_space = space;
  /* a process of the job, but not this one: its nonce is another */
  p->self_pid = (uint32_t)getpid();
  CHECK(!may_read_anew(1));
  p->self_pid = (uint32_t)peer;
  __atomic_store_n(&p->agent_state, SPX_AGENT_DEAD, __ATOMIC_RELEASE);
  CHECK(!spx_load_place_at(1, SPX_RING_AWAY, &was));
  __atomic_store_n(&p->agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
  *phase = 2;
}

int main(void)
{
  phase = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (phase == MAP_FAILED) return 1;
  return run_job((job){.procs = 2}, body) != 0;
}
