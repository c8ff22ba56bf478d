/* suite_traffic.h - messages between participants, in three ways, each numbered by itself, and the
 * checks of each arrival: that it is the next of its way, whole and unchanged.
 *
 *   records  one record each, by spx_tx_put, put_two, write, or as a request whose turn comes
 *            (spx_carried.send)
 *   texts    control messages, which pair.c cuts into pieces
 *   streams  long messages (spx_carried.more), which may pass records
 *
 * This file simulates the layer of sends and receives: what get.c and deliver.c do for a stream is
 * done here, no more. */
#ifndef SPX_TEST_SUITE_TRAFFIC_H
#define SPX_TEST_SUITE_TRAFFIC_H
#include "suite.h"

enum { STREAMS_MOST = 64, TEXT_MOST = 1 << 20 };

/* Of the test that runs. */
static length_fn *record_length, *text_length;
static uint64_t (*stream_length)(uint32_t from, uint32_t to, uint32_t k);

enum { RECORD = 1, TEXT, STREAM };
static uint64_t key_of(uint32_t way, uint32_t from, uint32_t to, uint32_t k, uint32_t life)
{
  return (uint64_t)way * 131071 + from * 8191 + to * 127 + (uint64_t)k * 3 + life * 524287;
}

/* By participant. */
static struct {
  uint32_t records, texts, streams;           /* sent; begun */
  uint32_t over;                              /* streams that are written */
  uint32_t heard, texts_heard, streams_heard; /* received, in order and whole; complete */
  uint32_t life;                              /* incarnations of it that are past */
  uint8_t *text;                              /* being put together */
  uint32_t text_n, text_size;
  spx_request *in[STREAMS_MOST], *out[STREAMS_MOST];
} with[MOST];

static uint32_t life_of(uint32_t participant) { return with[participant].life + 1; }

/* Steps of the sequence that a loss may strike (suite_loss.h). */
static void (*at_step)(const char *where);
static void step(const char *where)
{
  if (at_step) at_step(where);
}

static spx_tx *ready(uint32_t to)
{
  uint32_t peer = process_of(to);
  spx_tx *tx = &spx_txs[peer];
  if (tx->slow & SPX_TX_NEW) CHECK(spx_tx_init(peer) == MPI_SUCCESS && !(tx->slow & SPX_TX_NEW));
  return tx;
}

/* A longer record than a channel has goes through a ring. */
static bool takes_long(spx_tx *tx) { return tx->ring >= 0 || tx->by->widen(tx); }

/* ---- sending ---- */

static uint8_t *a_pattern(uint32_t way, uint32_t to, uint32_t k, uint64_t n)
{
  uint8_t *buf = malloc(n + 1);
  pattern_fill(buf, key_of(way, me, to, k, my_life), n);
  return buf;
}

static spx_request *a_send(uint32_t to, uint32_t k, uint8_t *buf, uint64_t n)
{
  spx_request *r = calloc(1, sizeof *r);
  r->kind = SPX_R_SEND;
  r->buf = buf;
  r->count = r->bytes = (int64_t)n;
  r->type = bytes_type;
  r->peer = process_of(to);
  r->tag = (int32_t)k;
  r->state = SPX_S_SENT;
  return r;
}

static spx_rec_words record_words(uint32_t k)
{
  return (spx_rec_words){.envelope = {.ctx = k, .tag = (int32_t)my_life, .src = (int32_t)me}};
}

static void drop_send(spx_request *r)
{
  memset(r->buf, 0xdd, (size_t)r->bytes); /* the buffer is its owner's again */
  free(r->buf);
  free(r);
}

/* spx_carried.send: as p2p.c, in small steps. */
static bool send_turn(spx_request *r)
{
  spx_tx *tx = &spx_txs[r->peer];
  uint32_t n = (uint32_t)r->bytes, bytes = SPX_REC_BYTES(n), half = n / 2;
  if (tx->ring < 0 && (bytes > SPX_LINE || spx_tx_warm(tx)))
    CHECK(tx->by->widen(tx) || bytes <= SPX_LINE);
  spx_rec *rec = spx_tx_room(tx, bytes);
  if (!rec) return false;
  step("there is room");
  spx_tx_fill(tx, rec, record_words((uint32_t)r->tag), n);
  memcpy(rec->data, r->buf, half);
  step("half of a record is written");
  memcpy(rec->data + half, (uint8_t *)r->buf + half, n - half);
  step("a record is written");
  spx_tx_commit(tx, rec, bytes, SPX_REC_EAGER);
  step("a record is committed");
  spx_bell_if_sleeping(tx->proc, r->peer);
  drop_send(r);
  return true;
}

