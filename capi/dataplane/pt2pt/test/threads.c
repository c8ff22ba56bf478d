/* MPI_THREAD_MULTIPLE: several threads of two processes in the data plane at once. Each pair of
 * threads has its own tag; one thread of each process only polls. MPI-5.0 11.6. */
// sanitize: address,undefined thread
// timeout: 240
#include "job.h"
#include <pthread.h>

enum { THREADS = 4, MESSAGES = 150 };
static spx_comm *comm;
static _Atomic int running;

static void exchange(int tag, int i)
{
  static const int sizes[] = {0, 8, 40, 3000, 20000};
  int n = sizes[(tag + i) % 5];
  uint8_t *out = malloc((size_t)n + 1), *in = malloc((size_t)n + 1);
  pattern_fill(out, (uint64_t)(tag + i + comm->rank), (size_t)n);
  spx_request *r, *s;
  MPI_Status st;
  if (i % 3 == 0) {
    CHECK(spx_irecv(in, n, job_bytes, 1 - comm->rank, tag, comm, SPX_CTX_P2P, 0, &r) == 0);
    CHECK(spx_send(out, n, job_bytes, 1 - comm->rank, tag, comm, SPX_CTX_P2P,
                   i % 2 ? SPX_M_SYNC : SPX_M_STANDARD) == 0);
    CHECK(spx_wait(r) == 0);
    spx_request_free(r);
  } else {
    CHECK(spx_isend(out, n, job_bytes, 1 - comm->rank, tag, comm, SPX_CTX_P2P, SPX_M_STANDARD, 0,
                    &s) == 0);
    CHECK(spx_recv(in, n, job_bytes, 1 - comm->rank, tag, comm, SPX_CTX_P2P, &st) == 0 &&
          spx_status_bytes(&st) == n);
    CHECK(spx_wait(s) == 0);
    spx_request_free(s);
  }
  CHECK(pattern_is(in, (uint64_t)(tag + i + 1 - comm->rank), (size_t)n));
  free(out);
  free(in);
}

/* A message to this process from one thread to another: a waiter that sleeps must be woken by the
 * other thread. */
static void to_ourselves(int tag, int i)
{
  int x = tag * 1000 + i, y = -1;
  spx_request *r;
  CHECK(spx_irecv(&y, sizeof y, job_bytes, comm->rank, 100 + tag, comm, SPX_CTX_P2P, 0, &r) == 0);
  CHECK(spx_send(&x, sizeof x, job_bytes, comm->rank, 100 + tag, comm, SPX_CTX_P2P,
                 SPX_M_STANDARD) == 0);
  CHECK(spx_wait(r) == 0 && y == x);
  spx_request_free(r);
}

static void *worker(void *arg)
{
  int tag = (int)(intptr_t)arg;
  for (int i = 0; i < MESSAGES; i++) {
    exchange(tag, i);
    to_ourselves(tag, i);
  }
  running--;
  spx_ring_self();
  return NULL;
}

static void *poller(void *arg)
{
  (void)arg;
  while (running > 0) {
    uint32_t ticket = spx_ticket();
    if (running > 0) spx_wait_event(ticket, 0);
  }
  return NULL;
}

/* One thread waits for what the other sends, in turn: no other thread makes progress. */
static void *answerer(void *arg)
{
  (void)arg;
  for (int i = 0; i < MESSAGES; i++) {
    int x;
    CHECK(spx_recv(&x, sizeof x, job_bytes, comm->rank, 200, comm, SPX_CTX_P2P, NULL) == 0 &&
          x == i);
    CHECK(spx_send(&x, sizeof x, job_bytes, comm->rank, 201, comm, SPX_CTX_P2P, SPX_M_STANDARD) ==
          0);
  }
  return NULL;
}

static void body(spx_comm *c)
{
  pthread_t t[THREADS], p;
  comm = c;
  running = THREADS;
  pthread_create(&p, NULL, poller, NULL);
  for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, worker, (void *)(intptr_t)i);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  pthread_join(p, NULL);
  pthread_create(&p, NULL, answerer, NULL);
  for (int i = 0; i < MESSAGES; i++) {
    int x = i, y;
    CHECK(spx_send(&x, sizeof x, job_bytes, c->rank, 200, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    CHECK(spx_recv(&y, sizeof y, job_bytes, c->rank, 201, c, SPX_CTX_P2P, NULL) == 0 && y == i);
  }
  pthread_join(p, NULL);
  barrier(c);
}

int main(void)
{
  int bad = run_job((job){.procs = 2, .mt = 1}, body);
  setenv("SPX_SPIN", "0", 1);
  setenv("SPX_YIELD", "0", 1); /* always asleep when there is nothing to do */
  return bad + run_job((job){.procs = 2, .mt = 1}, body) != 0;
}
