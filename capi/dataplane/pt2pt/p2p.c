/* p2p.c - starting sends and receives. MPI-5.0 3.2 to 3.9.
 *
 * A send is eager (copied into the ring; complete at once) up to spx_set.eager_max bytes and while
 * the pair has credit, else it is announced (RTS) and the receiver fetches it: get.c. What finds no
 * room waits in its pair's queue, in order, while receives go on. Sends to the process itself go
 * through matching alone.
 */
#include <stdlib.h>
#include "dp.h"
#include "other_way.h"
#include "pack.h"

static uint32_t self_seq; /* compared for equality alone */

/* ---- requests ---- */

static inline void init_request(spx_request *r, spx_req_kind kind, uint32_t flags, void *buf,
                                int64_t count, spx_type *t, int rank, int tag, spx_comm *c,
                                uint32_t ctx_kind)
{
  r->kind = (uint16_t)kind;
  r->mode = SPX_M_STANDARD;
  r->flags = flags;
  atomic_store_explicit(&r->done, 0, memory_order_relaxed);
  r->error = MPI_SUCCESS;
  r->src = r->want_src = rank;
  r->tag = r->want_tag = tag;
  r->bytes = 0;
  r->full = 0;
  r->buf = buf;
  r->count = count;
  r->type = t;
  r->comm = c;
  r->ctx = c->ctx + ctx_kind;
  r->ctx_kind = ctx_kind;
  r->peer = rank >= 0 ? c->peer[rank] : SPX_NO_PEER;
  r->state = SPX_S_NONE;
  r->id_slot = 0;
}

static void hold(spx_request *r)
{
  if (r->flags & (SPX_RF_HOLDS | SPX_RF_BLOCKING)) return;
  r->flags |= SPX_RF_HOLDS;
  spx_ref(&r->comm->o);
  spx_ref(&r->type->o);
}

static int new_request(spx_request **out)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  *out = r;
  if (r) return MPI_SUCCESS;
  spx_detail("there is no room for another request (at most %u exist): complete some, or free them",
             1u << SPX_H_INDEX_BITS);
  return MPI_ERR_NO_MEM;
}

static void complete_null(spx_request *r)
{
  r->src = MPI_PROC_NULL;
  r->tag = MPI_ANY_TAG;
  spx_complete(r, MPI_SUCCESS);
}

/* ---- sending ---- */

typedef enum { EAGER_SENT, EAGER_NO_ROOM, EAGER_NOT } eager_result;

/* Writes a message as one record if that is possible now; id: NULL, or of a synchronous send. */
static inline eager_result write_eager(spx_tx *tx, const void *buf, int64_t count,
                                       const spx_type *t, uint64_t n, uint64_t ctx, int tag,
                                       int src, const spx_rec_id *id)
{
  uint32_t prefix = id ? 16 : 0, bytes = SPX_REC_BYTES(n + prefix);
  if (SPX_UNLIKELY(tx->ring < 0) && (bytes > SPX_LINE || spx_tx_warm(tx)) && !tx->by->widen(tx) &&
      bytes > SPX_LINE)
    return EAGER_NOT;
  if (SPX_UNLIKELY(tx->sent + bytes - tx->matched > spx_set.credit)) {
    tx->matched = spx_tx_published(tx, &tx->chan->matched, tx->sent, __ATOMIC_RELAXED);
    if (tx->sent + bytes - tx->matched > spx_set.credit) return EAGER_NOT;
  }
  spx_rec *rec = spx_tx_room(tx, bytes);
  if (SPX_UNLIKELY(!rec)) return EAGER_NO_ROOM;
  rec->as = (spx_rec_words){.envelope = {ctx, tag, src}};
  rec->seq = tx->seq++;
  rec->len = (uint32_t)n + prefix;
  if (id) memcpy(rec->data, id, sizeof *id);
  if (SPX_LIKELY(t->flags & SPX_T_CONTIG)) {
    if (SPX_LIKELY(n < spx_set.apart_min) || tx->conn)
      spx_copy_short(rec->data + prefix, buf, n);
    else
      spx_copy_into(&tx->into, rec->data + prefix, buf, n, n);
  } else
    spx_pack(buf, count, t, 0, (int64_t)n, rec->data + prefix);
  if (SPX_UNLIKELY(spx_tracer_now))
    spx_tracer_now->sent((uint32_t)(tx - spx_txs), ctx, tag, n, tx->seq - 1, false);
  spx_tx_commit(tx, rec, bytes, id ? SPX_REC_EAGER_SYNC : SPX_REC_EAGER);
  tx->sent += bytes;
  spx_bell_if_sleeping(tx->proc, (uint32_t)(tx - spx_txs));
  return EAGER_SENT;
}

