/* Messages that the kernel sends out of the program's memory (net_zero.c), over TCP within this
 * machine, where it copies all the same, but late: the received data are the sent ones, though each
 * buffer is written to as soon as its send is complete; a connection stops when it is told to;
 * sends that are revoked, or whose peer dies, are complete when the kernel has released the buffer,
 * and no sooner. */
// sanitize: address,undefined
// timeout: 240
#define JOB_TCP 1
#define MAIN    main_of_long
int main_of_long(void);
#include "net_long.c"
#include "net_conn.h"

enum { MESSAGES = 40, LEAST = 100000 };

static uint64_t bytes_of(uint32_t message)
{
  uint64_t s = message * 7 + 1;
  rnd(&s);
  return LEAST + rnd(&s) % (MOST - LEAST);
}

/* the connection sends so before the last message, when the other end has not left yet */
static bool still;

/* Both send to each other; a buffer is used again at once. */
static void exchange(spx_comm *c)
{
  static uint8_t out[MOST], in[MOST];
  int other = 1 - c->rank;
  for (uint32_t m = 0; m < MESSAGES; m++) {
    uint64_t n = bytes_of(m), k = m * 2 + (uint64_t)c->rank;
    spx_request *r, *s;
    pattern_fill(out, k, n);
    still = spx_net.conns[other] && spx_net.conns[other]->zero.may;
    CHECK(spx_irecv(in, (int64_t)n, job_bytes, other, 1, c, SPX_CTX_P2P, 0, &r) == 0);
    CHECK(spx_isend(out, (int64_t)n, job_bytes, other, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &s) ==
          0);
    CHECK(spx_wait(s) == MPI_SUCCESS);
    spx_request_free(s);
    memset(out, 0xee, n);
    CHECK(spx_wait(r) == MPI_SUCCESS && r->bytes == (int64_t)n);
    spx_request_free(r);
    CHECK(pattern_is(in, k ^ 1, n));
  }
  CHECK(spx_zero_writes == 0);
}

static void on(spx_comm *c)
{
  exchange(c);
  CHECK(spx_stat.net_zerocopy > MESSAGES * LEAST / 2 &&
        spx_stat.net_zerocopy == spx_stat.net_zerocopy_copied);
  CHECK(still);
}

static void by_itself(spx_comm *c)
{
  exchange(c);
  CHECK(spx_stat.net_zerocopy > 0 && spx_stat.net_zerocopy_copied > 0);
  CHECK(!still && spx_stat.net_zerocopy < spx_stat.net_direct / 2);
}

static void off(spx_comm *c)
{
  exchange(c);
  CHECK(spx_stat.net_zerocopy == 0 && spx_stat.net_direct > 0);
}

/* A send to the peer that is played, of which the kernel has some bytes that the peer does not
 * read. */
enum { BYTES = 16 << 20 };
static uint8_t big[BYTES];
static spx_request *half_sent(spx_comm *c)
{
  spx_request *r;
  for (int i = 0; i < BYTES; i++) big[i] = (uint8_t)(byte_of(1, (uint64_t)i) | 1);
  CHECK(spx_isend(big, BYTES, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r) == 0);
  while (!spx_net.conns[1]->full) job_serve();
  CHECK(r->out.at < BYTES && spx_zero_writes > 0);
  return r;
}

static void ask_for_it(void)
{
  spx_rec_rts rts;
  memcpy(&rts, hear(SPX_REC_RTS)->data, sizeof rts);
  spx_rec_cts cts = {
      .index = rts.index, .gen = rts.gen, .rx_index = 3, .rx_gen = 4, .bytes = rts.bytes};
  say(SPX_REC_CTS, 0, 0, 0, &cts, sizeof cts);
  write_text(false);
}

/* The message as it was, then zeros, up to the next message: no data written to the buffer
 * later. */
static void read_on(void)
{
  static _Alignas(64) uint8_t heard[65536];
  spx_rec *rec = (spx_rec *)heard;
  uint64_t at = 0, zeros_from = BYTES;
  do {
    read_all(heard, sizeof *rec);
    CHECK(rec->valid >= 64 && rec->valid <= sizeof heard);
    read_all(heard + sizeof *rec, rec->valid - sizeof *rec);
    if (rec->kind != SPX_REC_LONG) continue;
    read_all(big, rec->as.stream.bytes);
    for (uint64_t i = 0; i < rec->as.stream.bytes; i++, at++) {
      if (zeros_from == BYTES && big[i] != (uint8_t)(byte_of(1, at) | 1)) zeros_from = at;
      CHECK(at < zeros_from || big[i] == 0);
    }
  } while (rec->kind != SPX_REC_EAGER);
  CHECK(zeros_from >= LEAST);
}

/* More than the buffers of both sockets hold is still in the program's memory. */
static void revoked(spx_comm *c)
{
  spx_comm *other = job_comm(192, NULL, 2, c->rank);
  uint32_t value = 5;
  if (c->rank == 0) {
    spx_request *r = half_sent(other);
    other->revoked = 1;
    spx_comm_revoked(other);
    for (int i = 0; i < 1000; i++) job_serve();
    CHECK(!spx_is_done(r) && spx_zero_writes > 0);
    atomic_store(&job_done[1], 1);
    CHECK(spx_wait(r) == MPIX_ERR_REVOKED && spx_zero_writes == 0);
    spx_request_free(r);
    memset(big, 0x54, BYTES);
    CHECK(spx_send(&value, 4, job_bytes, 1, 9, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    return;
  }
  ask_for_it();
  while (!atomic_load(&job_done[1])) usleep(100);
  read_on();
}

static void dies(spx_comm *c)
{
  if (c->rank == 0) {
    spx_request *r = half_sent(c);
    atomic_store(&job_done[1], 1);
    CHECK(spx_wait(r) == MPIX_ERR_PROC_FAILED && spx_zero_writes == 0);
    spx_request_free(r);
    return;
  }
  ask_for_it();
  while (!atomic_load(&job_done[1])) usleep(100);
  raise(SIGKILL);
}
static int is_killed(uint32_t i) { return i == 1; }

int main(void)
{
  int wrong = 0;
  setenv("SPX_ZEROCOPY", "on", 1);
  wrong += run_job((job){.procs = 2}, on);
  wrong += run_job((job){.procs = 2}, revoked);
  wrong += run_job((job){.procs = 2, .killed = is_killed}, dies);
  setenv("SPX_DIRECT_MIN", "100", 1);
  setenv("SPX_EAGER_MAX", "1000", 1);
  wrong += run_job((job){.procs = 4}, body);
  unsetenv("SPX_DIRECT_MIN");
  unsetenv("SPX_EAGER_MAX");
  setenv("SPX_ZEROCOPY", "auto", 1);
  wrong += run_job((job){.procs = 2}, by_itself);
  unsetenv("SPX_ZEROCOPY");
  wrong += run_job((job){.procs = 2}, off);
  (void)main_of_long;
  return wrong != 0;
}