typedef enum { PUT, PUT_TWO, QUEUE, WRITE, HOWS } how;

/* Record k, which is the next one, in one of the ways. */
static void say_by(uint32_t to, how h)
{
  spx_lock();
  uint32_t peer = process_of(to), k = with[to].records++, n = record_length(me, to, k);
  uint8_t *buf = a_pattern(RECORD, to, k, n);
  spx_tx *tx = ready(to);
  uint32_t life = with[to].life;
  bool dead = tx->slow & SPX_TX_DEAD;
  if (!dead && n > SPX_REC_INLINE && !takes_long(tx)) {
    UNTIL(with[to].life != life || takes_long(tx)); /* sends would be announced */
    dead = with[to].life != life;
  }
  if (dead) {
    free(buf);
  } else if (h == QUEUE && tx->full &&
             !tx->pend) { /* as a send: it waits only if there is no room */
    spx_request *r = a_send(to, k, buf, n);
    CHECK(send_turn(r) || spx_tx_queue_request(peer, r) == MPI_SUCCESS);
  } else if (h == QUEUE) {
    CHECK(spx_tx_queue_request(peer, a_send(to, k, buf, n)) == MPI_SUCCESS);
    spx_tx_drain();
  } else {
    uint32_t part = n / 3;
    bool written =
        h == WRITE && !tx->pend && spx_tx_write(peer, SPX_REC_EAGER, record_words(k), buf, n);
    if (h == PUT_TWO)
      spx_tx_put_two(peer, SPX_REC_EAGER, record_words(k), buf, part, buf + part, n - part);
    else if (!written)
      spx_tx_put(peer, SPX_REC_EAGER, record_words(k), buf, n);
    memset(buf, 0xdd, n);
    free(buf);
  }
  spx_unlock();
}

static void say(uint32_t to) { say_by(to, (how)(with[to].records % HOWS)); }

static void say_text(uint32_t to)
{
  spx_lock();
  uint32_t k = with[to].texts++, n = text_length(me, to, k);
  uint8_t *buf = a_pattern(TEXT, to, k, n);
  ready(to);
  spx_tx_put(process_of(to), SPX_REC_CTRL, (spx_rec_words){.piece.ctx = k}, buf, n);
  memset(buf, 0xdd, n);
  free(buf);
  spx_unlock();
}

static void say_stream(uint32_t to)
{
  spx_lock();
  uint32_t k = with[to].streams++;
  CHECK(k < STREAMS_MOST);
  uint64_t n = stream_length(me, to, k);
  spx_tx *tx = ready(to);
  if (!(tx->slow & SPX_TX_DEAD)) {
    spx_request *r = a_send(to, k, a_pattern(STREAM, to, k, n), n);
    r->out.end = n;
    r->out.to = (spx_name){me << 16 | k, my_life};
    with[to].out[k] = r;
    spx_tx_stream(r->peer, r);
    spx_tx_drain();
  }
  spx_unlock();
}

static void put_data(spx_tx *tx, spx_rec *rec, const spx_request *r, uint64_t at, uint32_t n)
{
  spx_tx_fill(tx, rec, (spx_rec_words){.stream = {0, r->out.to.index, r->out.to.gen}}, n);
  memcpy(rec->data, (const uint8_t *)r->buf + at, n);
  step("a piece is written");
  spx_tx_commit(tx, rec, SPX_REC_BYTES(n), SPX_REC_DATA);
}

static uint64_t stream_end(const spx_request *r) { return r->out.end; }

static bool stream_more(spx_tx *tx, spx_request *r, int *moved)
{
  while (r->out.at < r->out.end) {
    spx_long_result way = tx->conn ? spx_long_more(tx, r) : SPX_LONG_NOT;
    if (way == SPX_LONG_WAITS) return false;
    if (way == SPX_LONG_MOVED) {
      ++*moved;
      continue;
    }
    if (tx->ring < 0) tx->by->widen(tx);
    uint64_t at = r->out.at, n = r->out.end - at,
             most = tx->conn       ? SPX_NET_FRAGMENT
                    : tx->ring < 0 ? SPX_REC_INLINE
                                   : spx_set.fragment;
    if (n > most) n = most;
    spx_rec *rec = spx_tx_room(tx, SPX_REC_BYTES(n));
    if (!rec) return false;
    put_data(tx, rec, r, at, (uint32_t)n);
    if (!tx->conn || r->out.at + n == r->out.end) spx_bell_if_sleeping(tx->proc, r->peer);
    r->out.at += n;
    ++*moved;
  }
  return true;
}

