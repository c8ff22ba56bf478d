/* Long messages over several streams (net_streams.c): random traffic of which much goes over three
 * further ones; a peer that is played by hand and sends portions in any order and cut anywhere;
 * sends and receives that are over while portions are under way; deaths; portions that are not
 * sound. */
// sanitize: address,undefined thread
// timeout: 400
#define JOB_SOCKETS 1
#define JOB_FURTHER 3
#include "job.h"
#include "net_conn.h"

enum { MOST = 6 << 20, MESSAGES = 16, PORTION = 1 << 20 };
static uint32_t messages = MESSAGES;
static uint64_t dice = 7;

static uint8_t byte_of(uint64_t message, uint64_t i)
{
  return (uint8_t)(message * 37 + i * 11 + (i >> 9));
}

typedef struct {
  spx_type *type;
  int64_t count;
  uint64_t bytes;
} shape;

/* A message, and how much of it its receive has room for. */
static shape shape_of(uint32_t message, bool receive)
{
  static spx_type *forms[3]; /* pieces that are read into, and pieces that are not */
  uint64_t s = message;
  rnd(&s);
  if (!forms[0])
    forms[0] = job_bytes, forms[1] = job_vector(3, 5000, 6001), forms[2] = job_vector(100, 24, 40);
  shape h = {.type = forms[rnd(&s) % 3]};
  uint64_t bytes = 100000 + rnd(&s) % (MOST - 100000);
  spx_type *other = forms[rnd(&s) % 3];
  bool cut = rnd(&s) % 5 == 0;
  if (receive) h.type = other;
  h.count = (int64_t)(bytes / (uint64_t)h.type->size);
  if (receive && !cut) h.count += 1 + 15000 / h.type->size;
  if (receive && cut) h.count = h.count / 3 + 1;
  h.bytes = (uint64_t)(h.count * h.type->size);
  return h;
}

/* All send to all at once. */
static void exchange(spx_comm *c)
{
  for (uint32_t m = 0; m < messages; m++) {
    spx_request *out[8], *in[8];
    uint8_t *from[8], *to[8];
    for (int k = 0; k < c->size; k++) {
      if (k == c->rank) continue;
      shape s = shape_of(m * 64 + (uint32_t)(c->rank * 8 + k), false),
            r = shape_of(m * 64 + (uint32_t)(k * 8 + c->rank), true);
      uint8_t *packed = malloc(s.bytes);
      for (uint64_t i = 0; i < s.bytes; i++) packed[i] = byte_of(m + (uint64_t)c->rank, i);
      from[k] = malloc((size_t)(s.count * s.type->extent));
      to[k] = malloc((size_t)(r.count * r.type->extent) + 1);
      memset(to[k], 0xee, (size_t)(r.count * r.type->extent) + 1);
      spx_unpack(from[k], s.count, s.type, 0, (int64_t)s.bytes, packed);
      free(packed);
      CHECK(spx_irecv(to[k], r.count, r.type, k, 1, c, SPX_CTX_P2P, 0, &in[k]) == 0);
      CHECK(spx_isend(from[k], s.count, s.type, k, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &out[k]) ==
            0);
    }
    for (int k = 0; k < c->size; k++) {
      if (k == c->rank) continue;
      shape s = shape_of(m * 64 + (uint32_t)(k * 8 + c->rank), false),
            r = shape_of(m * 64 + (uint32_t)(k * 8 + c->rank), true);
      uint64_t n = s.bytes < r.bytes ? s.bytes : r.bytes;
      CHECK(spx_wait(in[k]) == (s.bytes > r.bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS) &&
            in[k]->bytes == (int64_t)n);
      CHECK(spx_wait(out[k]) == 0);
      uint8_t *packed = malloc(r.bytes);
      spx_pack(to[k], r.count, r.type, 0, (int64_t)r.bytes, packed);
      for (uint64_t i = 0; i < r.bytes; i++)
        CHECK(packed[i] == (i < n ? byte_of(m + (uint64_t)k, i) : 0xee));
      CHECK(to[k][r.count * r.type->extent] == 0xee);
      free(packed);
      spx_request_free(in[k]);
      spx_request_free(out[k]);
      free(from[k]);
      free(to[k]);
    }
  }
  barrier(c);
  CHECK(spx_stat.net_further > messages * (64 << 10) && spx_stat.net_refused == 0);
}

/* A process dies in the middle of its messages: its peers' requests end, no buffer of them is
 * written later. */
