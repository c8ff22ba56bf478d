/* MPI_THREAD_MULTIPLE where threads compete: several receive with wildcards, probe and take, or
 * cancel, while other threads send what they may get. Every message reaches exactly one of them,
 * whole. MPI-5.0 3.8 and 11.6. */
// sanitize: address,undefined thread
// timeout: 240
#include "job.h"
#include "plan.h"
#include "reduce.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { THREADS = 3, MESSAGES = 60, MOST = 100000, TAKEN_BACK = 300, GIVEN_UP = 400, TOLD = 500 };
static spx_comm *comm;
static _Atomic int came[THREADS], sum[THREADS];

typedef struct {
  int32_t thread, i, bytes;
} head;

static int length(int thread, int i)
{
  static const int sizes[] = {12, 40, 3000, 20000, MOST};
  return sizes[(thread * 7 + i) % 5];
}

static void fill(uint8_t *b, int thread, int i)
{
  head h = {thread, i, length(thread, i)};
  pattern_fill(b, (uint64_t)(thread * 1000 + i), (size_t)(h.bytes));
  memcpy(b, &h, sizeof h);
}

/* Counts an arrived message, and checks every byte of it. */
static void count(const uint8_t *b, int64_t bytes, int tag)
{
  head h;
  CHECK(bytes >= (int64_t)sizeof h);
  memcpy(&h, b, sizeof h);
  CHECK(h.thread == tag && h.thread < THREADS && h.bytes == bytes &&
        bytes == length(h.thread, h.i));
  for (int k = (int)sizeof h; k < h.bytes; k++)
    CHECK(b[k] == pattern((uint64_t)(h.thread * 1000 + h.i), (uint64_t)k));
  came[tag]++;
  sum[tag] += h.i;
}

static void *sender(void *arg)
{
  int me = (int)(intptr_t)arg;
  uint8_t *b = malloc(MOST);
  for (int i = 0; i < MESSAGES; i++) {
    fill(b, me, i);
    spx_send_mode m = i % 4 == 3 ? SPX_M_SYNC : SPX_M_STANDARD;
    CHECK(spx_send(b, length(me, i), job_bytes, 1 - comm->rank, me, comm, SPX_CTX_P2P, m) == 0);
  }
  free(b);
  return NULL;
}

static void *wildcard(void *arg)
{
  (void)arg;
  uint8_t *b = malloc(MOST);
  for (int i = 0; i < MESSAGES; i++) {
    MPI_Status st;
    CHECK(spx_recv(b, MOST, job_bytes, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, SPX_CTX_P2P, &st) == 0);
    CHECK(st.MPI_SOURCE == 1 - comm->rank);
    count(b, spx_status_bytes(&st), st.MPI_TAG);
  }
  free(b);
  return NULL;
}

/* Takes messages out by matching probes, waiting ones and polling ones in turn. */
static void *prober(void *arg)
{
  (void)arg;
  for (int i = 0; i < MESSAGES; i++) {
    MPI_Status st;
    void *taken = NULL;
    for (int flag = 0; !flag;)
      if (i % 2) {
        CHECK(spx_probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, SPX_CTX_P2P, &st, &taken) == 0);
        flag = 1;
      } else {
        CHECK(spx_iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, SPX_CTX_P2P, &flag, &st, &taken) == 0);
        if (!flag) sched_yield();
      }
    int64_t n = spx_status_bytes(&st);
    uint8_t *b = malloc((size_t)n);
    spx_request *r;
    CHECK(spx_imrecv(b, n, job_bytes, taken, comm, 0, &r) == 0 && spx_wait(r) == 0 &&
          r->bytes == n);
    spx_request_free(r);
    count(b, n, st.MPI_TAG);
    free(b);
  }
  return NULL;
}

/* Receives are posted and taken back at once: what was not taken back has got a message, and none
 * is lost. */
static void *taker_back(void *arg)
{
  int me = (int)(intptr_t)arg, tag = TAKEN_BACK + me;
  spx_request *s[MESSAGES];
  int out[MESSAGES];
  for (int i = 0; i < MESSAGES; i++) {
    out[i] = i;
    CHECK(spx_isend(&out[i], sizeof out[i], job_bytes, 1 - comm->rank, tag, comm, SPX_CTX_P2P,
                    i % 2 ? SPX_M_SYNC : SPX_M_STANDARD, 0, &s[i]) == 0);
  }
  for (int got = 0; got < MESSAGES;) {
    int x = -1;
    spx_request *r;
    CHECK(spx_irecv(&x, sizeof x, job_bytes, MPI_ANY_SOURCE, tag, comm, SPX_CTX_P2P, 0, &r) == 0);
    if (got % 3) sched_yield();
    CHECK(spx_cancel(r) == 0 && spx_wait(r) == 0);
    if (!(r->flags & SPX_RF_CANCELLED)) CHECK(x == got++ && r->bytes == (int64_t)sizeof x);
    spx_request_free(r);
  }
  for (int i = 0; i < MESSAGES; i++) {
    CHECK(spx_wait(s[i]) == 0);
    spx_request_free(s[i]);
  }
  return NULL;
}

/* The same with sends: the receiver is sent the number of those not cancelled, and finds those and
 * no more. */
