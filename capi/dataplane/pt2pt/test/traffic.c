/* Random traffic between all pairs: sizes around every threshold, all modes, contiguous and not,
 * wildcards, probes, with and without the get protocol, with little credit; order and content are
 * checked. MPI-5.0 3.5 (order), 3.7, 3.8. */
// sanitize: address,undefined
// timeout: 240
#include "job.h"
#include "bsend.h"

enum { ROUNDS = 60, BURST = 12 };

static const int sizes[] = {0,    1,    7,    8,     24,    31,    32,    33,    64,    100,
                            1000, 4096, 8160, 16383, 16384, 16385, 40000, 70001, 200000};
#define NSIZES (sizeof sizes / sizeof *sizes)

typedef struct {
  int n, tag, mode, vector;
} plan;

/* The message k from rank `from` to rank `to`: computed alike by both. */
static plan message(int from, int to, int round, int k)
{
  uint64_t s = (uint64_t)from * 7919 + (uint64_t)to * 104729 + (uint64_t)round * 1299709 +
               (uint64_t)k * 15485863;
  rnd(&s);
  plan p = {.n = sizes[rnd(&s) % NSIZES],
            .tag = (int)(rnd(&s) % 3),
            .mode = (int)(rnd(&s) % 8),
            .vector = rnd(&s) % 4 == 0};
  if (p.vector) p.n = (p.n + 7) / 8 * 8;
  return p;
}

static uint64_t key(int from, int to, int round, int k)
{
  return (uint64_t)(from * 31 + to * 17 + round * 5 + k);
}

static spx_type *type_of(const plan *p, int64_t *count)
{
  static spx_type *v;
  if (!v) v = job_vector(2, 4, 7);
  *count = p->vector ? p->n / 8 : p->n;
  return p->vector ? v : job_bytes;
}

static uint8_t *new_buffer(const plan *p, bool filled, uint64_t k)
{
  int64_t count;
  spx_type *t = type_of(p, &count);
  uint8_t *buf = malloc((size_t)(count * t->extent) + 1), *packed = malloc((size_t)p->n + 1);
  memset(buf, 0xee, (size_t)(count * t->extent) + 1);
  memset(packed, 0, (size_t)p->n);
  if (filled) pattern_fill(packed, k, (size_t)p->n);
  spx_unpack(buf, count, t, 0, p->n, packed);
  free(packed);
  return buf;
}

static void check_buffer(const plan *p, const uint8_t *buf, uint64_t k)
{
  int64_t count;
  spx_type *t = type_of(p, &count);
  uint8_t *packed = malloc((size_t)p->n + 1);
  spx_pack(buf, count, t, 0, p->n, packed);
  CHECK(pattern_is(packed, k, (size_t)(p->n)));
  CHECK(buf[count * t->extent] == 0xee);
  free(packed);
}

static spx_send_mode mode_of(const plan *p)
{
  return p->mode == 0 ? SPX_M_SYNC : p->mode == 1 && p->n < 10000 ? SPX_M_BUFFERED : SPX_M_STANDARD;
}

