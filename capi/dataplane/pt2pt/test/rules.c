/* Single rules: order between exact and wildcard receives, probes, truncation, cancelling,
 * synchronous sends, buffered sends, persistent requests, revocation, control messages. MPI-5.0 3.4
 * to 3.9. */
// sanitize: address,undefined
#include "job.h"
#include "bsend.h"

static int go(spx_comm *c, const void *buf, int n, int tag, spx_send_mode m)
{
  return spx_send(buf, n, job_bytes, 1 - c->rank, tag, c, SPX_CTX_P2P, m);
}
static int come(spx_comm *c, void *buf, int n, int src, int tag, MPI_Status *st)
{
  return spx_recv(buf, n, job_bytes, src, tag, c, SPX_CTX_P2P, st);
}
static spx_request *later(spx_comm *c, void *buf, int n, int src, int tag)
{
  spx_request *r;
  CHECK(spx_irecv(buf, n, job_bytes, src, tag, c, SPX_CTX_P2P, 0, &r) == 0);
  return r;
}
static void sync_up(spx_comm *c) { barrier(c); }

/* A message goes to the receive that was posted first, be it a wildcard or not. */
static void posting_order(spx_comm *c)
{
  int v[4] = {-1, -1, -1, -1};
  if (c->rank == 0) {
    spx_request *r[4] = {later(c, &v[0], 4, MPI_ANY_SOURCE, MPI_ANY_TAG), later(c, &v[1], 4, 1, 5),
                         later(c, &v[2], 4, MPI_ANY_SOURCE, 5), later(c, &v[3], 4, 1, MPI_ANY_TAG)};
    sync_up(c);
    for (int i = 0; i < 4; i++) {
      CHECK(spx_wait(r[i]) == 0 && v[i] == i && r[i]->src == 1 && r[i]->tag == 5);
      spx_request_free(r[i]);
    }
  } else {
    sync_up(c);
    for (int i = 0; i < 4; i++) CHECK(go(c, &i, 4, 5, SPX_M_STANDARD) == 0);
  }
}

/* Of two messages that fit, the first sent comes first: eager, announced or synchronous. */
static void sending_order(spx_comm *c)
{
  static char big[100000], in[100000];
  MPI_Status st;
  if (c->rank == 0) {
    spx_request *r[3];
    CHECK(spx_isend(big, sizeof big, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r[0]) ==
          0);
    CHECK(spx_isend(big, 10, job_bytes, 1, 2, c, SPX_CTX_P2P, SPX_M_SYNC, 0, &r[1]) == 0);
    CHECK(spx_isend(big, 5, job_bytes, 1, 3, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r[2]) == 0);
    CHECK(!r[1]->done && !r[0]->done);
    sync_up(c);
    for (int i = 0; i < 3; i++) {
      CHECK(spx_wait(r[i]) == 0);
      spx_request_free(r[i]);
    }
  } else {
    sync_up(c);
    int flag;
    CHECK(spx_iprobe(0, 3, c, SPX_CTX_P2P, &flag, &st, NULL) == 0 && flag &&
          spx_status_bytes(&st) == 5);
    for (int i = 1; i <= 3; i++) {
      CHECK(spx_probe(MPI_ANY_SOURCE, MPI_ANY_TAG, c, SPX_CTX_P2P, &st, NULL) == 0 &&
            st.MPI_TAG == i);
      CHECK(come(c, in, sizeof in, MPI_ANY_SOURCE, MPI_ANY_TAG, &st) == 0 && st.MPI_TAG == i);
    }
  }
}

static void truncation(spx_comm *c)
{
  static char big[100000];
  char in[16];
  if (c->rank == 0) {
    CHECK(go(c, big, 40, 1, SPX_M_STANDARD) == 0);
    CHECK(go(c, big, sizeof big, 1, SPX_M_STANDARD) == 0);
    CHECK(go(c, "x", 1, 2, SPX_M_STANDARD) == 0);
  } else {
    MPI_Status st;
    memset(in, 7, sizeof in);
    for (int i = 0; i < 2; i++) {
      CHECK(come(c, in, 10, 0, 1, &st) == MPI_ERR_TRUNCATE && spx_status_bytes(&st) == 10 &&
            in[10] == 7);
      CHECK(strstr(spx_detail_text(), i ? "100000 bytes" : "40 bytes") &&
            strstr(spx_detail_text(), "rank 0"));
    }
    CHECK(come(c, in, 10, 0, 2, &st) == 0);
  }
}