static int second_dies(uint32_t i) { return i == 1; }
static void death(spx_comm *c)
{
  enum { BYTES = 8 << 20 };
  uint8_t *from = calloc(1, BYTES), *to = calloc(1, BYTES);
  spx_request *out, *in;
  for (int m = 0;; m++) {
    CHECK(spx_irecv(to, BYTES, job_bytes, !c->rank, 1, c, SPX_CTX_P2P, 0, &in) == 0);
    CHECK(spx_isend(from, BYTES, job_bytes, !c->rank, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &out) ==
          0);
    for (int i = 0; c->rank == 1 && m == 2 && i < 3; i++) job_serve();
    if (c->rank == 1 && m == 2) kill(getpid(), SIGKILL);
    int a = spx_wait(in), b = spx_wait(out);
    spx_request_free(in);
    spx_request_free(out);
    if (a || b) break;
  }
  CHECK(spx_n_further == 0);
  memset(from, 1, BYTES);
  free(from);
  free(to);
}

/* ---- a peer that is played: process 1 reads and writes its sockets itself ---- */

typedef struct {
  uint32_t magic, n, index, gen;
  uint64_t at, none;
} head;

static int ends[JOB_FURTHER]; /* of the streams to process 0 */

static void write_all(int fd, const void *data, size_t n)
{
  for (size_t at = 0; at < n;) {
    size_t k = 1 + rnd(&dice) % 50000;
    ssize_t sent = write(fd, (const char *)data + at, k < n - at ? k : n - at);
    CHECK(sent > 0);
    at += (size_t)sent;
  }
}

static void read_all(int fd, void *to, size_t n)
{
  for (size_t at = 0; at < n;) {
    ssize_t got = read(fd, (char *)to + at, n - at);
    CHECK(got > 0);
    at += (size_t)got;
  }
}

static uint32_t said;
static void say(spx_rec_kind kind, uint64_t ctx, uint32_t tag, uint32_t src, const void *data,
                uint32_t len)
{
  static _Alignas(64) uint8_t text[65536 + 64];
  spx_rec *rec = (spx_rec *)text;
  memset(rec, 0, SPX_REC_BYTES(len));
  *rec = (spx_rec){.valid = SPX_REC_BYTES(len),
                   .kind = (uint16_t)kind,
                   .epoch = 1,
                   .as.envelope = {ctx, (int32_t)tag, (int32_t)src},
                   .seq = said++,
                   .len = len};
  if (len) memcpy(rec->data, data, len);
  write_all(job_ends[1][0], text, SPX_REC_BYTES(len));
}

static spx_rec *hear(spx_rec_kind kind)
{
  static _Alignas(64) uint8_t heard[65536];
  spx_rec *rec = (spx_rec *)heard;
  do {
    read_all(job_ends[1][0], heard, sizeof *rec);
    CHECK(rec->valid >= 64 && rec->valid <= sizeof heard);
    read_all(job_ends[1][0], heard + sizeof *rec, rec->valid - sizeof *rec);
  } while (rec->kind != kind);
  return rec;
}

static spx_rec_cts announce(const spx_comm *c, uint64_t bytes)
{
  spx_rec_rts rts = {.index = 7, .gen = 1, .bytes = bytes};
  spx_rec_cts cts;
  say(SPX_REC_RTS, c->ctx + SPX_CTX_P2P, 1, 1, &rts, sizeof rts);
  const spx_rec *rec = hear(SPX_REC_CTS);
  CHECK(rec->as.cts.how == SPX_CTS_FURTHER);
  memcpy(&cts, rec->data, sizeof cts);
  return cts;
}

static void portion(int stream, const spx_rec_cts *cts, uint32_t message, uint64_t at, uint32_t n,
                    uint64_t seal)
{
  head h = {.magic = 0x50585053u, .n = n, .index = cts->rx_index, .gen = cts->rx_gen, .at = at};
  uint8_t *data = malloc(n);
  for (uint32_t i = 0; i < n; i++) data[i] = byte_of(message, at + i);
  write_all(ends[stream], &h, sizeof h);
  write_all(ends[stream], data, n);
  write_all(ends[stream], &seal, sizeof seal);
  free(data);
}

static void beginning(const spx_rec_cts *cts, uint32_t message, uint64_t n)
{
  static uint8_t piece[32000];
  for (uint64_t at = 0; at < n;) {
    uint32_t k = n - at < sizeof piece ? (uint32_t)(n - at) : sizeof piece;
    for (uint32_t i = 0; i < k; i++) piece[i] = byte_of(message, at + i);
    say(SPX_REC_DATA, 0, cts->rx_index, cts->rx_gen, piece, k);
    at += k;
  }
}

