/* A process that has left MPI may have sent something over a connection that the receiver's engine
 * has taken, and not handed over yet: before that, it is not silent. */
// sanitize: address,undefined
#define JOB_SOCKETS    1
#define JOB_TCP        1
#define JOB_KEEPS_ENDS 1
#include "job.h"
#include "net_conn.h"

enum { WORD = 41, TAG = 5 };

static void body(spx_comm *c)
{
  int word = WORD, got = 0;
  if (c->rank == 1) {
    CHECK(spx_send(&word, sizeof word, job_bytes, 0, TAG, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    return;
  }
  spx_net_coming(1, 1);
  CHECK(!spx_net_silent(1));
  spx_net_coming(1, -1); /* without result, as when both connect at once */
  CHECK(spx_net_silent(1));
  spx_net_coming(1, 1);
  while (__atomic_load_n(&spx_proc_of(1)->agent_state, __ATOMIC_ACQUIRE) != SPX_AGENT_EXITED)
    job_serve();
  CHECK(spx_net_gone(1) && !spx_net_silent(1));
  spx_net_adopt(job_ends[0][1], 1, 1);
  spx_net_coming(1, -1);
  CHECK(!spx_net_silent(1)); /* nothing was read */
  spx_request *r;
  CHECK(spx_irecv(&got, sizeof got, job_bytes, 1, TAG, c, SPX_CTX_P2P, 0, &r) == 0);
  CHECK(spx_wait(r) == 0 && got == WORD);
  spx_request_free(r);
  while (!spx_net_silent(1)) job_serve();
}

int main(void) { return run_job((job){.procs = 2}, body) != 0; }
