/* pass.c - long messages that an I/O process forwards while they arrive (MPISP_Pass).
 *
 * The message is announced to its receiver before its data are here. They arrive in a room of
 * bounded size, which is used over and over, and leave it as the receiver takes them: a request for
 * them is answered by a stream of what is there. The sender is asked for parts (SPX_CTS_PART): as
 * much as there is room for, and more when some has left. So a receiver that takes nothing stops
 * the sender, as soon as the room is full. As long as the receiver has not begun, the room grows,
 * up to the caller's limit: a message without a receive is kept as any other is.
 *
 *   sender --- RTS --> this process --- RTS --> receiver
 *          <-- CTS, part ---      <-- CTS ---
 *          --- DATA -->  room  --- DATA -->
 *
 * If the sender dies before all is here, the message was never sent: it is retracted
 * (SPX_REC_CANCEL) or, when its receiver has begun, aborted (SPX_REC_ABORTED), and that receive
 * waits for another message. If the receiver dies, the rest is received from the sender and
 * dropped.
 *
 * A message that was not announced is here already, as a rule: it is received as any other, and
 * then sent. */
#include "pass.h"
#include <stdlib.h>
#include "dp.h"
#include "plan_run.h"
#include "replay.h"

#define ROOM_FIRST (512u << 10) /* as long as that is enough it stays in the caches */
#define ROOM_LEAST (64u << 10)
#define STUCK_NS   1000000

struct spx_pass {
  const spx_bulk *bulk;
  spx_pass *next; /* in the order in which they began */
  spx_request *user, *in, *out;
  char *room;
  uint64_t size, most;  /* of the room: now, and at most */
  uint64_t seen, since; /* so much had left, at that time */
  uint64_t asked;       /* the sender may send what is before this byte */
  spx_rec_cts cts;
  uint32_t from;
  bool aborted, recalled;
  bool whole; /* it was not announced: it is received in full, and then sent */
  bool sent;
};

static spx_pass *first, **last = &first;
static int pump(spx_poller *);
static spx_poller poller = {.poll = pump};

/* ---- the room ---- */

static char *at_of(const spx_request *r, uint64_t at, uint64_t *n)
{
  const spx_pass *p = r->priv;
  uint64_t place = at % p->size;
  *n = spx_least(*n, p->size - place);
  return p->room + place;
}

static uint64_t there(const spx_request *r)
{
  spx_request *in = ((const spx_pass *)r->priv)->in;
  return spx_is_done(in) && in->error == MPI_SUCCESS ? (uint64_t)in->bytes : in->in.at;
}

/* The bytes before this one are not needed any more. */
static uint64_t gone(const spx_pass *p)
{
  return spx_is_done(p->out) ? (uint64_t)p->in->bytes : p->out->out.at;
}

/* The receiver has not begun, and the room is full: more of it. It was never used twice so far. */
static void grow(spx_pass *p)
{
  if (p->size >= p->most || gone(p) > 0 || p->in->in.at < p->size) return;
  uint64_t size = spx_least(2 * p->size, p->most);
  char *room = realloc(p->room, size);
  if (!room) return; /* the present room must suffice */
  p->room = room;
  p->size = size;
}

/* ---- the sender ---- */

/* The room is full, and not drained: the receiver has not begun, or has stopped. */
static bool is_stuck(spx_pass *p)
{
  uint64_t now = spx_now_ns(), out = gone(p);
  if (out != p->seen) p->since = now;
  p->seen = out;
  if (p->in->in.at - out < p->size) return false;
  return out == 0 ? p->size >= p->most : now - p->since > STUCK_NS;
}

/* The messages of one sender are requested one after the other: all at once would arrive late. Only
 * a stuck one is skipped. */
static bool is_behind(const spx_pass *p)
{
  for (spx_pass *e = first; e != p; e = e->next)
    if (e->from == p->from && !e->whole && !spx_is_done(e->in) &&
        e->asked < (uint64_t)e->in->bytes && !is_stuck(e))
      return true;
  return false;
}

/* Requests as much as there is room for, when that is worth a record. */
static int ask(spx_pass *p)
{
  if (p->whole || spx_is_done(p->in)) return 0;
  grow(p);
  uint64_t total = (uint64_t)p->in->bytes,
           to = spx_least(gone(p) + p->size / SPX_LINE * SPX_LINE, total);
  if (spx_is_done(p->out)) to = total; /* it has no taker: it is dropped */
  if (to <= p->asked || (to - p->asked < p->size / 4 && to < total)) return 0;
  if (is_behind(p)) return 0;
  p->asked = p->cts.bytes = to;
  spx_tx_put(p->from, SPX_REC_CTS, (spx_rec_words){.cts.how = SPX_CTS_PART}, &p->cts,
             sizeof p->cts);
  return 1;
}

/* ---- a message that was not sent ---- */

