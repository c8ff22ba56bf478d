/* stream.c - announced messages: the sender writes the data (DATA records), as their receiver has
 * asked: through the ring, or over a connection, where they also go straight from the user's
 * buffer (LONG, net_long.c), over several streams (net_streams.c), or from buffers on their way
 * (spx_bulk). The states of both ends are in get.c, which decides whether a message is streamed.
 */
#include <stddef.h>
#include "dp.h"
#include "get.h"
#include "net_long.h"
#include "net_streams.h"
#include "other_way.h"

#define TIME_EVERY 16 /* one of so many copies out of a ring is timed */

static uint64_t stream_end(const spx_request *r)
{
  uint64_t end = r->out.end;
  if (SPX_LIKELY(!(r->flags & SPX_RF_PASS))) return end;
  uint64_t there = spx_bulk_of(r)->there(r);
  return there < end ? there : end;
}

/* A stream has flowed as far as it may. True: it is over; else it pauses. */
static bool is_over(spx_request *r)
{
  if (r->out.at >= (r->flags & SPX_RF_PARTS ? (uint64_t)r->bytes : r->out.end)) return true;
  r->state = SPX_S_PAUSED;
  return false;
}

int spx_stream_resume(spx_request *r)
{
  if (r->state != SPX_S_PAUSED || r->out.at >= stream_end(r)) return 0;
  spx_tx_stream(r->peer, r);
  spx_tx_drain();
  return 1;
}

/* The next part of a message. */
static void stream_part(spx_request *r, const spx_rec_cts *cts)
{
  uint64_t end = cts->bytes < (uint64_t)r->bytes ? cts->bytes : (uint64_t)r->bytes;
  if (!spx_is_asked_by(r, cts) || end <= r->out.end) return;
  r->out.end = end;
  spx_stream_resume(r);
}

void spx_stream_start(spx_request *r, const spx_rec_cts *cts, int32_t ask)
{
  bool part = ask == SPX_CTS_PART, kept = r->flags & SPX_RF_KEPT;
  if (SPX_UNLIKELY(kept)) spx_other->asked(r, cts);
  if (part && (r->state == SPX_S_STREAM || r->state == SPX_S_PAUSED)) stream_part(r, cts);
  if (r->state != SPX_S_SENT || ((r->flags & SPX_RF_PASS) && spx_bulk_of(r)->asked(r, cts))) return;
  if (!spx_get_first_to_end(spx_me, cts->index, cts->gen) && !kept)
    return; /* it has it all, DONE will say so; the buffer may be freed */
  r->out.at = 0;
  r->out.to = (spx_name){cts->rx_index, cts->rx_gen};
  r->out.end = cts->bytes < (uint64_t)r->bytes ? cts->bytes : (uint64_t)r->bytes;
  r->flags = part ? r->flags | SPX_RF_PARTS : r->flags & ~(uint32_t)SPX_RF_PARTS;
  bool further = ask == SPX_CTS_FURTHER && !(r->flags & SPX_RF_PASS) && spx_txs[r->peer].conn;
  r->flags = further ? r->flags | SPX_RF_FURTHER : r->flags & ~(uint32_t)SPX_RF_FURTHER;
  spx_stat.streams++;
  spx_stat.streamed_bytes += part ? (uint64_t)r->bytes : cts->bytes;
  spx_tx_stream(r->peer, r);
  spx_tx_drain();
}

static void put_data(spx_tx *tx, spx_rec *rec, const spx_request *r, uint64_t at, uint32_t n)
{
  spx_tx_fill(tx, rec, (spx_rec_words){.stream = {0, r->out.to.index, r->out.to.gen}}, n);
  if (SPX_UNLIKELY(r->flags & SPX_RF_PASS))
    spx_bulk_load(r, at, n, rec->data);
  else if (n >= spx_set.apart_min && r->type->flags & SPX_T_CONTIG && !tx->conn) {
    uint64_t ns = spx_copy_into(&tx->into, rec->data, (const char *)r->buf + at, n, r->out.end);
    spx_ways *of = ns ? spx_get_timed(r, r->out.end) : NULL;
    if (of) spx_ways_took(of, SPX_WAY_IN, n, ns);
  } else
    spx_pack(r->buf, r->count, r->type, (int64_t)at, (int64_t)(at + n), rec->data);
  spx_tx_commit(tx, rec, SPX_REC_BYTES(n), SPX_REC_DATA);
}

/* Bytes of a record: longer ones where packing and unpacking have a fixed cost of their own. */
static uint32_t piece_of(const spx_request *r)
{
  return r->type->flags & SPX_T_CONTIG ? spx_set.fragment : spx_set.fragment_packed;
}

