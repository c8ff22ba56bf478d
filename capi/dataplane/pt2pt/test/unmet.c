/* A process that came after this one, to which no communicator leads yet, sends a message that is
 * answered: its first contact with this one. */
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
  CHECK(spx_send(&x, sizeof x, job_bytes, 0, 1, c, SPX_CTX_P2P, SPX_M_SYNC) ==
        0); /* its receiver confirms it */
  _exit(0);
}

int main(void)
{
  job j = {.procs = 1, .maxprocs = 2, .ncpus = 2};
  job_memory m = job_memory_of(&j, 0);
  int turn[2], status = 0, x = 0;
  if (pipe(turn) != 0) return 1;
  pid_t child = fork();
  if (child == 0 && read(turn[0], &x, 1) == 1) next_process(m.fd); /* once it has its number */
  if (child <= 0) return 1;
  attach(m.fd, 0);
  m.procs[1].world_rank = 1;
  __atomic_store_n(&m.procs[1].incarnation, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&m.procs[1].agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
  __atomic_store_n(&m.seg->nprocs, 2, __ATOMIC_RELEASE);
  CHECK(write(turn[1], "", 1) == 1);
  spx_comm *c = job_comm(1000, NULL, 2, 0);
  CHECK(spx_recv(&x, sizeof x, job_bytes, 1, 1, c, SPX_CTX_P2P, NULL) == 0 && x == 7);
  while (waitpid(child, &status, WNOHANG) == 0) spx_progress();
  CHECK(status == 0);
  spx_peer_hold(1); /* now a communicator does: it is the same process */
  CHECK(!spx_proc_left(1) && !(spx_txs[1].slow & SPX_TX_NEW));
  _exit(0);
}
