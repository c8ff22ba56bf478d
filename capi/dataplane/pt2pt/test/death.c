/* Processes die at random moments of random traffic. Every wait of the survivors ends: with the
 * message, or with MPIX_ERR_PROC_FAILED; never with garbage, never not at all. Messages that the
 * dead had sent whole are delivered. */
// sanitize: address,undefined
// timeout: 240
#include "job.h"

enum { PROCS = 4, MESSAGES = 3000 };
static uint64_t seed;

static int is_victim(uint32_t i) { return i == 1 || i == 2; }

/* Kills the victims after a while that the seed decides. */
static void supervise(const pid_t *pids)
{
  uint64_t s = seed;
  for (uint32_t i = 0; i < PROCS; i++) {
    if (!is_victim(i)) continue;
    struct timespec t = {0, (long)(rnd(&s) % 30000000)};
    nanosleep(&t, NULL);
    kill(pids[i], SIGKILL);
  }
}

static int size_of(int from, int to, int i)
{
  uint64_t s = seed + (uint64_t)(from * 1000003 + to * 10007 + i);
  static const int sizes[] = {0, 8, 60, 500, 9000, 20000, 300000};
  rnd(&s);
  return sizes[rnd(&s) % 7];
}

typedef struct {
  uint8_t *in, *out;
  spx_request *recv, *send;
  bool over;
} partner;

static void check_received(spx_comm *c, int from, int i, const partner *p)
{
  int n = size_of(from, c->rank, i);
  CHECK(p->recv->bytes == n);
  for (int k = 0; k < n; k += 97) CHECK(p->in[k] == pattern((uint64_t)(from + i), (uint64_t)k));
}

static void start(spx_comm *c, int with, int i, partner *p)
{
  int n = size_of(c->rank, with, i);
  for (int k = 0; k < n; k += 97) p->out[k] = pattern((uint64_t)(c->rank + i), (uint64_t)k);
  CHECK(spx_irecv(p->in, 300000, job_bytes, with, i, c, SPX_CTX_P2P, 0, &p->recv) == 0);
  CHECK(spx_isend(p->out, n, job_bytes, with, i, c, SPX_CTX_P2P,
                  i % 7 ? SPX_M_STANDARD : SPX_M_SYNC, 0, &p->send) == 0);
}

static void body(spx_comm *c)
{
  partner *ps = calloc(PROCS, sizeof *ps);
  int lost = 0;
  for (int w = 0; w < PROCS; w++) ps[w].in = malloc(300000), ps[w].out = malloc(300000);
  for (int i = 0; i < MESSAGES || lost < 2; i++) {
    for (int w = 0; w < PROCS; w++)
      if (w != c->rank && !ps[w].over) start(c, w, i, &ps[w]);
    for (int w = 0; w < PROCS; w++) {
      partner *p = &ps[w];
      if (w == c->rank || p->over) continue;
      int rc = spx_wait(p->recv), sc = spx_wait(p->send);
      CHECK(rc == 0 || rc == MPIX_ERR_PROC_FAILED);
      CHECK(sc == 0 || sc == MPIX_ERR_PROC_FAILED);
      if (rc == 0)
        check_received(c, w, i, p);
      else
        CHECK(is_victim((uint32_t)w) && spx_proc_dead((uint32_t)w));
      spx_request_free(p->recv);
      spx_request_free(p->send);
      if (rc != 0 || sc != 0) p->over = true, lost++;
    }
    if (c->rank != 0 && c->rank != 3) continue;
    if (i >= MESSAGES && lost >= 2) break;
    /* the survivors go on until both have been seen to die */
    if (i == MESSAGES - 1 && lost < 2) i--;
  }
  CHECK(spx_ndead == 2 && spx_comm_failures(c) == 2);
  char x;
  CHECK(spx_send(&x, 1, job_bytes, 1, 0, c, SPX_CTX_P2P, SPX_M_STANDARD) == MPIX_ERR_PROC_FAILED);
  CHECK(spx_recv(&x, 1, job_bytes, 2, 0, c, SPX_CTX_P2P, NULL) == MPIX_ERR_PROC_FAILED);
  CHECK(spx_recv(&x, 1, job_bytes, MPI_ANY_SOURCE, 76, c, SPX_CTX_P2P, NULL) ==
        MPIX_ERR_PROC_FAILED);
  spx_request *r;
  CHECK(spx_irecv(&x, 1, job_bytes, MPI_ANY_SOURCE, 77, c, SPX_CTX_P2P, 0, &r) == 0);
  CHECK(spx_wait(r) == MPIX_ERR_PROC_FAILED_PENDING && !r->done);
  c->failed_seen = 2; /* acknowledged */
  char y = (char)c->rank;
  CHECK(spx_send(&y, 1, job_bytes, 3 - c->rank, 78, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  /* the other has seen it too */
  CHECK(spx_recv(&y, 1, job_bytes, 3 - c->rank, 78, c, SPX_CTX_P2P, NULL) == 0);
  y = (char)c->rank;
  CHECK(spx_send(&y, 1, job_bytes, 3 - c->rank, 77, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  CHECK(spx_wait(r) == 0 && r->src == 3 - c->rank && x == 3 - c->rank);
  spx_request_free(r);
}

int main(int argc, char **argv)
{
  int bad = 0;
  for (int k = 0; k < (argc > 1 ? 1 : 20) && !bad; k++) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)k * 77 + 5;
    setenv("SPX_CMA", k % 4 == 3 ? "0" : "1", 1);
    bad = run_job((job){.procs = PROCS, .ncpus = 1, .killed = is_victim, .supervise = supervise},
                  body);
    if (bad) fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
  }
  return bad != 0;
}