static void stream_written(spx_request *r)
{
  uint32_t to = participant_of[r->peer];
  CHECK(r->out.at == r->out.end);
  with[to].out[r->tag] = NULL;
  with[to].over++;
  drop_send(r);
}

/* ---- receiving ---- */

/* No memory for so many records, now and then: they stay where they are, and are delivered
 * again. */
static uint32_t refusals;
static bool no_memory(void)
{
  static uint32_t n;
  return refusals && ++n % 3 == 1 && refusals--;
}

static void hear_record(uint32_t from, const spx_rec *rec)
{
  uint32_t k = with[from].heard++;
  if (rec->as.envelope.ctx != k)
    SAY("record %u from participant %u, not %u", (unsigned)rec->as.envelope.ctx, from, k);
  CHECK(rec->as.envelope.ctx == k);
  CHECK(rec->as.envelope.src == (int32_t)from && rec->as.envelope.tag == (int32_t)life_of(from));
  CHECK(rec->len == record_length(from, me, k));
  CHECK(pattern_is(rec->data, key_of(RECORD, from, me, k, life_of(from)), rec->len));
}

static void hear_piece(uint32_t from, const spx_rec *rec)
{
  uint32_t k = with[from].texts_heard, all = text_length(from, me, k);
  CHECK(rec->as.piece.ctx == k &&
        spx_piece_fits(rec, all - with[from].text_n, with[from].text_n > 0));
  if (!with[from].text) {
    with[from].text_size = rec->len + (uint32_t)rec->as.piece.more;
    CHECK(with[from].text_size == all);
    with[from].text = malloc(all + 1);
  }
  memcpy(with[from].text + with[from].text_n, rec->data, rec->len);
  with[from].text_n += rec->len;
  if (rec->as.piece.more) return;
  CHECK(with[from].text_n == all &&
        pattern_is(with[from].text, key_of(TEXT, from, me, k, life_of(from)), all));
  free(with[from].text);
  with[from].text = NULL;
  with[from].text_n = 0;
  with[from].texts_heard++;
}

/* spx_carried.sink: the receive is there when the first bytes come for it. */
static spx_request *stream_sink(uint32_t index, uint32_t gen)
{
  uint32_t from = index >> 16, k = index & 0xffff;
  if (from >= participants || k >= STREAMS_MOST || gen != life_of(from)) return NULL;
  spx_request *r = with[from].in[k];
  if (!r) {
    with[from].in[k] = r = calloc(1, sizeof *r);
    r->kind = SPX_R_RECV;
    r->type = bytes_type;
    r->peer = process_of(from);
    r->tag = (int32_t)k;
    r->count = r->bytes = (int64_t)stream_length(from, me, k);
    r->buf = malloc((size_t)r->bytes + 1);
    memset(r->buf, 0xee, (size_t)r->bytes + 1);
    r->state = SPX_S_DATA;
  }
  return r->state == SPX_S_DATA ? r : NULL;
}

/* As much as has come is the message's, and nothing was stored behind it. */
static void check_stream(const spx_request *r)
{
  uint32_t from = participant_of[r->peer];
  const uint8_t *buf = r->buf;
  CHECK(pattern_is(buf, key_of(STREAM, from, me, (uint32_t)r->tag, life_of(from)), r->in.at));
  CHECK(buf[r->bytes] == 0xee);
}

static void stream_came(spx_request *r, uint64_t n)
{
  r->in.at += n;
  CHECK(r->in.at <= (uint64_t)r->bytes);
  if (r->in.at < (uint64_t)r->bytes) return;
  check_stream(r);
  free(r->buf);
  r->buf = NULL;
  r->state = SPX_S_NONE;
  with[participant_of[r->peer]].streams_heard++;
}

static void hear_data(uint32_t from, const spx_rec *rec)
{
  if (rec->as.stream.index == UINT32_MAX) return; /* aborted: its send was taken back */
  spx_request *r = stream_sink(rec->as.stream.index, rec->as.stream.gen);
  CHECK(r && participant_of[r->peer] == from && rec->as.stream.bytes == 0 &&
        rec->len <= (uint64_t)r->bytes - r->in.at);
  memcpy((uint8_t *)r->buf + r->in.at, rec->data, rec->len);
  stream_came(r, rec->len);
}

