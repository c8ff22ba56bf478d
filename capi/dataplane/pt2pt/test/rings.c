/* More partners than rings: one process exchanges messages with 90 others, so that rings are given
 * back and taken again; in every order, with messages that need a ring, and with some that wait for
 * room. */
// sanitize: address,undefined
// timeout: 240
#include "job.h"

enum { PROCS = 91, ROUNDS = 12 };

static void check(const uint8_t *buf, int n, int key)
{
  CHECK(pattern_is(buf, (uint64_t)key, (size_t)n));
}

static void hub(spx_comm *c)
{
  static uint8_t out[PROCS][9000], in[9000];
  uint64_t s = 42;
  for (int round = 0; round < ROUNDS; round++) {
    spx_request *r[PROCS];
    for (int k = 1; k < PROCS; k++) {
      int to = round % 2 ? k : PROCS - k, n = (to + round) % 3 ? 8 : 9000,
          many = rnd(&s) % 8 == 0 ? 20 : 1;
      for (int i = 0; i < n; i++) out[to][i] = pattern((uint64_t)(to + round), (uint64_t)i);
      CHECK(spx_send(&many, sizeof many, job_bytes, to, 0, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
      for (int m = 1; m < many; m++)
        CHECK(spx_send(out[to], n, job_bytes, to, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
      CHECK(spx_isend(out[to], n, job_bytes, to, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r[to]) ==
            0);
    }
    for (int k = 1; k < PROCS; k++) {
      MPI_Status st;
      CHECK(spx_recv(in, sizeof in, job_bytes, MPI_ANY_SOURCE, round, c, SPX_CTX_P2P, &st) == 0);
      check(in, (int)spx_status_bytes(&st), st.MPI_SOURCE + round);
      CHECK(spx_wait(r[st.MPI_SOURCE]) == 0);
      spx_request_free(r[st.MPI_SOURCE]);
    }
  }
}

static void spoke(spx_comm *c)
{
  static uint8_t buf[9000];
  for (int round = 0; round < ROUNDS; round++) {
    int many;
    MPI_Status st;
    CHECK(spx_recv(&many, sizeof many, job_bytes, 0, 0, c, SPX_CTX_P2P, NULL) == 0);
    for (int m = 0; m < many; m++) {
      memset(buf, 0, sizeof buf);
      CHECK(spx_recv(buf, sizeof buf, job_bytes, 0, 1, c, SPX_CTX_P2P, &st) == 0);
      check(buf, (int)spx_status_bytes(&st), c->rank + round);
    }
    CHECK(spx_send(buf, spx_status_bytes(&st), job_bytes, 0, round, c, SPX_CTX_P2P,
                   SPX_M_STANDARD) == 0);
  }
}

static void body(spx_comm *c)
{
  if (c->rank == 0)
    hub(c);
  else
    spoke(c);
  barrier(c);
}

int main(void)
{
  int bad = run_job((job){.procs = PROCS}, body);
  setenv("SPX_CMA", "0", 1);
  return bad + run_job((job){.procs = PROCS}, body) != 0;
}