/* The name of a send: the one that it has, or a new one; false: no memory. */
static bool name_of(spx_request *r, uint32_t *index, uint32_t *gen)
{
  if (!r->id_slot) return spx_id_new(r, index, gen);
  *index = r->id_slot - 1;
  *gen = r->id_gen;
  return true;
}

bool spx_announce(spx_request *r, uint64_t n, spx_rec_rts *rts)
{
  *rts = (spx_rec_rts){.bytes = spx_into_apart(&spx_txs[r->peer].into) ? n | SPX_RTS_APART : n};
  if (!name_of(r, &rts->index, &rts->gen)) return false;
  bool contiguous = r->type->flags & SPX_T_CONTIG;
  if (spx_id_shared(rts->index) && !(r->flags & SPX_RF_PASS) &&
      (contiguous || spx_has_long_runs(r))) {
    rts->addr = (uint64_t)(uintptr_t)r->buf;
    rts->type = contiguous ? 0 : (uint64_t)(uintptr_t)r->type;
  }
  return true;
}

/* Announces a message; the receiver comes for it. */
static bool write_rts(spx_tx *tx, spx_request *r, uint64_t n)
{
  spx_rec *rec = spx_tx_room(tx, SPX_LINE);
  if (!rec) return false;
  spx_rec_rts rts;
  if (!spx_announce(r, n, &rts)) {
    spx_complete(r, MPI_ERR_NO_MEM);
    return true;
  }
  rec->as = (spx_rec_words){.envelope = {r->ctx, r->want_tag, r->as}};
  rec->seq = r->out.number = tx->seq++;
  rec->len = sizeof rts;
  memcpy(rec->data, &rts, sizeof rts);
  r->state = SPX_S_SENT;
  spx_stat.announced++;
  spx_count_sent(r->comm, n);
  if (SPX_UNLIKELY(spx_tracer_now))
    spx_tracer_now->sent(r->peer, r->ctx, r->want_tag, n, r->out.number, false);
  spx_tx_commit(tx, rec, SPX_LINE, SPX_REC_RTS);
  spx_bell_if_sleeping(tx->proc, (uint32_t)(tx - spx_txs));
  return true;
}

bool spx_send_try(spx_request *r)
{
  spx_tx *tx = &spx_txs[r->peer];
  uint64_t n = spx_capacity(r);
  r->bytes = (int64_t)n;
  if ((n > spx_set.eager_max && !(tx->conn && n <= spx_set.net_eager_max)) ||
      (r->flags & SPX_RF_PASS))
    return write_rts(tx, r, n);
  spx_rec_id id = {0}, *sync = NULL;
  if (r->mode == SPX_M_SYNC) {
    if (!name_of(r, &id.index, &id.gen)) {
      spx_complete(r, MPI_ERR_NO_MEM);
      return true;
    }
    sync = &id;
  }
  switch (write_eager(tx, r->buf, r->count, r->type, n, r->ctx, r->want_tag, r->as, sync)) {
  case EAGER_NO_ROOM: return false;
  case EAGER_NOT: return write_rts(tx, r, n);
  case EAGER_SENT: break;
  }
  r->out.number = tx->seq - 1;
  spx_count_sent(r->comm, n);
  if (sync)
    r->state = SPX_S_SENT;
  else {
    r->state = SPX_S_EAGER;
    spx_complete(r, MPI_SUCCESS);
  }
  return true;
}

/* A send to ourselves: to a posted receive, or among the unexpected messages, copied or (large)
 * waiting with its buffer. */