static void play(void)
{
  for (int s = 0; s < JOB_FURTHER; s++) ends[s] = job_further[s][1][0][0];
}

/* Portions that come before or after the beginning, and one for a receive that is over. */
static void by_hand(spx_comm *c)
{
  enum { BYTES = 3000000, ROUNDS = 12 };
  if (c->rank == 0) {
    uint8_t *buf = malloc(BYTES);
    for (uint32_t m = 0; m < ROUNDS; m++) {
      MPI_Status st;
      memset(buf, 0xee, BYTES);
      CHECK(spx_recv(buf, BYTES, job_bytes, 1, 1, c, SPX_CTX_P2P, &st) == 0);
      for (uint64_t i = 0; i < BYTES; i++) CHECK(buf[i] == byte_of(m, i));
    }
    free(buf);
    return;
  }
  play();
  spx_rec_cts cts = {0};
  for (uint32_t m = 0; m < ROUNDS; m++) {
    spx_rec_cts before = cts;
    cts = announce(c, BYTES);
    if (m) portion(0, &before, m + 100, 5, 1000, 1);
    uint64_t end = BYTES;
    bool first = m % 2;
    if (first) beginning(&cts, m, BYTES - 2500000);
    for (uint32_t k = 0; end > BYTES - 2500000; k++) {
      uint32_t n = 1 + rnd(&dice) % PORTION;
      if (n > end - (BYTES - 2500000)) n = (uint32_t)(end - (BYTES - 2500000));
      portion((int)(rnd(&dice) % JOB_FURTHER), &cts, m, end -= n, n, 1);
    }
    if (!first) beginning(&cts, m, BYTES - 2500000);
  }
}