/* Cancelling sends: unmatched ones are taken back, matched ones are not. */
static void cancelling(spx_comm *c)
{
  static char big[100000];
  static const int sizes[] = {4, 4, 100000};
  char in[8];
  for (int k = 0; k < 3; k++) {
    spx_request *r;
    if (c->rank == 0) {
      spx_send_mode m = k == 1 ? SPX_M_SYNC : SPX_M_STANDARD;
      CHECK(spx_isend(big, sizes[k], job_bytes, 1, 1, c, SPX_CTX_P2P, m, 0, &r) == 0);
      CHECK(spx_cancel(r) == 0 && spx_wait(r) == 0 && (r->flags & SPX_RF_CANCELLED));
      spx_request_free(r);
      sync_up(c);
      CHECK(go(c, "y", 1, 1, SPX_M_STANDARD) == 0);
      CHECK(spx_isend(big, 8, job_bytes, 1, 2, c, SPX_CTX_P2P, m, 0, &r) == 0);
      sync_up(c); /* it is received now */
      CHECK(spx_cancel(r) == 0 && spx_wait(r) == 0 && !(r->flags & SPX_RF_CANCELLED));
      spx_request_free(r);
    } else {
      MPI_Status st;
      sync_up(c);
      CHECK(come(c, in, 1, 0, 1, &st) == 0 && in[0] == 'y'); /* the cancelled one never comes */
      CHECK(come(c, in, 8, 0, 2, &st) == 0);
      sync_up(c);
      r = later(c, in, 8, 0, 99);
      CHECK(spx_cancel(r) == 0 && spx_wait(r) == 0 && (r->flags & SPX_RF_CANCELLED));
      spx_request_free(r);
    }
    sync_up(c);
  }
  CHECK(spx_posted_count == 0);
}

static void buffered(spx_comm *c)
{
  enum { N = 1000 };
  static char room[3 * (N + MPI_BSEND_OVERHEAD)];
  char msg[N] = {0}, in[N];
  void *back;
  int64_t size;
  if (c->rank == 0) {
    CHECK(go(c, msg, N, 1, SPX_M_BUFFERED) == MPI_ERR_BUFFER);
    CHECK(spx_buffer_attach(0, NULL, room + 1, sizeof room - 1) == 0);
    CHECK(spx_buffer_attach(0, NULL, room, sizeof room) == MPI_ERR_BUFFER);
    for (int i = 0; i < 12; i++) {
      memset(msg, i, N);
      CHECK(go(c, msg, N, 1, SPX_M_BUFFERED) == 0);
    }
    CHECK(go(c, msg, 0, 1, SPX_M_BUFFERED) == 0);
    CHECK(spx_send(room, sizeof room, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_BUFFERED) ==
          MPI_ERR_BUFFER);
    CHECK(spx_buffer_flush(NULL) == 0);
    CHECK(spx_buffer_detach(NULL, &back, &size) == 0 && back == room + 1 &&
          size == sizeof room - 1);
    CHECK(spx_buffer_detach(NULL, &back, &size) == MPI_ERR_BUFFER);
  } else {
    for (int i = 0; i < 12; i++)
      CHECK(come(c, in, N, 0, 1, NULL) == 0 && in[0] == i && in[N - 1] == i);
    CHECK(come(c, in, N, 0, 1, NULL) == 0);
  }
}

static void persistent(spx_comm *c)
{
  int out = 0, in = -1;
  spx_request *s, *r;
  CHECK(spx_persistent(SPX_R_SEND, &out, 4, job_bytes, 1 - c->rank, 3, c, SPX_CTX_P2P, SPX_M_SYNC,
                       &s) == 0);
  CHECK(spx_persistent(SPX_R_RECV, &in, 4, job_bytes, MPI_ANY_SOURCE, MPI_ANY_TAG, c, SPX_CTX_P2P,
                       0, &r) == 0);
  for (int i = 0; i < 12; i++) {
    out = i;
    CHECK(spx_start(r) == 0 && spx_start(s) == 0 && spx_wait(r) == 0 && spx_wait(s) == 0);
    CHECK(in == i && r->src == 1 - c->rank && r->tag == 3 && r->want_src == MPI_ANY_SOURCE);
    s->flags &= ~(uint32_t)SPX_RF_ACTIVE;
    r->flags &= ~(uint32_t)SPX_RF_ACTIVE;
  }
  CHECK(s->comm->o.refs == 3 && job_bytes->o.refs > 2);
  spx_request_free(s);
  spx_request_free(r);
  CHECK(c->o.refs == 1);
}