static void send_self(spx_request *r)
{
  uint64_t n = spx_capacity(r);
  r->bytes = (int64_t)n;
  r->out.number = self_seq++;
  spx_count_sent(r->comm, n);
  if (SPX_UNLIKELY(spx_tracer_now))
    spx_tracer_now->sent(spx_me, r->ctx, r->want_tag, n, r->out.number, false);
  spx_request *to = spx_match_posted(r->ctx, r->comm->rank, r->want_tag);
  if (to) {
    to->src = r->comm->rank;
    to->tag = r->want_tag;
    to->peer = spx_me;
    if (SPX_UNLIKELY(spx_tracer_now)) spx_tracer_now->got(to, n, r->out.number, false);
    spx_local_copy(r, to);
    spx_complete(to, to->error);
    spx_complete(r, MPI_SUCCESS);
    return;
  }
  bool copy = r->mode != SPX_M_SYNC && (n <= spx_set.eager_max || (r->flags & SPX_RF_BLOCKING));
  spx_unex *e = spx_unex_new(copy ? n : 0);
  if (!e) {
    spx_complete(r, MPI_ERR_NO_MEM);
    return;
  }
  e->ctx = r->ctx;
  e->src = r->comm->rank;
  e->tag = r->want_tag;
  e->proc = spx_me;
  e->seq = r->out.number;
  e->kind = SPX_REC_EAGER;
  e->bytes = n;
  e->self = copy ? NULL : r;
  if (copy) spx_pack(r->buf, r->count, r->type, 0, (int64_t)n, e->data);
  spx_unex_add(e);
  spx_happened(1);
  r->state = copy ? SPX_S_EAGER : SPX_S_SELF;
  if (copy) spx_complete(r, MPI_SUCCESS);
}

void spx_send_start(spx_request *r)
{
  r->as = r->comm->rank;
  int err = spx_comm_error(r->comm, r->ctx_kind, r->peer);
  if (SPX_UNLIKELY(r->comm->flags & SPX_C_REPLAY) && err == MPI_SUCCESS && spx_other->sends(r))
    return;
  if (err == MPI_SUCCESS && r->mode == SPX_M_BUFFERED) {
    spx_bsend_start(r);
    return;
  }
  if (err == MPI_SUCCESS && r->peer == spx_me) {
    send_self(r);
    return;
  }
  spx_tx *tx = &spx_txs[r->peer];
  if (err == MPI_SUCCESS && (tx->slow & SPX_TX_NEW)) err = spx_tx_init(r->peer);
  if (err == MPI_SUCCESS) {
    if (!tx->pend && spx_send_try(r)) return;
    err = spx_tx_queue_request(r->peer, r);
  }
  if (err == MPIX_ERR_PROC_FAILED && spx_send_parks && spx_send_parks(r)) return;
  if (err != MPI_SUCCESS) spx_complete(r, err);
}

/* The short path: true when the message is on its way. */
static inline bool send_short(const void *buf, int64_t count, const spx_type *t, int dest, int tag,
                              const spx_comm *c, uint32_t ctx_kind, spx_send_mode m)
{
  uint64_t n = (uint64_t)(count * t->size);
  uint32_t peer = c->peer[dest];
  spx_tx *tx = &spx_txs[peer];
  if (SPX_UNLIKELY(n > spx_set.eager_max || (m != SPX_M_STANDARD && m != SPX_M_READY) || tx->slow ||
                   peer == spx_me))
    return false;
  if (SPX_FAILED(spx_harm))
    if (c->revoked || c->flags & SPX_C_REPLAY) return false;
  if (write_eager(tx, buf, count, t, n, c->ctx + ctx_kind, tag, c->rank, NULL) != EAGER_SENT)
    return false;
  spx_count_sent(c, n);
  return true;
}

int spx_send(const void *buf, int64_t count, spx_type *t, int dest, int tag, spx_comm *c,
             uint32_t ctx_kind, spx_send_mode m)
{
  if (SPX_UNLIKELY(dest == MPI_PROC_NULL)) return MPI_SUCCESS;
  spx_lock();
  int rc = MPI_SUCCESS;
  if (SPX_UNLIKELY(!send_short(buf, count, t, dest, tag, c, ctx_kind, m))) {
    spx_request r;
    init_request(&r, SPX_R_SEND, SPX_RF_BLOCKING, (void *)(uintptr_t)buf, count, t, dest, tag, c,
                 ctx_kind);
    r.mode = (uint16_t)m;
    spx_send_start(&r);
    rc = spx_wait(&r);
  }
  spx_unlock();
  return rc;
}

