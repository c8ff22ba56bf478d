/* deliver.c - the handling of an arriving record: one handler a kind. Called while the record is in
 * the ring. */
#include <stdlib.h>
#include "dp.h"
#include "kinds.h"
#include "other_way.h"
#include "replay.h"

spx_record_handler *const *spx_handlers;
const spx_kind_ops *spx_kinds[SPX_R_GO + 1];
const spx_cast_ops *spx_casts;

static void give_credit(uint32_t peer, uint32_t cost)
{
  if (peer == spx_me || cost == 0) return;
  spx_rx *rx = &spx_rxs[peer];
  rx->matched += cost;
  if (rx->matched - rx->matched_published >= spx_set.credit / 4 && rx->conn)
    spx_net_credit(peer, spx_position_word(rx->epoch, rx->matched_published = rx->matched));
  else if (rx->matched - rx->matched_published >= spx_set.credit / 4)
    spx_rx_publish_matched(rx);
  else
    spx_rx_owe(peer);
}

/* Returns the credit of its sender that e has taken. */
static void give_back(const spx_unex *e)
{
  if (SPX_UNLIKELY(e->kind > SPX_REC_RTS))
    spx_casts->drop(e);
  else
    give_credit(e->proc, e->cost);
}

static void answer(uint32_t peer, spx_rec_kind kind, uint32_t index, uint32_t gen, int32_t error)
{
  spx_rec_id id = {index, gen, error};
  spx_tx_put(peer, kind, SPX_REC_PLAIN, &id, sizeof id);
}

/* Of a message that r has matched: its number for systems, and for traces. */
static __attribute__((cold, noinline)) void note(const spx_request *r, uint64_t n, uint32_t number,
                                                 bool cast)
{
  if (spx_is_origin(r->src)) spx_other->numbered(number);
  if (spx_tracer_now) spx_tracer_now->got(r, n, number, cast);
}

void spx_found(spx_request *r, int32_t src, int32_t tag, uint32_t peer, uint64_t n, uint32_t number,
               bool cast)
{
  r->src = src;
  r->tag = tag;
  r->peer = peer;
  r->state = SPX_S_NONE;
  if (SPX_UNLIKELY(spx_is_origin(src) || spx_tracer_now)) note(r, n, number, cast);
}

uint64_t spx_accept(spx_request *r, uint64_t n)
{
  uint64_t cap = spx_capacity(r), take = n < cap ? n : cap;
  r->full = n;
  r->bytes = (int64_t)take;
  r->comm->counts.received++;
  r->comm->counts.received_bytes += take;
  spx_stat.received++;
  spx_stat.received_bytes += take;
  r->error = n > cap ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
  return take;
}

void spx_receive_whole(spx_request *r, const void *data, uint64_t n)
{
  uint64_t take = spx_accept(r, n);
  if (SPX_LIKELY(r->type->flags & SPX_T_CONTIG))
    spx_copy_short(r->buf, data, take);
  else
    spx_unpack(r->buf, r->count, r->type, 0, (int64_t)take, data);
}

uint64_t spx_local_copy(const spx_request *from, spx_request *to)
{
  uint64_t n = spx_accept(to, spx_capacity(from));
  spx_copy_typed(to->buf, to->count, to->type, 0, from->buf, from->count, from->type, 0,
                 (int64_t)n);
  return n;
}

/* ---- messages ---- */

static spx_rec_id id_of(const spx_rec *rec)
{
  spx_rec_id id;
  memcpy(&id, rec->data, sizeof id);
  return id;
}

static spx_rec_rts rts_of(uint32_t peer, const spx_rec *rec)
{
  spx_rec_rts rts;
  memcpy(&rts, rec->data, sizeof rts);
  spx_txs[peer].apart_there = rts.bytes & SPX_RTS_APART;
  rts.bytes &= ~SPX_RTS_APART;
  return rts;
}

static bool keep(uint32_t peer, const spx_rec *rec, uint32_t kind)
{
  uint32_t prefix = kind == SPX_REC_EAGER_SYNC ? 16 : 0;
  uint64_t payload = kind == SPX_REC_RTS ? 0 : rec->len - prefix;
  spx_unex *e = spx_unex_new(payload);
  if (!e) return false;
  e->ctx = spx_inbound(rec->as.envelope.ctx, rec->as.envelope.src);
  e->src = rec->as.envelope.src;
  e->tag = rec->as.envelope.tag;
  e->proc = peer;
  e->seq = rec->seq;
  e->kind = (uint16_t)kind;
  e->bytes = payload;
  if (kind == SPX_REC_RTS) {
    spx_rec_rts rts = rts_of(peer, rec);
    e->index = rts.index;
    e->gen = rts.gen;
    e->addr = rts.addr;
    e->type = rts.type;
    e->bytes = rts.bytes;
  } else {
    e->cost = SPX_REC_BYTES(rec->len);
    memcpy(e->data, rec->data + prefix, payload);
    spx_stat.unexpected_bytes += payload;
    if (prefix) {
      spx_rec_id id = id_of(rec);
      e->index = id.index;
      e->gen = id.gen;
    }
  }
  spx_unex_add(e);
  return true;
}