static bool arrives(uint32_t peer, spx_rx *rx, const spx_rec *rec, uint32_t kind)
{
  uint32_t from = participant_of[peer];
  CHECK(rx == &spx_rxs[peer]);
  if (kind == SPX_REC_VIA) return spx_net_via(peer, rec);
  if (kind == SPX_REC_CLOSE) return spx_net_closes(peer, rec);
  CHECK(from < participants && me < participants && rec->len <= rec->valid - SPX_REC_HEADER);
  if (no_memory()) return false;
  switch (kind) {
  case SPX_REC_EAGER: hear_record(from, rec); break;
  case SPX_REC_CTRL: hear_piece(from, rec); break;
  case SPX_REC_DATA: hear_data(from, rec); break;
  default: SAY("a record of kind %u", kind); CHECK(!"it was sent");
  }
  step("a record is delivered");
  return true;
}

static const spx_carried carried = {.send = send_turn,
                                    .more = stream_more,
                                    .written = stream_written,
                                    .end = stream_end,
                                    .data = put_data,
                                    .sink = stream_sink,
                                    .came = stream_came};

static spx_request *queued(uint32_t process)
{
  for (const spx_txitem *it = spx_txs[process].pend; it; it = it->next)
    if (it->r) return it->r;
  return NULL;
}

/* A dump for finding out why a record does not arrive. */
static void show_state(void)
{
  fprintf(stderr, "  %s process %u, life %u: told %u connect %u closed %u lost %u lent %u shut\n",
          case_name, spx_me, my_life, told.connect, told.closed, told.lost, told.handed, told.shut);
  for (uint32_t p = 0; spx_txs && p < processes; p++) {
    const spx_tx *tx = &spx_txs[p];
    const spx_conn *c = spx_net.conns ? spx_net.conns[p] : NULL;
    uint32_t participant = participant_of[p];
    if (p == spx_me) continue;
    fprintf(stderr,
            "  %s process %u, to process %u: slow %u, pend %d, stream %d, pos %u, head-tail %u",
            case_name, spx_me, p, tx->slow, tx->pend != NULL, tx->stream != NULL, tx->pos,
            (unsigned)(tx->head - tx->tail));
    if (participant < MOST)
      fprintf(stderr, "; said %u/%u/%u, %u over, heard %u/%u/%u", with[participant].records,
              with[participant].texts, with[participant].streams, with[participant].over,
              with[participant].heard, with[participant].texts_heard,
              with[participant].streams_heard);
    if (c)
      fprintf(stderr, "; %u sockets, done %u got %u lent %u closing %d asked %d", taken[p], c->done,
              c->got, c->handed, c->closing, c->asked);
    if (c)
      fprintf(stderr,
              "; fd %d flushed %u sent %u in %u-%u stalled %d over %d full %d busy %d gathered %d",
              c->fd, c->flushed, c->sent, c->in_at, c->in_end, c->stalled, c->over, c->full,
              c->busy, c->gathered);
    fprintf(stderr, "\n");
  }
}

/* ---- the end of a pair ---- */

/* Takes sends that wait for room out of the pair's queue: as fail.c before the pair is
 * abandoned. */
static void drop_queued(uint32_t process)
{
  for (spx_request *r; (r = queued(process));) {
    CHECK(spx_tx_unqueue(process, r) == 1);
    drop_send(r);
  }
}

/* Drops messages sent to a participant in vain, and half-received ones; received ones are checked
 * once more. */
static void drop_traffic(uint32_t participant)
{
  drop_queued(process_of(participant));
  for (int k = 0; k < STREAMS_MOST; k++) {
    spx_request *in = with[participant].in[k], *out = with[participant].out[k];
    if (in && in->buf) check_stream(in);
    if (in) free(in->buf);
    free(in);
    with[participant].in[k] = NULL;
    if (!out) continue;
    spx_tx_unqueue(process_of(participant), out);
    drop_send(out);
    with[participant].out[k] = NULL;
  }
  free(with[participant].text);
  with[participant].text = NULL;
}

static uint32_t heard_at_death[MOST]; /* records, by participant */
static void forget_traffic(uint32_t process)
{
  uint32_t participant = participant_of[process],
           life = participant < MOST ? with[participant].life : 0;
  if (participant == MOST) return;
  drop_traffic(participant);
  heard_at_death[participant] = with[participant].heard;
  memset(&with[participant], 0, sizeof with[participant]);
  with[participant].life = life + 1;
}
#endif