static bool stream_more(spx_tx *tx, spx_request *r, int *moved)
{
  uint64_t end;
  while (r->out.at < (end = stream_end(r))) { /* further streams take from the end */
    spx_long_result way = tx->conn ? spx_long_more(tx, r) : SPX_LONG_NOT;
    if (way == SPX_LONG_WAITS) return false;
    if (way == SPX_LONG_MOVED) {
      ++*moved;
      continue;
    }
    if (tx->ring < 0) tx->by->widen(tx);
    end = stream_end(r);
    uint64_t at = r->out.at, n = end - at,
             most = tx->conn       ? SPX_NET_FRAGMENT
                    : tx->ring < 0 ? SPX_REC_INLINE
                                   : piece_of(r);
    if (n > most) n = most;
    spx_rec *rec = spx_tx_room(tx, SPX_REC_BYTES(n));
    if (!rec) return false;
    put_data(tx, rec, r, at, (uint32_t)n);
    if (!tx->conn || r->out.at + n == end)
      spx_bell_if_sleeping(tx->proc, r->peer); /* else: when there is no more room */
    r->out.at += n;
    ++*moved;
  }
  if (SPX_UNLIKELY(r->flags & SPX_RF_FURTHER)) return !spx_further_busy(tx->conn, r);
  return true;
}

void spx_send_fetched(spx_request *r)
{
  if (SPX_UNLIKELY(r->flags & SPX_RF_KEPT)) {
    spx_other->fetched(r);
    return;
  }
  spx_id_drop(r);
  r->state = SPX_S_NONE;
  spx_complete(r, MPI_SUCCESS);
}

static void stream_written(spx_request *r)
{
  if (is_over(r)) spx_send_fetched(r);
}

spx_request *spx_stream_to(uint32_t index, uint32_t gen)
{
  spx_request *r = spx_id_find(index, gen);
  if (!r || (r->state != SPX_S_DATA && r->state != SPX_S_ASKED))
    return NULL; /* it has failed, or we got it ourselves */
  if (r->state == SPX_S_ASKED) spx_asked_forget(r);
  return r;
}

/* Bytes that have come by further streams, from the end on. */
static uint64_t come_beside(const spx_request *r)
{
  return SPX_UNLIKELY(r->flags & SPX_RF_FURTHER) ? r->in.beside : 0;
}

static void stream_came(spx_request *r, uint64_t n)
{
  spx_rxs[r->peer].pieces++;
  r->in.at += n;
  if (r->in.at + come_beside(r) < (uint64_t)r->bytes) return;
  r->flags &= ~(uint32_t)SPX_RF_FURTHER;
  spx_id_drop(r);
  r->state = SPX_S_NONE;
  spx_complete(r, r->error);
}

void spx_stream_data(uint32_t peer, const spx_rec *rec)
{
  const spx_request *named = spx_id_find(rec->as.stream.index, rec->as.stream.gen);
  if (!named) return; /* it has failed, or was got */
  if (SPX_UNLIKELY(named->peer != peer ||
                   (named->state != SPX_S_DATA && named->state != SPX_S_ASKED))) {
    spx_refuse(peer, "data for what does not receive from there");
    return;
  }
  spx_request *r = spx_stream_to(rec->as.stream.index, rec->as.stream.gen);
  uint64_t at = r->in.at;
  if (SPX_UNLIKELY(rec->len > (uint64_t)r->bytes - at - come_beside(r))) {
    spx_refuse(peer, "more data than were asked for");
    return;
  }
  static uint32_t pieces;
  spx_ways *timed = ++pieces % TIME_EVERY ? NULL : spx_get_timed(r, (uint64_t)r->bytes);
  uint64_t start = timed ? spx_now_ns() : 0;
  if (SPX_UNLIKELY(r->flags & SPX_RF_PASS))
    spx_bulk_store(r, at, rec->len, rec->data);
  else if ((uint64_t)r->bytes >= spx_set.past_cache && r->type->flags & SPX_T_CONTIG)
    spx_copy_past_cache((char *)r->buf + at, rec->data, rec->len);
  else
    spx_unpack(r->buf, r->count, r->type, (int64_t)at, (int64_t)(at + rec->len), rec->data);
  if (timed) spx_ways_took(timed, SPX_WAY_OUT, rec->len, spx_now_ns() - start);
  stream_came(r, rec->len);
}

const spx_carried spx_messages = {.send = spx_send_try,
                                  .more = stream_more,
                                  .written = stream_written,
                                  .end = stream_end,
                                  .data = put_data,
                                  .sink = spx_stream_to,
                                  .came = stream_came};