/* Control messages of all sizes arrive whole, in order, in a blocked call's hook. */
static int heard;
static void hook(void)
{
  static uint8_t buf[200000];
  uint32_t from;
  int64_t n;
  while ((n = spx_ctrl_recv(buf, sizeof buf, &from)) >= 0) {
    CHECK(pattern_is(buf, (uint64_t)n, (size_t)n));
    CHECK(from == 0 || from == 1);
    heard++;
  }
}
static void control(spx_comm *c)
{
  static const uint32_t sizes[] = {0, 1, 32, 33, 5000, 8192, 8193, 200000};
  static uint8_t buf[200000];
  char x;
  heard = 0;
  spx_ft_hook = hook;
  if (c->rank == 0) {
    for (size_t k = 0; k < 8; k++) {
      pattern_fill(buf, sizes[k], (size_t)(sizes[k]));
      CHECK(spx_ctrl_send(1, buf, sizes[k]) == 0);
    }
    CHECK(spx_ctrl_send(0, buf, sizes[7]) == 0);
    while (heard < 1) spx_progress();
    CHECK(go(c, "z", 1, 1, SPX_M_STANDARD) == 0);
  } else {
    CHECK(come(c, &x, 1, 0, 1, NULL) == 0); /* blocked all the time */
#if JOB_SOCKETS /* one read may get them and the message behind them, which is processed first */
    while (heard < 8) spx_progress();
#endif
    CHECK(heard == 8);
  }
  spx_ft_hook = NULL;
}

static void count_of(spx_unex *e, void *arg)
{
  uint64_t *a = arg;
  a[1] += e->ctx - a[0] < SPX_CTX_STEP;
}
static int waiting_of(const spx_comm *c)
{
  uint64_t a[2] = {c->ctx, 0};
  spx_each_unexpected(count_of, a);
  return (int)a[1];
}

/* Whatever is pending on a revoked communicator ends, and nothing begins; SPX_CTX_FT goes on. */
static void revoked(spx_comm *c)
{
  static char big[100000];
  spx_request *r[4];
  char x = 1;
  uint32_t procs[2] = {0, 1};
  spx_comm *d = job_comm(1000, procs, 2, c->rank);
  r[0] = later(d, &x, 1, 1 - c->rank, 1);
  r[1] = later(d, &x, 1, MPI_ANY_SOURCE, MPI_ANY_TAG);
  CHECK(spx_isend(big, sizeof big, job_bytes, 1 - c->rank, 2, d, SPX_CTX_COLL, SPX_M_STANDARD, 0,
                  &r[2]) == 0);
  CHECK(spx_isend(big, sizeof big, job_bytes, c->rank, 2, d, SPX_CTX_COLL, SPX_M_STANDARD, 0,
                  &r[3]) == 0);
  sync_up(c);
  d->revoked = 1;
  spx_comm_revoked(d);
  for (int i = 0; i < 4; i++) {
    CHECK(r[i]->done && r[i]->error == MPIX_ERR_REVOKED);
    spx_request_free(r[i]);
  }
  CHECK(go(d, &x, 1, 1, SPX_M_STANDARD) == MPIX_ERR_REVOKED &&
        come(d, &x, 1, 1 - c->rank, 1, NULL) == MPIX_ERR_REVOKED);
  CHECK(spx_send(&x, 1, job_bytes, 1 - c->rank, 1, d, SPX_CTX_FT, SPX_M_STANDARD) == 0);
  CHECK(spx_recv(&x, 1, job_bytes, 1 - c->rank, 1, d, SPX_CTX_FT, NULL) == 0);
  sync_up(c);
  CHECK(waiting_of(d) == 1); /* the announcement of what the other has retracted */
  spx_comm_dropped(d->ctx);
  CHECK(waiting_of(d) == 0);
  sync_up(c);
  CHECK(d->o.refs == 1);
}

/* A sender that is not in MPI is not waited for: its large message is fetched. Then it streams,
 * when it returns, to no receive. */
static int pipe_ends[2];
static void absent_sender(spx_comm *c)
{
  static char big[1000000];
  char x = 0;
  spx_request *r;
  if (!spx_set.cma || JOB_SOCKETS) return;
  sync_up(c);
  if (c->rank == 0) {
    memset(big, 5, sizeof big);
    CHECK(spx_isend(big, sizeof big, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r) == 0);
    CHECK(read(pipe_ends[0], &x, 1) == 1); /* no progress here until the other has the message */
    CHECK(spx_wait(r) == 0);
    spx_request_free(r);
  } else {
    CHECK(come(c, big, sizeof big, 0, 1, NULL) == 0 && big[0] == 5 && big[sizeof big - 1] == 5);
    CHECK(write(pipe_ends[1], &x, 1) == 1);
  }
  sync_up(c);
}

static void body(spx_comm *c)
{
  absent_sender(c);
  posting_order(c);
  sync_up(c);
  sending_order(c);
  truncation(c);
  cancelling(c);
  buffered(c);
  sync_up(c);
  persistent(c);
  sync_up(c);
  control(c);
  sync_up(c);
  revoked(c);
}

int main(void)
{
  if (pipe(pipe_ends) != 0) return 1;
  int bad = run_job((job){.procs = 2}, body);
  bad += run_job((job){.procs = 2, .ring_bytes = 16384}, body);
  setenv("SPX_CMA", "0", 1);
  return bad + run_job((job){.procs = 2}, body) != 0;
}