/* A portion that is aborted does not count; a receive that is over is not written to any more. */
static void over(spx_comm *c)
{
  enum { BYTES = 2000000 };
  static uint8_t buf[BYTES];
  spx_comm *other = job_comm(64, NULL, 2, c->rank);
  uint32_t value = 0;
  MPI_Status st;
  if (c->rank == 0) {
    spx_request *r;
    CHECK(spx_irecv(buf, BYTES, job_bytes, 1, 1, other, SPX_CTX_P2P, 0, &r) == 0);
    CHECK(spx_recv(&value, 4, job_bytes, 1, 9, c, SPX_CTX_P2P, &st) == 0 && value == 76);
    for (int i = 0; i < 20; i++) job_serve();
    CHECK(!spx_is_done(r));
    other->revoked = 1;
    spx_comm_revoked(other);
    CHECK(spx_wait(r) == MPIX_ERR_REVOKED);
    spx_request_free(r);
    memset(buf, 0xee, BYTES);
    CHECK(spx_send(&value, 4, job_bytes, 1, 9, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    CHECK(spx_recv(&value, 4, job_bytes, 1, 9, c, SPX_CTX_P2P, &st) == 0 && value == 77);
    for (int i = 0; i < BYTES; i++) CHECK(buf[i] == 0xee);
    return;
  }
  play();
  spx_rec_cts cts = announce(other, BYTES);
  portion(0, &cts, 1, 1000000, 1000000, 2);
  beginning(&cts, 1, 1000000);
  value = 76;
  say(SPX_REC_EAGER, c->ctx + SPX_CTX_P2P, 9, 1, &value, 4);
  head h = {
      .magic = 0x50585053u, .n = 500000, .index = cts.rx_index, .gen = cts.rx_gen, .at = 1000000};
  write_all(ends[1], &h, sizeof h);
  write_all(ends[1], buf, 100000);
  hear(SPX_REC_EAGER);
  write_all(ends[1], buf, 400000);
  uint64_t seal = 1;
  write_all(ends[1], &seal, sizeof seal);
  portion(2, &cts, 1, 1000000, 500000, 1);
  usleep(20000);
  value = 77;
  say(SPX_REC_EAGER, c->ctx + SPX_CTX_P2P, 9, 1, &value, 4);
}

/* A send is over while its portions go: zeros take the place of the rest, and the seal marks
 * that. */
static void send_over(spx_comm *c)
{
  enum { BYTES = 8 << 20 };
  static uint8_t buf[BYTES];
  spx_comm *other = job_comm(128, NULL, 2, c->rank);
  if (c->rank == 0) {
    spx_request *r;
    memset(buf, 1, BYTES);
    CHECK(spx_isend(buf, BYTES, job_bytes, 1, 1, other, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r) == 0);
    while (r->state != SPX_S_STREAM) job_serve();
    while (!spx_further_busy(spx_net.conns[1], r)) job_serve();
    other->revoked = 1;
    spx_comm_revoked(other);
    CHECK(spx_wait(r) == MPIX_ERR_REVOKED && !spx_further_busy(spx_net.conns[1], r));
    spx_request_free(r);
    memset(buf, 0x54, BYTES);
    atomic_store(&job_done[1], 1);
    return;
  }
  play();
  spx_rec_rts rts;
  memcpy(&rts, hear(SPX_REC_RTS)->data, sizeof rts);
  spx_rec_cts cts = {
      .index = rts.index, .gen = rts.gen, .rx_index = 3, .rx_gen = 4, .bytes = rts.bytes};
  say(SPX_REC_CTS, 0, SPX_CTS_FURTHER, 0, &cts, sizeof cts);
  while (!atomic_load(&job_done[1])) usleep(100); /* the other end has revoked */
  bool aborted = false;
  for (int s = 0; s < JOB_FURTHER; s++) {
    int fd = job_further[s][0][1][1];
    head h;
    uint64_t seal, i = 0;
    read_all(fd, &h, sizeof h);
    CHECK(h.magic == 0x50585053u && h.index == 3 && h.gen == 4 && h.n <= PORTION &&
          h.at + h.n <= BYTES);
    read_all(fd, buf, h.n);
    read_all(fd, &seal, sizeof seal);
    while (i < h.n && buf[i] == 1) i++;
    CHECK(seal == (i < h.n ? 2 : 1));
    aborted |= seal == 2;
    while (i < h.n) CHECK(buf[i++] == 0);
  }
  CHECK(aborted);
  char rest[65536];
  while (read(job_ends[1][0], rest, sizeof rest) > 0) {}
}

/* Malformed input ends the connection, and nothing else. */
static head bad;
static uint64_t bad_seal;
static void unsound(spx_comm *c)
{
  enum { BYTES = 1000000 };
  static uint8_t buf[BYTES];
  if (c->rank == 0) {
    spx_request *r;
    CHECK(spx_irecv(buf, BYTES, job_bytes, 1, 1, c, SPX_CTX_P2P, 0, &r) == 0);
    while (spx_stat.net_refused == 0) job_serve();
    CHECK(!spx_is_done(r) && spx_n_further == 0);
    return;
  }
  play();
  spx_rec_cts cts = announce(c, BYTES);
  head h = bad;
  h.index = cts.rx_index;
  h.gen = cts.rx_gen;
  write_all(ends[0], &h, sizeof h);
  if (bad_seal) {
    write_all(ends[0], buf, h.n);
    write_all(ends[0], &bad_seal, sizeof bad_seal);
  }
  char end;
  while (read(job_ends[1][0], &end, 1) > 0) {}
}

int main(void)
{
  enum { MAGIC = 0x50585053 };
  static const head heads[] = {
      {.magic = MAGIC + 1, .n = 64},
      {.magic = MAGIC, .n = 0},
      {.magic = MAGIC, .n = PORTION + 1},
      {.magic = MAGIC, .n = 64, .none = 1},
      {.magic = MAGIC, .n = 64, .at = 1000000 - 63},
      {.magic = MAGIC, .n = 64, .at = UINT64_MAX - 10},
      {.magic = MAGIC, .n = 1000001},
  };
  int wrong = 0;
  messages = (uint32_t)full_or(MESSAGES, 2);
  setenv("SPX_STREAMS", "4", 1);
  wrong += run_job((job){.procs = 2}, exchange) + run_job((job){.procs = 3}, exchange);
  wrong += run_job((job){.procs = 2, .killed = second_dies}, death);
  wrong += run_job((job){.procs = 2}, by_hand) + run_job((job){.procs = 2}, over) +
           run_job((job){.procs = 2}, send_over);
  for (unsigned i = 0; i < sizeof heads / sizeof *heads; i++) {
    bad = heads[i];
    wrong += run_job((job){.procs = 2}, unsound);
  }
  bad = (head){.magic = MAGIC, .n = 1000};
  bad_seal = 3;
  wrong += run_job((job){.procs = 2}, unsound);
  return wrong != 0;
}