static int send_burst(spx_comm *c, int round, spx_request **reqs, uint8_t **bufs)
{
  int n = 0;
  for (int k = 0; k < BURST; k++)
    for (int to = 0; to < c->size; to++) {
      plan p = message(c->rank, to, round, k);
      int64_t count;
      spx_type *t = type_of(&p, &count);
      uint8_t *buf = new_buffer(&p, true, key(c->rank, to, round, k));
      if (p.n <= 64 && to != c->rank && p.mode > 4) {
        CHECK(spx_send(buf, count, t, to, p.tag, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
        free(buf);
        continue;
      }
      CHECK(spx_isend(buf, count, t, to, p.tag, c, SPX_CTX_P2P, mode_of(&p), 0, &reqs[n]) == 0);
      bufs[n++] = buf;
    }
  return n;
}

/* Receives the messages of one sender and tag in their order; how depends on the round. */
static void receive_one(spx_comm *c, int from, int round, int k, int how)
{
  plan p = message(from, c->rank, round, k);
  int64_t count;
  spx_type *t = type_of(&p, &count);
  uint8_t *buf = new_buffer(&p, false, 0);
  MPI_Status st;
  if (how == 0)
    CHECK(spx_recv(buf, count, t, from, p.tag, c, SPX_CTX_P2P, &st) == 0);
  else if (how == 1) {
    void *m;
    CHECK(spx_probe(from, p.tag, c, SPX_CTX_P2P, &st, &m) == 0);
    CHECK(spx_status_bytes(&st) == p.n);
    spx_request *r;
    CHECK(spx_imrecv(buf, count, t, m, c, 0, &r) == 0 && spx_wait(r) == 0);
    spx_status_set(&st, r->src, r->tag, SPX_KEEP_ERROR, r->bytes, 0);
    spx_request_free(r);
  } else {
    spx_request *r;
    CHECK(spx_irecv(buf, count, t, from, p.tag, c, SPX_CTX_P2P, 0, &r) == 0);
    CHECK(spx_wait(r) == 0);
    spx_status_set(&st, r->src, r->tag, SPX_KEEP_ERROR, r->bytes, 0);
    spx_request_free(r);
  }
  CHECK(st.MPI_SOURCE == from && st.MPI_TAG == p.tag && spx_status_bytes(&st) == p.n);
  check_buffer(&p, buf, key(from, c->rank, round, k));
  free(buf);
}

/* All from anyone: the next of each sender must come in order. */
static void receive_any(spx_comm *c, int round)
{
  int *next = calloc((size_t)c->size, sizeof *next);
  uint8_t *buf = malloc(200001);
  for (int i = 0; i < c->size * BURST; i++) {
    MPI_Status st;
    CHECK(spx_recv(buf, 200001, job_bytes, MPI_ANY_SOURCE, MPI_ANY_TAG, c, SPX_CTX_P2P, &st) == 0);
    int from = st.MPI_SOURCE, k = next[from]++;
    plan p = message(from, c->rank, round, k);
    CHECK(st.MPI_TAG == p.tag && spx_status_bytes(&st) == p.n);
    uint64_t what = key(from, c->rank, round, k);
    CHECK(pattern_is(buf, what, (size_t)(p.n)));
  }
  free(buf);
  free(next);
}

/* All posted before anything is sent. */
static void post_all(spx_comm *c, int round, spx_request **reqs, uint8_t **bufs)
{
  for (int k = 0, n = 0; k < BURST; k++)
    for (int from = 0; from < c->size; from++, n++) {
      plan p = message(from, c->rank, round, k);
      int64_t count;
      spx_type *t = type_of(&p, &count);
      bufs[n] = new_buffer(&p, false, 0);
      CHECK(spx_irecv(bufs[n], count, t, k % 5 == 4 && c->size == 1 ? MPI_ANY_SOURCE : from, p.tag,
                      c, SPX_CTX_P2P, 0, &reqs[n]) == 0);
    }
}

static void body(spx_comm *c)
{
  size_t most = (size_t)c->size * BURST;
  spx_request **out = calloc(most, sizeof *out), **in = calloc(most, sizeof *in);
  uint8_t **obuf = calloc(most, sizeof *obuf), **ibuf = calloc(most, sizeof *ibuf);
  spx_buffer_attach(0, NULL, MPI_BUFFER_AUTOMATIC, 0);
  for (int round = 0, rounds = full_or_fifth(ROUNDS); round < rounds; round++) {
    int how = round % 5;
    if (how == 3) post_all(c, round, in, ibuf);
    int n = send_burst(c, round, out, obuf);
    if (how == 3) {
      for (size_t i = 0; i < most; i++) {
        CHECK(spx_wait(in[i]) == 0);
        plan p = message((int)(i % (size_t)c->size), c->rank, round, (int)(i / (size_t)c->size));
        check_buffer(&p, ibuf[i],
                     key((int)(i % (size_t)c->size), c->rank, round, (int)(i / (size_t)c->size)));
        CHECK(in[i]->bytes == p.n);
        spx_request_free(in[i]);
        free(ibuf[i]);
      }
    } else if (how == 4)
      receive_any(c, round);
    else
      for (int from = 0; from < c->size; from++) /* tag by tag, so that many are unexpected */
        for (int tag = 2; tag >= 0; tag--)
          for (int k = 0; k < BURST; k++)
            if (message(from, c->rank, round, k).tag == tag) receive_one(c, from, round, k, how);
    for (int i = 0; i < n; i++) {
      CHECK(spx_wait(out[i]) == 0);
      spx_request_free(out[i]);
      free(obuf[i]);
    }
    /* or messages of the next round would meet receives from any source of this one */
    if (how == 4) barrier(c);
  }
  void *buffer;
  int64_t size;
  CHECK(spx_buffer_detach(NULL, &buffer, &size) == MPI_SUCCESS);
  barrier(c);
  CHECK(spx_unex_count == 0 && spx_posted_count == 0);
}

int main(void)
{
  int bad = run_job((job){.procs = 2}, body) + run_job((job){.procs = 5, .maxprocs = 9}, body) +
            run_job((job){.procs = 1}, body) +
            run_job((job){.procs = 3, .ring_bytes = 16384}, body);
  setenv("SPX_CMA", "0", 1); /* everything by two copies */
  bad += run_job((job){.procs = 3}, body);
  setenv("SPX_CREDIT", "4096", 1); /* and nearly everything announced */
  setenv("SPX_EAGER_MAX", "1000", 1);
  bad += run_job((job){.procs = 3}, body);
  unsetenv("SPX_CMA");
  bad += run_job((job){.procs = 4}, body);
  return bad != 0;
}
