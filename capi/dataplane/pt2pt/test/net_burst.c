/* Many short messages in a row over TCP (net_burst.c): when the system begins to keep them and when
 * that ends, the notifications to the other end, and that none waits for a delayed acknowledgement.
 * Process 0 sends in bursts and one by one; process 1 answers. */
#define JOB_SOCKETS 1
#define JOB_TCP     1
#include "job.h"
#include "net_conn.h"

enum { LONG = 1 << 20, ROUNDS = 300, LATE = 3, SINGLE = 10, PASSES = 5 };
#define PUT_OFF 30000000 /* ns */
static uint8_t data[LONG];

static void move(spx_comm *c, bool sends, int64_t n, int tag)
{
  spx_request *r;
  if (sends)
    CHECK(spx_send(data, n, job_bytes, 1 - c->rank, tag, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  else {
    CHECK(spx_irecv(data, LONG, job_bytes, 1 - c->rank, tag, c, SPX_CTX_P2P, 0, &r) == 0);
    CHECK(spx_wait(r) == 0 && r->bytes == (uint64_t)n);
    spx_request_free(r);
  }
}

/* So many messages of n bytes from process 0, and an answer. */
static void burst(spx_comm *c, int times, int64_t n)
{
  for (int i = 0; i < times; i++) move(c, c->rank == 0, n, 1);
  move(c, c->rank == 1, 0, 2);
}

/* Does the system keep what this process writes? */
static bool keeps(void)
{
  int on = -1;
  socklen_t n = sizeof on;
  const spx_conn *c = spx_net.conns[1 - spx_me];
  CHECK(c && c->fd >= 0 && getsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, &n) == 0);
  CHECK(c->burst.keeps == !on);
  return !on;
}

/* Bursts of all kinds: did some take as long as a delayed acknowledgement? As process 0 decides.
 * Between them are messages one by one, of which none is kept: those that take so long show how
 * often foreign processes have the processors. */
static bool some_late(spx_comm *c, uint64_t *dice)
{
  int late = 0, busy = 0;
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t began = now_ns();
    int times = 1 + (int)(rnd(dice) % 80);
    burst(c, times, rnd(dice) % 2 ? rnd(dice) % 2000 : rnd(dice) % 16000);
    if (now_ns() - began > PUT_OFF) late++;
    began = now_ns();
    for (int k = 0; k < SINGLE; k++) burst(c, 1, 8);
    if (now_ns() - began > PUT_OFF) busy++;
  }
  data[0] = late > LATE + 2 * busy;
  move(c, c->rank == 0, 1, 4);
  return data[0];
}

static void body(spx_comm *c)
{
  const spx_burst *mine;
  burst(c, 1, 8);
  CHECK(spx_net.conns[1 - spx_me] && !keeps());
  mine = &spx_net.conns[1 - spx_me]->burst;
  CHECK(mine->may);

  /* one by one, each with its answer: never */
  for (int i = 0; i < 50; i++) burst(c, 1, 8);
  CHECK(!keeps() && spx_stat.net_bursts == 0);

  /* in a row, and the other end is notified; the answering process keeps nothing */
  for (int i = 0; i < 10; i++) burst(c, 64, 8);
  CHECK(keeps() == (c->rank == 0) && mine->prompt == (c->rank == 1));

  /* one by one again: it ends */
  for (int i = 0; i < 20; i++) burst(c, 1, 8);
  CHECK(!keeps() && !mine->prompt);

  /* a long message ends it for both */
  for (int i = 0; i < 10; i++) burst(c, 64, 8);
  CHECK(keeps() == (c->rank == 0) && mine->prompt == (c->rank == 1));
  burst(c, 1, LONG);
  CHECK(!keeps() && !mine->prompt);

  /* messages that are not short: never */
  for (int i = 0; i < 4; i++) burst(c, 40, 30000);
  CHECK(!keeps());

  /* Whatever follows what: in time. An acknowledgement that is put off is so again and again. */
  uint64_t dice = 5;
  int pass = 0;
  while (some_late(c, &dice)) CHECK(++pass < PASSES);

  /* kept messages are sent when a process has nothing more to do */
  for (int i = 0; i < 40; i++) move(c, c->rank == 0, 8, 3);
  while (spx_net_unsent()) job_serve();
  CHECK(!keeps());
  move(c, c->rank == 0, 0, 5); /* the other end stays until here */
}

int main(void) { return run_job((job){.procs = 2, .ncpus = 4}, body) != 0; }
