/* A process is answered before any communicator leads to it, and held afterwards: what is sent to
 * it from then on comes behind the answers, and not again from the beginning. */
// sanitize: address,undefined
#include "job.h"

enum { ROUNDS = 20, LONG = 100000 };

static void body(spx_comm *c)
{
  static uint8_t buf[LONG];
  alarm(20); /* data written for an absent reader would be waited for */
  for (int i = 0; i < ROUNDS; i++) {
    int n = i % 2 ? LONG : 8;
    pattern_fill(buf, (uint64_t)i, (size_t)n);
    if (c->rank == 0) {
      CHECK(spx_send(buf, n, job_bytes, 1, i, c, SPX_CTX_P2P, SPX_M_SYNC) == 0);
      memset(buf, 0, (size_t)n);
      CHECK(spx_recv(buf, n, job_bytes, 1, i, c, SPX_CTX_P2P, NULL) == 0);
      CHECK(pattern_is(buf, (uint64_t)i, (size_t)n));
      continue;
    }
    memset(buf, 0, (size_t)n);
    CHECK(spx_recv(buf, n, job_bytes, 0, i, c, SPX_CTX_P2P, NULL) == 0);
    CHECK(pattern_is(buf, (uint64_t)i, (size_t)n));
    if (i == 3) spx_peer_hold(0);
    CHECK(spx_send(buf, n, job_bytes, 0, i, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  }
}

int main(void) { return run_job((job){.procs = 2}, body); }
