/* Long messages between buffers and sockets (net_long.c): traffic of which nearly all goes that
 * way; a peer that is played by hand and cuts what it sends anywhere; sends and receives that are
 * over while bytes are under way; records that are not sound. */
// sanitize: address,undefined
// timeout: 240
#define JOB_SOCKETS 1
#define main        main_of_traffic
#include "traffic.c"
#include "net_long.h"
#undef main
#ifndef MAIN /* of a test that has this as a part */
#define MAIN main
#endif

enum { MOST = 3 << 20, STREAMS = 60 };
static _Alignas(
    64) uint8_t text[2 * MOST + (1 << 20)]; /* the data that the simulated peer writes at once */
static uint32_t text_n, said;
static uint64_t dice = 42;

static uint8_t byte_of(uint64_t message, uint64_t i)
{
  return (uint8_t)(message * 37 + i * 11 + (i >> 9));
}

/* ---- the peer that is played: process 1, which never takes its connection, but writes and reads
 * the socket itself ---- */

static void say(spx_rec_kind kind, uint64_t ctx, uint32_t tag, uint32_t src, const void *data,
                uint32_t len)
{
  spx_rec *rec = (spx_rec *)(text + text_n);
  memset(rec, 0, SPX_REC_BYTES(len));
  *rec = (spx_rec){.valid = SPX_REC_BYTES(len),
                   .kind = (uint16_t)kind,
                   .epoch = 1,
                   .as.envelope = {ctx, (int32_t)tag, (int32_t)src},
                   .seq = said++,
                   .len = len};
  if (len) memcpy(rec->data, data, len);
  text_n += SPX_REC_BYTES(len);
}

static void write_text(bool in_bits)
{
  for (uint32_t at = 0, n; at < text_n; at += n) {
    n = in_bits ? 1 + rnd(&dice) % (rnd(&dice) % 2 ? 200 : 70000) : text_n - at;
    if (n > text_n - at) n = text_n - at;
    ssize_t sent = write(job_ends[1][0], text + at, n);
    CHECK(sent > 0);
    n = (uint32_t)sent;
  }
  text_n = 0;
}

static void read_all(void *to, size_t n)
{
  for (size_t at = 0; at < n;) {
    ssize_t got = read(job_ends[1][0], (char *)to + at, n - at);
    CHECK(got > 0);
    at += (size_t)got;
  }
}

/* The next record of this kind; others are skipped. */
static spx_rec *hear(spx_rec_kind kind)
{
  static _Alignas(64) uint8_t heard[65536];
  spx_rec *rec = (spx_rec *)heard;
  do {
    read_all(heard, sizeof *rec);
    CHECK(rec->valid >= 64 && rec->valid <= sizeof heard);
    read_all(heard + sizeof *rec, rec->valid - sizeof *rec);
  } while (rec->kind != kind);
  return rec;
}

static spx_rec_cts announce(const spx_comm *c, int tag, uint64_t bytes)
{
  spx_rec_rts rts = {.index = 7, .gen = 1, .bytes = bytes};
  spx_rec_cts cts;
  say(SPX_REC_RTS, c->ctx + SPX_CTX_P2P, (uint32_t)tag, 1, &rts, sizeof rts);
  write_text(false);
  memcpy(&cts, hear(SPX_REC_CTS)->data, sizeof cts);
  return cts;
}

static void eager(const spx_comm *c, int tag, uint32_t value)
{
  say(SPX_REC_EAGER, c->ctx + SPX_CTX_P2P, (uint32_t)tag, 1, &value, sizeof value);
}

static void fill(uint64_t message, uint64_t from, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) text[text_n + i] = byte_of(message, from + i);
  text_n += n;
}

/* A message in pieces of both kinds, with other records between them. */
static void play_stream(const spx_comm *c, uint32_t message, uint64_t bytes)
{
  static uint8_t piece[32000];
  spx_rec_cts cts = announce(c, 1, bytes);
  CHECK(cts.bytes <= bytes);
  for (uint64_t at = 0; at < cts.bytes;) {
    uint64_t left = cts.bytes - at;
    if (rnd(&dice) % 3 == 0) eager(c, 2, message);
    if (left >= 64 && rnd(&dice) % 3) {
      uint32_t n =
          (uint32_t)(left < SPX_LONG_MOST ? left : SPX_LONG_MOST) / (1 + rnd(&dice) % 4) / 64 * 64;
      if (n == 0) continue;
      say(SPX_REC_LONG, n, cts.rx_index, cts.rx_gen, NULL, 0);
      fill(message, at, n);
      at += n;
    } else {
      uint32_t n = 1 + rnd(&dice) % sizeof piece;
      if (n > left) n = (uint32_t)left;
      for (uint32_t i = 0; i < n; i++) piece[i] = byte_of(message, at + i);
      say(SPX_REC_DATA, 0, cts.rx_index, cts.rx_gen, piece, n);
      at += n;
    }
  }
  eager(c, 3, message);
  write_text(true);
}

