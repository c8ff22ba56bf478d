/* A pair goes on for ever: of the bytes that it has sent and received, which it counts, only the
 * low bits are published (dp.h), and these go round. Both ends put what they count just before
 * that; then messages flow as before, and none of them is announced for want of credit. */
// sanitize: address,undefined
// timeout: 120
#include "job.h"

enum { SIZE = 2000, COUNT = 300, BEFORE = 100000 };

/* The pair with the other process has sent and received nearly 2^48 bytes already. */
static void advance(uint32_t other)
{
  const uint64_t by = ((uint64_t)1 << 48) - BEFORE;
  spx_tx *tx = &spx_txs[other];
  spx_rx *rx = &spx_rxs[other];
  tx->head += by, tx->tail += by, tx->sent += by, tx->matched += by;
  rx->consumed += by, rx->published += by, rx->matched += by, rx->matched_published += by;
#ifdef SPX_POSITION_BITS
  rx->chan->tail = spx_position_word(rx->epoch, rx->published);
  rx->chan->matched = spx_position_word(rx->epoch, rx->matched_published);
  if (tx->conn) tx->chan->tail = spx_position_word(tx->epoch, tx->tail);
  if (tx->conn) tx->chan->matched = spx_position_word(tx->epoch, tx->matched);
#else
  rx->chan->tail = rx->published;
  rx->chan->matched = rx->matched_published;
  if (tx->conn) tx->chan->tail = tx->tail;
  if (tx->conn) tx->chan->matched = tx->matched;
#endif
}

static void body(spx_comm *c)
{
  static uint8_t out[SIZE], in[SIZE];
  int other = 1 - c->rank;
  alarm(30);
  for (int i = 0; i < COUNT; i++) {
    spx_request *r;
    if (i == 10) {
      barrier(c);
      advance((uint32_t)other);
    }
    for (uint64_t k = 0; k < SIZE; k++) out[k] = pattern((uint64_t)(i + c->rank), k);
    CHECK(spx_isend(out, SIZE, job_bytes, other, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r) == 0);
    CHECK(spx_recv(in, SIZE, job_bytes, other, 1, c, SPX_CTX_P2P, NULL) == 0);
    CHECK(spx_wait(r) == 0);
    spx_request_free(r);
    for (uint64_t k = 0; k < SIZE; k++) CHECK(in[k] == pattern((uint64_t)(i + other), k));
  }
  CHECK(spx_stat.announced == 0);
}

int main(void)
{
  setenv("SPX_CREDIT", "65536", 1);
  return run_job((job){.procs = 2, .ring_bytes = SPX_RING_BYTES}, body);
}