static inline spx_request *posted_for(const spx_rec *rec)
{
  return spx_match_posted(rec->as.envelope.ctx, rec->as.envelope.src, rec->as.envelope.tag);
}

static bool on_eager(uint32_t peer, const spx_rec *rec)
{
  spx_request *r = posted_for(rec);
  if (!r) return keep(peer, rec, SPX_REC_EAGER);
  spx_found(r, rec->as.envelope.src, rec->as.envelope.tag, peer, rec->len, rec->seq, false);
  spx_receive_whole(r, rec->data, rec->len);
  give_credit(peer, SPX_REC_BYTES(rec->len));
  spx_complete(r, r->error);
  return true;
}

static bool on_eager_sync(uint32_t peer, const spx_rec *rec)
{
  spx_request *r = posted_for(rec);
  if (!r) return keep(peer, rec, SPX_REC_EAGER_SYNC);
  spx_rec_id id = id_of(rec);
  spx_found(r, rec->as.envelope.src, rec->as.envelope.tag, peer, rec->len - 16, rec->seq, false);
  spx_receive_whole(r, rec->data + 16, rec->len - 16);
  give_credit(peer, SPX_REC_BYTES(rec->len));
  answer(peer, SPX_REC_ACK, id.index, id.gen, 0);
  spx_complete(r, r->error);
  return true;
}

/* A message of that head, with so many bytes of it here, that no receive has matched; NULL: no
 * memory. */
static spx_unex *unmatched(uint32_t peer, const spx_frame_head *h, uint32_t number,
                           spx_rec_kind kind, uint64_t here)
{
  spx_unex *e = spx_unex_new(here);
  if (!e) return NULL;
  e->ctx = spx_inbound(h->ctx, h->src);
  e->src = h->src;
  e->tag = h->tag;
  e->proc = peer;
  e->seq = number;
  e->kind = (uint16_t)kind;
  e->bytes = here;
  return e;
}

bool spx_deliver_frame(uint32_t peer, const spx_frame_head *h, uint32_t number, const uint8_t *data)
{
  spx_request *r = spx_match_posted(h->ctx, h->src, h->tag);
  if (r) {
    spx_found(r, h->src, h->tag, peer, h->bytes, number, false);
    spx_receive_whole(r, data, h->bytes);
    spx_complete(r, r->error);
    return true;
  }
  spx_unex *e = unmatched(peer, h, number, SPX_REC_EAGER, h->bytes);
  if (!e) return false;
  memcpy(e->data, data, h->bytes);
  spx_stat.unexpected_bytes += h->bytes;
  spx_unex_add(e);
  return true;
}

static void fetch(spx_request *r, int32_t src, int32_t tag, uint32_t peer, uint32_t number,
                  const spx_rec_rts *rts)
{
  spx_found(r, src, tag, peer, rts->bytes, number, false);
  spx_accept(r, rts->bytes);
  spx_fetch(r, peer, rts);
}

void spx_fetch_frame(spx_request *r, uint32_t peer, const spx_frame_head *h, uint32_t number,
                     const spx_rec_rts *rts)
{
  fetch(r, h->src, h->tag, peer, number, rts);
}

spx_unex *spx_keep_frame(uint32_t peer, const spx_frame_head *h, uint32_t number,
                         const spx_rec_rts *rts)
{
  spx_unex *e = unmatched(peer, h, number, SPX_REC_RTS, 0);
  if (!e) return NULL;
  e->bytes = rts->bytes;
  e->index = rts->index;
  e->gen = rts->gen;
  e->addr = rts->addr;
  e->type = rts->type;
  e->word = true;
  spx_unex_add(e);
  return e;
}

static bool on_rts(uint32_t peer, const spx_rec *rec)
{
  spx_request *r = posted_for(rec);
  if (!r) return keep(peer, rec, SPX_REC_RTS);
  spx_rec_rts rts = rts_of(peer, rec);
  fetch(r, rec->as.envelope.src, rec->as.envelope.tag, peer, rec->seq, &rts);
  return true;
}

static void take_announced(spx_request *r, const spx_unex *e)
{
  spx_rec_rts rts = {
      .index = e->index, .gen = e->gen, .addr = e->addr, .bytes = e->bytes, .type = e->type};
  fetch(r, e->src, e->tag, e->proc, e->seq, &rts);
}

void spx_take(spx_request *r, spx_unex *e)
{
  if (SPX_UNLIKELY(e->word)) spx_other->taken(e, r);
  if (SPX_UNLIKELY(e->kind > SPX_REC_RTS))
    spx_casts->take(r, e);
  else if (e->kind == SPX_REC_RTS)
    take_announced(r, e);
  else {
    spx_found(r, e->src, e->tag, e->proc, e->bytes, e->seq, false);
    if (e->self)
      spx_local_copy(e->self, r);
    else
      spx_receive_whole(r, e->data, e->bytes);
    give_back(e);
    if (e->self)
      spx_complete(e->self, MPI_SUCCESS);
    else if (e->kind == SPX_REC_EAGER_SYNC)
      answer(e->proc, SPX_REC_ACK, e->index, e->gen, 0);
    spx_complete(r, r->error);
  }
  spx_unex_free(e);
}

