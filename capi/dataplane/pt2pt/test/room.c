/* No process waits for room that is there: sends and streams through rings of 4 KiB and the three
 * lines of a channel, both ways at once, with answers and small messages in between, with messages
 * that leave the queue again, and to a receiver that sleeps. A pair that is full is skipped until
 * its receiver has made room; were that forgotten once, this test would hang. And a message that is
 * announced since there is no credit has one name. */
// sanitize: address,undefined
#include "job.h"
#include <sched.h>

enum { BIG = 300000, MANY = 200, SMALL = 900, ROUNDS = 12 };

static _Atomic int *stage; /* shared by both processes */

static spx_request *out(spx_comm *c, const void *buf, int n, int tag, spx_send_mode m)
{
  spx_request *r;
  CHECK(spx_isend(buf, n, job_bytes, 1 - c->rank, tag, c, SPX_CTX_P2P, m, 0, &r) == 0);
  return r;
}
static spx_request *in(spx_comm *c, void *buf, int n, int tag)
{
  spx_request *r;
  CHECK(spx_irecv(buf, n, job_bytes, 1 - c->rank, tag, c, SPX_CTX_P2P, 0, &r) == 0);
  return r;
}
static void end(spx_request *r)
{
  CHECK(spx_wait(r) == 0);
  spx_request_free(r);
}
static void fill(char *b, int n, int key) { pattern_fill(b, (uint64_t)key, (size_t)n); }
static void look(const char *b, int n, int key) { CHECK(pattern_is(b, (uint64_t)key, (size_t)n)); }

/* Streams both ways, several at once, with synchronous small messages between them: their answers
 * need room too. */
static void both_ways(spx_comm *c)
{
  static char to[3][BIG], from[3][BIG], s[SMALL], t[SMALL];
  spx_request *r[3], *w[3];
  for (int round = 0; round < ROUNDS; round++) {
    for (int k = 0; k < 3; k++) {
      fill(to[k], BIG, c->rank + k + round);
      r[k] = in(c, from[k], BIG, 10 + k);
    }
    for (int k = 0; k < 3; k++) {
      w[k] = out(c, to[k], BIG - k * 1111, 10 + k, SPX_M_STANDARD);
      spx_request *a = in(c, t, SMALL, 20),
                  *b = out(c, s, SMALL - round, 20, k == 1 ? SPX_M_SYNC : SPX_M_STANDARD);
      end(a);
      end(b);
    }
    for (int k = 0; k < 3; k++) {
      end(w[k]);
      end(r[k]);
      look(from[k], BIG - k * 1111, 1 - c->rank + k + round);
    }
  }
}

/* A message that waits for room leaves the queue again; then a stream takes its place. */
static void leaves_the_queue(spx_comm *c)
{
  static char big[BIG], buf[MANY][SMALL];
  for (int round = 0; round < ROUNDS; round++) {
    if (c->rank == 0) {
      /* the receiver is in no MPI call: it consumes nothing */
      while (*stage < 2 * round + 1) sched_yield();
      spx_request *r[MANY], *last;
      int n = 0, queued = 0;
      while (n < MANY && queued < 3) {
        fill(buf[n], SMALL, n);
        r[n] = out(c, buf[n], SMALL, 30, SPX_M_STANDARD);
        queued += r[n++]->state == SPX_S_QUEUED;
      }
      CHECK(queued == 3);
      for (int k = 1; k <= 3; k++) CHECK(spx_cancel(r[n - k]) == 0);
      fill(big, BIG, round);
      last = out(c, big, BIG, 31, SPX_M_STANDARD);
      spx_request *go = out(c, &n, sizeof n, 32, SPX_M_STANDARD);
      ++*stage;
      for (int k = 0; k < n; k++) {
        CHECK(spx_wait(r[k]) == 0);
        CHECK(k < n - 3 || (r[k]->flags & SPX_RF_CANCELLED));
        spx_request_free(r[k]);
      }
      end(last);
      end(go);
    } else {
      int n;
      ++*stage;
      while (*stage < 2 * round + 2) sched_yield();
      /* overtakes the small ones, which are unexpected: they take all the credit there is */
      end(in(c, big, BIG, 31));
      look(big, BIG, round);
      end(in(c, &n, sizeof n, 32));
      for (int k = 0; k < n - 3; k++) {
        end(in(c, buf[k], SMALL, 30));
        look(buf[k], SMALL, k);
      }
      int flag;
      CHECK(spx_iprobe(0, 30, c, SPX_CTX_P2P, &flag, NULL, NULL) == 0 && !flag);
    }
    barrier(c); /* the next round's come after the probe */
  }
}

static void count_name(spx_request *r, void *n) { *(int *)n += r->mode == SPX_M_SYNC; }

/* A synchronous message for which there is no credit is announced: by the name that it has, not by
 * a second one, which would outlive it. */
static void has_one_name(spx_comm *c)
{
  enum { N = 15, TOLD = 1000 };
  static char buf[N + 1][SMALL];
  if (c->rank == 0) {
    spx_request *r[N + 1];
    int names = 0;
    for (int k = 0; k <= N; k++) {
      fill(buf[k], SMALL, k);
      r[k] = out(c, buf[k], SMALL, 40, k < N ? SPX_M_STANDARD : SPX_M_SYNC);
    }
    spx_each_id(count_name, &names);
    CHECK(names <= 1);
    *stage = TOLD;
    for (int k = 0; k <= N; k++) end(r[k]);
    names = 0;
    spx_each_id(count_name, &names);
    CHECK(names == 0);
  } else {
    while (*stage != TOLD) sched_yield(); /* in no MPI call: no credit is given back */
    for (int k = 0; k <= N; k++) {
      end(in(c, buf[k], SMALL, 40));
      look(buf[k], SMALL, k);
    }
  }
}

static void body(spx_comm *c)
{
  both_ways(c);
  barrier(c);
  leaves_the_queue(c);
  barrier(c);
  has_one_name(c);
  barrier(c);
}

int main(void)
{
  static const char *const spins[] = {"20000", "0"};
  stage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (stage == MAP_FAILED) return 1;
  setenv("SPX_CMA", "0", 1);
  for (int i = 0; i < 2; i++) { /* awake, and asleep whenever there is nothing to do */
    setenv("SPX_SPIN", spins[i], 1);
    setenv("SPX_YIELD", i ? "0" : "32", 1);
    *stage = 0;
    if (run_job((job){.procs = 2, .ring_bytes = 4096}, body) != 0) return 1;
    setenv("SPX_CREDIT", "8192", 1);
    *stage = 0;
    if (run_job((job){.procs = 2, .ring_bytes = 16384}, body) != 0) return 1;
    unsetenv("SPX_CREDIT");
  }
  return 0;
}