/* ---- what both ends agree on about the streams ---- */

typedef struct {
  spx_type *type;
  int64_t count;
  uint64_t room, bytes; /* of the receive; of the message */
} shape;

static shape shape_of(uint32_t message)
{
  static spx_type *forms[3]; /* pieces that are read into, and pieces that are not */
  uint64_t s = message;
  rnd(&s);
  if (!forms[0])
    forms[0] = job_bytes, forms[1] = job_vector(3, 5000, 6001), forms[2] = job_vector(100, 24, 40);
  shape h = {.type = forms[rnd(&s) % 3],
             .bytes = 20000 + rnd(&s) % (rnd(&s) % 4 ? 300000 : MOST - 20000)};
  h.count = (int64_t)(h.bytes + (uint64_t)h.type->size - 1) / h.type->size;
  if (rnd(&s) % 5 == 0) h.count -= h.count / 3 < 1 ? 0 : h.count / 3; /* truncated */
  h.room = (uint64_t)(h.count * h.type->size);
  return h;
}

static void receive_stream(spx_comm *c, uint32_t message)
{
  shape h = shape_of(message);
  uint64_t size = (uint64_t)(h.count * h.type->extent), n = h.bytes < h.room ? h.bytes : h.room;
  uint8_t *buf = malloc(size + 1), *packed = malloc(h.room);
  spx_request *r;
  memset(buf, 0xee, size + 1);
  CHECK(spx_irecv(buf, h.count, h.type, 1, 1, c, SPX_CTX_P2P, 0, &r) == 0);
  CHECK(spx_wait(r) == (h.bytes > h.room ? MPI_ERR_TRUNCATE : MPI_SUCCESS) &&
        r->bytes == (int64_t)n);
  spx_request_free(r);
  spx_pack(buf, h.count, h.type, 0, (int64_t)h.room, packed);
  for (uint64_t i = 0; i < h.room; i++) CHECK(packed[i] == (i < n ? byte_of(message, i) : 0xee));
  CHECK(buf[size] == 0xee);
  uint32_t value;
  MPI_Status st;
  CHECK(spx_recv(&value, 4, job_bytes, 1, 3, c, SPX_CTX_P2P, &st) == 0 && value == message);
  for (;;) {
    int there = 0;
    CHECK(spx_iprobe(1, 2, c, SPX_CTX_P2P, &there, &st, NULL) == 0);
    if (!there) break;
    CHECK(spx_recv(&value, 4, job_bytes, 1, 2, c, SPX_CTX_P2P, &st) == 0 && value == message);
  }
  free(buf);
  free(packed);
}

static void streams(spx_comm *c)
{
  for (uint32_t m = 0; m < STREAMS; m++)
    if (c->rank == 0)
      receive_stream(c, m);
    else
      play_stream(c, m, shape_of(m).bytes);
}

static void until_moved(spx_request *r, uint64_t bytes)
{
  while (r->kind == SPX_R_SEND ? r->out.at < bytes : r->state != SPX_S_DATA || r->in.at < bytes)
    job_serve();
}

/* A receive is over while bytes for it come: its buffer stays as it is, and what comes later is not
 * disturbed. */