void spx_unex_drop(spx_unex *e)
{
  if (SPX_UNLIKELY(e->word)) spx_other->dropped(e);
  spx_unex_remove(e);
  give_back(e);
  spx_unex_free(e);
}

/* ---- control ---- */

/* The announced or synchronous send to peer that a record from there names; NULL: it is over. A
 * send never made to peer can not be named by it. */
static spx_request *sent_to(uint32_t peer, uint32_t index, uint32_t gen)
{
  spx_request *r = spx_id_find(index, gen);
  if (!r || spx_kinds[r->kind]) return r;
  bool known = r->kind == SPX_R_SEND && r->peer == peer && r->state != SPX_S_QUEUED &&
               r->state != SPX_S_NONE;
  if (SPX_LIKELY(known)) return r;
  spx_refuse(peer, "the name of a message that was not sent there");
  return NULL;
}

static void on_matched(uint32_t peer, const spx_rec *rec, uint32_t kind) /* ACK and DONE */
{
  spx_rec_id id = id_of(rec);
  spx_request *r = sent_to(peer, id.index, id.gen);
  if (!r) return;
  if (SPX_UNLIKELY(id.error != MPI_SUCCESS || (kind == SPX_REC_ACK && r->state != SPX_S_SENT))) {
    spx_refuse(peer, "word of a message that it cannot have received");
    return;
  }
  if (SPX_UNLIKELY(r->kind != SPX_R_SEND)) {
    spx_kinds[r->kind]->fetched(r, peer);
    return;
  }
  /* the receiver did not wait for the stream */
  if (r->state == SPX_S_STREAM) spx_tx_unqueue(r->peer, r);
  spx_send_fetched(r);
}

static void on_cts(uint32_t peer, const spx_rec *rec)
{
  spx_rec_cts cts;
  memcpy(&cts, rec->data, sizeof cts);
  spx_request *r = sent_to(peer, cts.index, cts.gen);
  if (r && r->kind != SPX_R_SEND)
    spx_kinds[r->kind]->asked(r, peer, &cts, rec->as.cts.how == SPX_CTS_RELAY);
  else if (r)
    spx_stream_start(r, &cts, rec->as.cts.how);
}

static void on_cancel(uint32_t peer, const spx_rec *rec)
{
  spx_rec_cancel ask;
  memcpy(&ask, rec->data, sizeof ask);
  spx_unex *e = spx_match_unexpected(spx_inbound(rec->as.envelope.ctx, rec->as.envelope.src),
                                     rec->as.envelope.src, rec->as.envelope.tag);
  while (e && !(e->proc == peer && e->seq == ask.seq && e->kind != SPX_REC_MCAST &&
                e->kind != SPX_REC_MCAST_RTS))
    e = e->link[SPX_BY_EXACT].next;
  if (e) spx_unex_drop(e);
  answer(peer, SPX_REC_CANCELLED, ask.index, ask.gen, e == NULL);
}

static void on_cancelled(uint32_t peer, const spx_rec *rec)
{
  spx_rec_id id = id_of(rec);
  spx_request *r = sent_to(peer, id.index, id.gen);
  if (!r) return;
  if (SPX_LIKELY(r->kind == SPX_R_SEND && (r->state == SPX_S_SENT || r->state == SPX_S_RECALL)))
    spx_cancel_answer(r, id.error == 0);
  else if (id.error == 0)
    spx_refuse(peer, "word that it has forgotten a message that it is receiving");
}

void (*spx_check_arrived)(uint32_t peer, const spx_rec *rec);

/* By kind: what layers above do with records of their own. */
static bool handle(uint32_t peer, const spx_rec *rec, uint32_t kind)
{
  spx_record_handler *h = kind <= SPX_REC_LAST ? spx_handlers[kind] : NULL;
  if (!h) spx_fatal(MPI_ERR_INTERN, "process %u sent a record of unknown kind %u", peer, kind);
  return h(peer, rec);
}

bool spx_deliver(uint32_t peer, spx_rx *rx, const spx_rec *rec, uint32_t kind)
{
  switch (kind) {
  case SPX_REC_EAGER: return on_eager(peer, rec);
  case SPX_REC_EAGER_SYNC: return on_eager_sync(peer, rec);
  case SPX_REC_RTS: return on_rts(peer, rec);
  case SPX_REC_ACK:
  case SPX_REC_DONE: on_matched(peer, rec, kind); return true;
  case SPX_REC_CTS: on_cts(peer, rec); return true;
  case SPX_REC_DATA: spx_stream_data(peer, rec); return true;
  case SPX_REC_CANCEL: on_cancel(peer, rec); return true;
  case SPX_REC_CANCELLED: on_cancelled(peer, rec); return true;
  case SPX_REC_CTRL: return spx_ctrl_piece(peer, rx, rec);
  case SPX_REC_CHECK:
    if (spx_check_arrived) spx_check_arrived(peer, rec);
    return true;
  default: return handle(peer, rec, kind);
  }
}