int spx_isend(const void *buf, int64_t count, spx_type *t, int dest, int tag, spx_comm *c,
              uint32_t ctx_kind, spx_send_mode m, uint32_t flags, spx_request **out)
{
  int rc = new_request(out);
  if (rc != MPI_SUCCESS) return rc;
  spx_request *r = *out;
  init_request(r, SPX_R_SEND, flags | SPX_RF_ACTIVE, (void *)(uintptr_t)buf, count, t, dest, tag, c,
               ctx_kind);
  r->mode = (uint16_t)m;
  if (SPX_UNLIKELY(dest == MPI_PROC_NULL)) {
    complete_null(r);
    return MPI_SUCCESS;
  }
  spx_lock();
  if (SPX_LIKELY(send_short(buf, count, t, dest, tag, c, ctx_kind, m))) {
    r->bytes = count * t->size;
    r->out.number = spx_txs[r->peer].seq - 1;
    r->state = SPX_S_EAGER;
    atomic_store_explicit(&r->done, 1, memory_order_release);
  } else {
    hold(r);
    spx_send_start(r);
  }
  spx_unlock();
  return MPI_SUCCESS;
}

/* ---- receiving ---- */

/* Takes a message that has come. */
static inline bool take_unexpected(spx_request *r)
{
  spx_unex *e = spx_match_unexpected(r->ctx, r->want_src, r->want_tag);
  if (!e) return false;
  spx_unex_remove(e);
  spx_take(r, e);
  return true;
}

/* Where something has failed: what was sent before a death is still taken, but nothing of a revoked
 * communicator. */
static void recv_start_harmed(spx_request *r)
{
  int err = spx_comm_error(r->comm, r->ctx_kind, r->peer);
  if (err != MPIX_ERR_REVOKED && take_unexpected(r)) return;
  if (err == MPI_SUCCESS)
    spx_post(r);
  else
    spx_complete(r, err);
}

void spx_recv_start(spx_request *r)
{
  if (SPX_FAILED(spx_harm)) {
    recv_start_harmed(r);
    return;
  }
  if (!take_unexpected(r)) spx_post(r);
}

static void status_of(const spx_request *r, MPI_Status *st)
{
  if (st != MPI_STATUS_IGNORE || SPX_UNLIKELY(spx_is_origin(r->src)))
    spx_status_set(st, r->src, r->tag, SPX_KEEP_ERROR, r->bytes, 0);
}

int spx_recv(void *buf, int64_t count, spx_type *t, int src, int tag, spx_comm *c,
             uint32_t ctx_kind, MPI_Status *st)
{
  if (SPX_UNLIKELY(src == MPI_PROC_NULL)) {
    if (st != MPI_STATUS_IGNORE)
      spx_status_set(st, MPI_PROC_NULL, MPI_ANY_TAG, SPX_KEEP_ERROR, 0, 0);
    return MPI_SUCCESS;
  }
  spx_lock();
  spx_request r;
  init_request(&r, SPX_R_RECV, SPX_RF_BLOCKING, buf, count, t, src, tag, c, ctx_kind);
  spx_recv_start(&r);
  int rc = spx_wait(&r);
  if (SPX_UNLIKELY(rc == MPIX_ERR_PROC_FAILED_PENDING)) {
    spx_unpost(&r);
    r.error = rc = MPIX_ERR_PROC_FAILED;
    spx_request_detail(&r);
  }
  status_of(&r, st);
  spx_unlock();
  return rc;
}

int spx_irecv(void *buf, int64_t count, spx_type *t, int src, int tag, spx_comm *c,
              uint32_t ctx_kind, uint32_t flags, spx_request **out)
{
  int rc = new_request(out);
  if (rc != MPI_SUCCESS) return rc;
  spx_request *r = *out;
  init_request(r, SPX_R_RECV, flags | SPX_RF_ACTIVE, buf, count, t, src, tag, c, ctx_kind);
  if (SPX_UNLIKELY(src == MPI_PROC_NULL)) {
    complete_null(r);
    return MPI_SUCCESS;
  }
  spx_lock();
  hold(r);
  spx_recv_start(r);
  spx_unlock();
  return MPI_SUCCESS;
}

/* ---- persistent ---- */

int spx_persistent(spx_req_kind kind, void *buf, int64_t count, spx_type *t, int rank, int tag,
                   spx_comm *c, uint32_t ctx_kind, spx_send_mode m, spx_request **out)
{
  int rc = new_request(out);
  if (rc != MPI_SUCCESS) return rc;
  spx_request *r = *out;
  init_request(r, kind, SPX_RF_PERSISTENT, buf, count, t, rank, tag, c, ctx_kind);
  r->mode = (uint16_t)(kind == SPX_R_SEND ? m : SPX_M_STANDARD);
  hold(r);
  return MPI_SUCCESS;
}