static void spoil(spx_request *out)
{
  spx_rec_id id = {.index = out->out.to.index, .gen = out->out.to.gen};
  spx_tx_put(out->peer, SPX_REC_ABORTED, SPX_REC_PLAIN, &id, sizeof id);
  spx_id_drop(out);
  out->state = SPX_S_NONE;
  spx_complete(out, MPIX_ERR_PROC_FAILED);
}

static bool is_asked(spx_request *out, const spx_rec_cts *cts)
{
  const spx_pass *p = out->priv;
  if (!p->aborted) return false;
  out->out.to = (spx_name){cts->rx_index, cts->rx_gen};
  spoil(out);
  return true;
}

void spx_pass_again(spx_request *out)
{
  spx_pass *p = out->priv;
  if (p->whole || p->aborted || p->in->error != MPI_SUCCESS || gone(p) == 0) return;
  spx_request *in = p->in;
  spx_id_drop(in);
  atomic_store_explicit(&in->done, 0, memory_order_relaxed);
  in->in.at = out->out.at = 0;
  p->asked = p->seen = 0;
  if (spx_places[p->from].dead || !spx_id_new(in, &p->cts.rx_index, &p->cts.rx_gen))
    spx_complete(in, spx_places[p->from].dead ? MPIX_ERR_PROC_FAILED : MPI_ERR_NO_MEM);
  else
    in->state = SPX_S_DATA;
}

static const spx_bulk room = {at_of, there, is_asked};

static void take_back(spx_pass *p)
{
  spx_request *out = p->out;
  p->aborted = true;
  switch (out->state) {
  case SPX_S_QUEUED:
    spx_tx_unqueue(out->peer, out);
    spx_id_drop(out);
    out->state = SPX_S_NONE;
    spx_complete(out, MPIX_ERR_PROC_FAILED);
    break;
  case SPX_S_SENT:
    if (!p->recalled) {
      spx_rec_cancel ask = {.index = out->id_slot - 1, .gen = out->id_gen, .seq = out->out.number};
      p->recalled = true;
      spx_rec_words message = {.envelope = {out->ctx, out->want_tag, out->as}};
      spx_tx_put(out->peer, SPX_REC_CANCEL, message, &ask, sizeof ask);
    }
    break;
  case SPX_S_STREAM:
    spx_tx_unqueue(out->peer, out);
    spoil(out);
    break;
  case SPX_S_PAUSED: spoil(out); break;
  case SPX_S_KEPT: /* its receiver is dead, and has no successor yet */
    spx_id_drop(out);
    spx_complete(out, MPIX_ERR_PROC_FAILED);
    break;
  default: break;
  }
}

void spx_receive_aborted(spx_request *r)
{
  if (SPX_UNLIKELY(r->flags & SPX_RF_WORD)) spx_replay_unsent(r);
  spx_id_drop(r);
  r->state = SPX_S_NONE;
  if (r->flags & (SPX_RF_PASS | SPX_RF_MATCHED)) {
    spx_complete(r, MPIX_ERR_PROC_FAILED);
    return;
  }
  r->comm->counts.received--;
  r->comm->counts.received_bytes -= (uint64_t)r->bytes;
  r->src = r->want_src;
  r->tag = r->want_tag;
  r->bytes = 0;
  r->full = 0;
  r->error = MPI_SUCCESS;
  r->peer = r->want_src >= 0 ? r->comm->peer[r->want_src] : SPX_NO_PEER;
  spx_recv_start(r);
}

bool spx_pass_on_aborted(uint32_t peer, const spx_rec *rec)
{
  spx_rec_id id;
  memcpy(&id, rec->data, sizeof id);
  spx_request *r = spx_stream_to(id.index, id.gen);
  if (r && r->kind == SPX_R_RECV && r->comm && r->peer == peer) spx_receive_aborted(r);
  return true;
}

/* ---- from the beginning to the end ---- */

static void end(spx_pass *p)
{
  /* a message that was not sent is no error */
  int error = p->in->error != MPI_SUCCESS ? MPI_SUCCESS : p->out->error;
  spx_request *user = p->user;
  user->bytes = p->in->bytes;
  spx_pass **at = &first;
  while (*at != p) at = &(*at)->next;
  *at = p->next;
  if (!*at) last = at;
  if (!first) spx_poller_del(&poller);
  spx_replay_withdraw(p->out);
  spx_request_free(p->in);
  spx_request_free(p->out);
  free(p->room);
  free(p);
  spx_complete(user, error);
}

/* Begins to hand it on; it comes from where it has come from. */
static void start_out(spx_pass *p)
{
  spx_comm *to = p->out->comm;
  int32_t rank = to->rank;
  p->sent = true;
  to->rank = p->in->src;
  spx_send_start(p->out);
  to->rank = rank;
}

/* Of a kept message: its receiver has it already, by an I/O process that has died since, or takes
 * nothing more. Its sender is notified, and answers no more. */
