/* The number of a process that has died goes to the next one just when a communicator has begun to
 * hold it: the agent had read the holders before. A later holder of the number leads to the new
 * process, which lives and whose messages arrive. */
// sanitize: address,undefined
#include "job.h"

static void attach(int fd, uint32_t me)
{
  alarm(20); /* whatever hangs ends */
  spx_basic_init();
  job_bytes = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  CHECK(job_attach(fd, me) == 0);
}

static void next_process(int fd)
{
  attach(fd, 1);
  spx_peer_hold(0);
  spx_comm *c = job_comm(1000, NULL, 2, 1);
  int x = 7;
  CHECK(spx_send(&x, sizeof x, job_bytes, 0, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  CHECK(spx_recv(&x, sizeof x, job_bytes, 0, 2, c, SPX_CTX_P2P, NULL) == 0);
  CHECK(x == 8);
  _exit(0);
}

int main(void)
{
  job j = {.procs = 2, .maxprocs = 2, .ncpus = 2};
  job_memory m = job_memory_of(&j, 0);
  int turn[2], status = 0, x = 0;
  if (pipe(turn) != 0) return 1;
  pid_t child = fork();
  if (child == 0 && read(turn[0], &x, 1) == 1) next_process(m.fd); /* once it has its number */
  if (child <= 0) return 1;
  attach(m.fd, 0);
  spx_proc *p = &m.procs[1];
  __atomic_store_n(&p->agent_state, SPX_AGENT_DEAD, __ATOMIC_RELEASE);
  __atomic_fetch_add(&spx_segment->death_seq, 1, __ATOMIC_RELEASE);
  spx_peer_hold(1);
  spx_progress();
  CHECK(spx_proc_dead(1));

  __atomic_store_n(&p->agent_state, SPX_AGENT_EMPTY, __ATOMIC_RELEASE);
  __atomic_store_n(&p->incarnation, 2, __ATOMIC_RELEASE);
  __atomic_store_n(&p->agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
  CHECK(write(turn[1], "", 1) == 1);
  spx_progress();
  CHECK(spx_proc_dead(1)); /* in the view of communicators that lead there already */
  spx_peer_hold(1);
  CHECK(!spx_proc_dead(1) && !spx_proc_left(1));
  spx_peer_release(1, 0);
  spx_comm *c = job_comm(1000, NULL, 2, 0);
  CHECK(spx_recv(&x, sizeof x, job_bytes, 1, 1, c, SPX_CTX_P2P, NULL) == 0 && x == 7);
  x = 8;
  CHECK(spx_send(&x, sizeof x, job_bytes, 1, 2, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  _exit(0);
}