int spx_start(spx_request *r)
{
  if (r->kind != SPX_R_SEND && r->kind != SPX_R_RECV)
    return r->start ? r->start(r) : MPI_ERR_REQUEST;
  /* something to do before: capi/bodies/request_attach.c */
  if (SPX_UNLIKELY(r->start != NULL)) r->start(r);
  spx_lock();
  atomic_store_explicit(&r->done, 0, memory_order_relaxed);
  r->flags = (r->flags & ~(uint32_t)SPX_RF_CANCELLED) | SPX_RF_ACTIVE;
  r->error = MPI_SUCCESS;
  r->src = r->want_src;
  r->tag = r->want_tag;
  r->bytes = 0;
  r->id_slot = 0;
  r->peer = r->want_src >= 0 ? r->comm->peer[r->want_src] : SPX_NO_PEER;
  r->state = SPX_S_NONE;
  if (r->want_src == MPI_PROC_NULL)
    complete_null(r);
  else if (r->kind == SPX_R_SEND)
    spx_send_start(r);
  else
    spx_recv_start(r);
  spx_unlock();
  return MPI_SUCCESS;
}

/* ---- cancelling ---- */

static void complete_cancelled(spx_request *r)
{
  r->flags |= SPX_RF_CANCELLED;
  r->bytes = 0;
  spx_complete(r, MPI_SUCCESS);
}

/* The request that really sends: another one when r is buffered, NULL when that is complete. */
static spx_request *sender_of(spx_request *r)
{
  return r->mode == SPX_M_BUFFERED ? spx_bsend_sender(r) : r;
}

/* The receiver will never answer the sender of a cancelled buffered message. */
static void end_sender(spx_request *r)
{
  spx_request *s = sender_of(r);
  if (!s || s == r) return;
  spx_id_drop(s);
  spx_complete(s, MPI_SUCCESS);
}

void spx_cancel_answer(spx_request *r, bool forgotten)
{
  if (forgotten) {
    spx_id_drop(r);
    end_sender(r);
    complete_cancelled(r);
  } else if (r->state == SPX_S_RECALL) {
    spx_id_drop(r);
    r->state = SPX_S_NONE;
    spx_complete(r, MPI_SUCCESS);
  }
}

static spx_unex *find_sent(const spx_request *r)
{
  for (spx_unex *e = spx_match_unexpected(r->ctx, r->comm->rank, r->want_tag); e;
       e = e->link[SPX_BY_EXACT].next)
    if (e->proc == spx_me && e->seq == r->out.number && e->ctx == r->ctx && e->tag == r->want_tag)
      return e;
  return NULL;
}

static void cancel_send(spx_request *r)
{
  if (r->flags & SPX_RF_KEPT) return; /* it may be at other processes already */
  spx_request *sender = sender_of(r);
  if (sender && sender->state == SPX_S_QUEUED) {
    if (spx_tx_unqueue(sender->peer, sender)) {
      spx_id_drop(sender);
      end_sender(r);
      complete_cancelled(r);
    }
    return;
  }
  if (sender) r->out.number = sender->out.number;
  if (r->state != SPX_S_SENT && r->state != SPX_S_EAGER && r->state != SPX_S_SELF) return;
  if (r->peer == spx_me) {
    spx_unex *e = find_sent(r);
    if (!e) return;
    spx_unex_remove(e);
    spx_unex_free(e);
    end_sender(r);
    complete_cancelled(r);
    return;
  }
  spx_rec_cancel ask = {.seq = r->out.number};
  if (r->state == SPX_S_EAGER) {
    if (!name_of(r, &ask.index, &ask.gen)) return;
    atomic_store_explicit(&r->done, 0, memory_order_relaxed);
    r->state = SPX_S_RECALL;
  } else
    name_of(r, &ask.index, &ask.gen);
  spx_rec_words message = {.envelope = {r->ctx, r->want_tag, r->comm->rank}};
  spx_tx_put(r->peer, SPX_REC_CANCEL, message, &ask, sizeof ask);
}

int spx_cancel(spx_request *r)
{
  if (r->kind != SPX_R_SEND && r->kind != SPX_R_RECV) return r->cancel ? r->cancel(r) : MPI_SUCCESS;
  spx_lock();
  if (r->kind == SPX_R_RECV) {
    if (r->state == SPX_S_POSTED && !spx_is_done(r)) {
      spx_unpost(r);
      complete_cancelled(r);
    }
  } else if (!(r->flags & SPX_RF_CANCELLED) && r->error == MPI_SUCCESS)
    cancel_send(r);
  spx_unlock();
  return MPI_SUCCESS;
}