static void abandon(spx_pass *p)
{
  spx_request *in = p->in;
  spx_replay_unsent(in);
  spx_id_drop(in);
  in->state = SPX_S_NONE;
  spx_complete(in, MPI_SUCCESS);
}

/* Continues one message as far as possible. */
static int carry_on(spx_pass *p)
{
  int moved = 0;
  if (p->whole && !p->sent) {
    if (!spx_is_done(p->in)) return 0;
    if (p->in->error == MPI_SUCCESS)
      start_out(p);
    else
      spx_complete(p->out, MPI_SUCCESS);
  } else if (spx_is_done(p->in) && p->in->error != MPI_SUCCESS && !spx_is_done(p->out))
    take_back(p);
  if (spx_is_done(p->out) && !spx_is_done(p->in) && p->in->flags & SPX_RF_WORD) abandon(p);
  if (!spx_is_done(p->out) && !p->aborted) moved += spx_stream_resume(p->out);
  moved += ask(p);
  if (!spx_is_done(p->in) || !spx_is_done(p->out)) return moved;
  end(p);
  return moved + 1;
}

static int pump(spx_poller *unused)
{
  int moved = 0;
  (void)unused;
  for (spx_pass *p = first, *next; p; p = next) {
    next = p->next;
    moved += carry_on(p);
  }
  return moved;
}

static spx_request *part(spx_pass *p, spx_req_kind kind, spx_comm *c, uint64_t bytes)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  if (!r) return NULL;
  r->kind = (uint16_t)kind;
  r->flags =
      SPX_RF_ACTIVE | SPX_RF_INTERNAL | SPX_RF_HOLDS | (p->whole ? SPX_RF_MATCHED : SPX_RF_PASS);
  r->buf = p->whole ? p->room : NULL;
  r->count = r->bytes = (int64_t)bytes;
  r->full = bytes;
  r->type = spx_byte_type();
  r->comm = c;
  r->priv = p;
  spx_ref(&c->o);
  spx_ref(&r->type->o);
  return r;
}

static void begin(spx_pass *p, spx_unex *e, spx_comm *from, int dest)
{
  spx_request *in = p->in, *out = p->out;
  in->ctx = e->ctx;
  in->ctx_kind = (uint32_t)(e->ctx - from->ctx);
  in->src = in->want_src = e->src;
  in->tag = in->want_tag = e->tag;
  in->peer = e->proc;
  out->ctx = out->comm->ctx;
  out->src = out->want_src = dest;
  out->tag = out->want_tag = e->tag;
  out->peer = out->comm->peer[dest];
  if (spx_is_origin(e->src)) spx_origin_number = e->seq;
  if (!first) spx_poller_add(&poller);
  *last = p;
  last = &p->next;
  if (p->whole) {
    spx_take(in, e);
    carry_on(p);
    return;
  }
  from->counts.received++;
  from->counts.received_bytes += e->bytes;
  p->from = e->proc;
  p->cts = (spx_rec_cts){.index = e->index, .gen = e->gen};
  if (spx_places[e->proc].dead || !spx_id_new(in, &p->cts.rx_index, &p->cts.rx_gen))
    spx_complete(in, spx_places[e->proc].dead ? MPIX_ERR_PROC_FAILED : MPI_ERR_NO_MEM);
  else
    in->state = SPX_S_DATA;
  if (e->word) spx_replay_taken(e, in);
  spx_unex_free(e);
  start_out(p);
  carry_on(p);
}

int spx_pass_start(spx_unex *e, spx_comm *from, int dest, spx_comm *to, uint64_t most,
                   spx_request **request)
{
  spx_lock();
  spx_pass *p = calloc(1, sizeof *p);
  spx_request *user = (spx_request *)spx_new(SPX_K_REQ);
  if (p && user) {
    p->bulk = &room;
    p->user = user;
    p->whole = e->kind != SPX_REC_RTS;
    p->most =
        spx_least(most < ROOM_LEAST ? ROOM_LEAST : most, e->bytes < SPX_LINE ? SPX_LINE : e->bytes);
    p->size = p->whole ? p->most : spx_least(p->most, ROOM_FIRST);
    if (p->whole && p->size < e->bytes) p->size = e->bytes;
    p->room = malloc(p->size);
    p->in = part(p, SPX_R_RECV, from, e->bytes);
    p->out = part(p, SPX_R_SEND, to, e->bytes);
  }
  bool fine = p && user && p->in && p->out && p->room;
  if (fine) {
    user->kind = SPX_R_GO;
    user->flags = SPX_RF_ACTIVE;
    user->src = user->want_src = dest;
    user->tag = user->want_tag = e->tag;
    *request = user;
    user->comm = to;
    begin(p, e, from, dest);
  } else {
    if (p && p->in) spx_request_free(p->in);
    if (p && p->out) spx_request_free(p->out);
    if (user) spx_retire(SPX_K_REQ, &user->o);
    if (p) free(p->room);
    free(p);
  }
  spx_unlock();
  return fine ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}