static void *giver_up(void *arg)
{
  int me = (int)(intptr_t)arg, tag = GIVEN_UP + me, sent = 0, left, flag;
  for (int i = 0; i < MESSAGES; i++) {
    spx_request *r;
    CHECK(spx_isend(&i, sizeof i, job_bytes, 1 - comm->rank, tag, comm, SPX_CTX_P2P, SPX_M_STANDARD,
                    0, &r) == 0);
    if (i % 4) CHECK(spx_cancel(r) == 0);
    CHECK(spx_wait(r) == 0);
    sent += !(r->flags & SPX_RF_CANCELLED);
    spx_request_free(r);
  }
  CHECK(spx_send(&sent, sizeof sent, job_bytes, 1 - comm->rank, TOLD + me, comm, SPX_CTX_P2P,
                 SPX_M_STANDARD) == 0);
  CHECK(spx_recv(&left, sizeof left, job_bytes, 1 - comm->rank, TOLD + me, comm, SPX_CTX_P2P,
                 NULL) == 0);
  for (int last = -1, x; left > 0; left--, last = x)
    CHECK(spx_recv(&x, sizeof x, job_bytes, MPI_ANY_SOURCE, tag, comm, SPX_CTX_P2P, NULL) == 0 &&
          x > last);
  CHECK(spx_iprobe(MPI_ANY_SOURCE, tag, comm, SPX_CTX_P2P, &flag, MPI_STATUS_IGNORE, NULL) == 0 &&
        !flag);
  return NULL;
}

/* One derived datatype, one operation and the temporary memory, shared by all. */
static spx_type *strided;
static void *mover(void *arg)
{
  int me = (int)(intptr_t)arg;
  enum { N = 500 };
  const spx_op *add = (const spx_op *)spx_get(SPX_K_OP, MPI_SUM),
               *least = (const spx_op *)spx_get(SPX_K_OP, MPI_MINLOC);
  const spx_type *ints = (const spx_type *)spx_get(SPX_K_TYPE, MPI_INT),
                 *pairs = (const spx_type *)spx_get(SPX_K_TYPE, MPI_2INT);
  for (int i = 0; i < MESSAGES; i++) {
    int32_t *out = spx_temp_get(3 * N * sizeof *out), *in = spx_temp_get(N * sizeof *in),
            pair[2] = {i, me}, low[2] = {i + 1, 0};
    CHECK(out && in);
    for (int k = 0; k < 3 * N; k++) out[k] = k * (me + 1) + i;
    spx_request *r;
    CHECK(spx_irecv(in, N * 4, job_bytes, 1 - comm->rank, me, comm, SPX_CTX_P2P, 0, &r) == 0);
    CHECK(spx_send(out, 1, strided, 1 - comm->rank, me, comm, SPX_CTX_P2P, SPX_M_STANDARD) == 0 &&
          spx_wait(r) == 0);
    spx_request_free(r);
    for (int k = 0; k < N; k++) CHECK(in[k] == 3 * k * (me + 1) + i);
    CHECK(spx_reduce(in, out, N, ints, add) == 0 && spx_reduce(pair, low, 1, pairs, least) == 0);
    for (int k = 0; k < N; k++) CHECK(out[k] == 3 * k * (me + 1) + i + k * (me + 1) + i);
    CHECK(low[0] == i && low[1] == me);
    spx_temp_put(out, 3 * N * sizeof *out);
    spx_temp_put(in, N * sizeof *in);
  }
  return NULL;
}

static void together(void *(*one)(void *), void *(*other)(void *))
{
  pthread_t a[THREADS], b[THREADS];
  for (intptr_t i = 0; i < THREADS; i++) {
    pthread_create(&a[i], NULL, one, (void *)i);
    if (other) pthread_create(&b[i], NULL, other, (void *)i);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(a[i], NULL);
    if (other) pthread_join(b[i], NULL);
  }
  barrier(comm);
}

static void all_came(void)
{
  for (int i = 0; i < THREADS; i++) {
    CHECK(came[i] == MESSAGES && sum[i] == MESSAGES * (MESSAGES - 1) / 2);
    came[i] = sum[i] = 0;
  }
}

static void body(spx_comm *c)
{
  comm = c;
  strided = job_vector(500, 4, 12);
  spx_ops_init();
  together(sender, wildcard);
  all_came();
  together(sender, prober);
  all_came();
  together(taker_back, giver_up);
  together(mover, NULL);
}

/* Several jobs at once: a thread that was woken, or is about to sleep, is preempted for
 * milliseconds while others run. */
static int crowd(void)
{
  enum { JOBS = 4 };
  pid_t jobs[JOBS];
  int bad = 0, runs = full_or(10, 1);
  for (int i = 0; i < JOBS; i++)
    if ((jobs[i] = fork()) == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int k = 0; k < runs && !bad; k++) bad = run_job((job){.procs = 2, .mt = 1}, body);
      _exit(bad != 0);
    }
  for (int i = 0; i < JOBS; i++) {
    int status;
    bad += waitpid(jobs[i], &status, 0) != jobs[i] || status != 0;
  }
  return bad;
}

int main(void)
{
  int bad = run_job((job){.procs = 2, .mt = 1}, body);          /* large messages are streamed */
  bad += run_job((job){.procs = 2, .mt = 1, .ncpus = 1}, body); /* and got */
  setenv("SPX_CMA", "0", 1);
  setenv("SPX_SPIN", "0", 1);
  setenv("SPX_YIELD", "0", 1); /* always asleep when there is nothing to do */
  bad += run_job((job){.procs = 2, .mt = 1}, body);
  return bad + crowd() != 0;
}