static void receive_over(spx_comm *c)
{
  enum { BYTES = 500032, FIRST = 200000 };
  static uint8_t buf[BYTES];
  spx_comm *other = job_comm(64, NULL, 2, c->rank);
  uint32_t value = 0;
  MPI_Status st;
  if (c->rank == 0) {
    spx_request *r;
    CHECK(spx_irecv(buf, BYTES, job_bytes, 1, 1, other, SPX_CTX_P2P, 0, &r) == 0);
    until_moved(r, FIRST);
    other->revoked = 1;
    spx_comm_revoked(other);
    CHECK(spx_wait(r) == MPIX_ERR_REVOKED);
    spx_request_free(r);
    memset(buf, 0xee, BYTES);
    CHECK(spx_send(&value, 4, job_bytes, 1, 9, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    CHECK(spx_recv(&value, 4, job_bytes, 1, 9, c, SPX_CTX_P2P, &st) == 0 && value == 77);
    for (int i = 0; i < BYTES; i++) CHECK(buf[i] == 0xee);
  } else {
    spx_rec_cts cts = announce(other, 1, BYTES);
    say(SPX_REC_LONG, BYTES - 64, cts.rx_index, cts.rx_gen, NULL, 0);
    fill(1, 0, FIRST);
    write_text(false);
    hear(SPX_REC_EAGER);
    fill(1, FIRST, BYTES - 64 - FIRST);
    say(SPX_REC_DATA, 0, cts.rx_index, cts.rx_gen, buf, 64);
    eager(c, 9, 77);
    write_text(true);
  }
}

/* A send is over while its bytes go: its buffer is not read any more, and its receiver never gets
 * all. */
static void send_over(spx_comm *c)
{
  enum { BYTES = 1000000, FIRST = 100000 };
  static uint8_t buf[BYTES];
  spx_comm *other = job_comm(128, NULL, 2, c->rank);
  uint32_t value = 5;
  if (c->rank == 0) {
    spx_request *r;
    for (int i = 0; i < BYTES; i++) buf[i] = (uint8_t)(byte_of(1, (uint64_t)i) | 1);
    CHECK(spx_isend(buf, BYTES, job_bytes, 1, 1, other, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r) == 0);
    until_moved(r, FIRST);
    CHECK(r->out.at < BYTES);
    other->revoked = 1;
    spx_comm_revoked(other);
    CHECK(spx_wait(r) == MPIX_ERR_REVOKED);
    spx_request_free(r);
    memset(buf, 0x54, BYTES);
    atomic_store(&job_done[1], 1);
    CHECK(spx_send(&value, 4, job_bytes, 1, 9, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    return;
  }
  spx_rec_rts rts;
  memcpy(&rts, hear(SPX_REC_RTS)->data, sizeof rts);
  spx_rec_cts cts = {
      .index = rts.index, .gen = rts.gen, .rx_index = 3, .rx_gen = 4, .bytes = rts.bytes};
  say(SPX_REC_CTS, 0, 0, 0, &cts, sizeof cts);
  write_text(false);
  const spx_rec *rec = hear(SPX_REC_LONG);
  uint32_t n = (uint32_t)rec->as.stream.bytes, i = 0;
  CHECK(rts.bytes == BYTES && n < BYTES && rec->as.stream.index == 3 && rec->as.stream.gen == 4);
  read_all(buf, FIRST);
  while (!atomic_load(&job_done[1])) usleep(100); /* the other end has revoked */
  read_all(buf + FIRST, n - FIRST);
  while (i < n && buf[i] == (uint8_t)(byte_of(1, i) | 1)) i++;
  CHECK(i >= FIRST && i < n);
  while (i < n) CHECK(buf[i++] == 0);
  rec = hear(SPX_REC_DATA);
  CHECK(rec->as.stream.index == UINT32_MAX);
  hear(SPX_REC_EAGER);
}

/* Malformed input ends the connection, and nothing else. */
static uint32_t bad_bytes;
static void unsound(spx_comm *c)
{
  enum { BYTES = 100000 };
  static uint8_t buf[BYTES];
  if (c->rank == 0) {
    spx_request *r;
    CHECK(spx_irecv(buf, BYTES, job_bytes, 1, 1, c, SPX_CTX_P2P, 0, &r) == 0);
    while (spx_stat.net_refused == 0) job_serve();
    CHECK(!spx_is_done(r));
  } else {
    spx_rec_cts cts = announce(c, 1, BYTES);
    char end;
    say(SPX_REC_LONG, bad_bytes, cts.rx_index, cts.rx_gen, NULL, 0);
    write_text(false);
    while (read(job_ends[1][0], &end, 1) > 0) {}
  }
}

int MAIN(void)
{
  static void (*const parts[])(spx_comm *) = {streams, receive_over, send_over};
  static const uint32_t bad[] = {0, 63, 100032, 2 * SPX_LONG_MOST};
  int wrong = 0;
  for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
    wrong += run_job((job){.procs = 2}, parts[i]);
  for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
    bad_bytes = bad[i];
    wrong += run_job((job){.procs = 2}, unsound);
  }
  setenv("SPX_DIRECT_MIN", "100", 1);
  setenv("SPX_EAGER_MAX", "1000", 1);
  wrong += run_job((job){.procs = 2}, body) + run_job((job){.procs = 4}, body);
  (void)main_of_traffic;
  return wrong != 0;
}
