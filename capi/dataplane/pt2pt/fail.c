/* fail.c - the effect of deaths and revocation on pending operations, and control messages for the
 * failure protocols.
 *
 * The agent publishes a death (agent_state, then death_seq, then all bells). The next process to
 * poll notices: records of the dead process are delivered first, then all operations that can never
 * complete do so with MPIX_ERR_PROC_FAILED, and the hook is due. */
#include <stdlib.h>
#include "fail.h"
#include "dp.h"
#include "kinds.h"
#include "other_way.h"

uint32_t spx_ft_parts;
static const spx_failure_observer *const *observers;
bool (*spx_send_parks)(spx_request *r);
int spx_ctrl_early;

typedef struct ctrl_msg {
  struct ctrl_msg *next;
  uint32_t from, n;
  uint8_t *bytes;
} ctrl_msg;
static ctrl_msg *ctrl_first, *ctrl_last;

int spx_comm_error(const spx_comm *c, uint32_t ctx_kind, uint32_t peer)
{
  if (SPX_UNLIKELY(c->revoked) && ctx_kind != SPX_CTX_FT) return MPIX_ERR_REVOKED;
  if (SPX_UNLIKELY(spx_ndead) && peer != SPX_NO_PEER && spx_proc_dead(peer) &&
      !spx_other->replaced(c, ctx_kind))
    return MPIX_ERR_PROC_FAILED;
  return MPI_SUCCESS;
}

void spx_fail_attach(const spx_failure_observer *const *list) { observers = list; }

/* ---- completing what can not complete ---- */

typedef struct {
  uint32_t peer;     /* SPX_NO_PEER: any */
  const spx_comm *c; /* NULL: any */
  int error;
} failing;

static bool must_fail(const spx_request *r, const failing *d)
{
  /* it continues */
  if (SPX_UNLIKELY(r->flags & SPX_RF_KEPT) && (!d->c || d->c->flags & SPX_C_REPLAY)) return false;
  if (d->c) return r->comm == d->c && r->ctx_kind != SPX_CTX_FT;
  return r->peer == d->peer && !spx_other->outlives(r);
}

/* Ends an operation that nothing is left of here. */
static void finish(spx_request *r, const failing *d)
{
  if (d->error == MPIX_ERR_PROC_FAILED && !d->c && spx_send_parks && spx_send_parks(r)) return;
  spx_complete(r, d->error);
}

static void fail_posted(spx_request *r, void *arg)
{
  const failing *d = arg;
  if (!must_fail(r, d)) return;
  spx_unpost(r);
  spx_complete(r, d->error);
}

static void fail_id(spx_request *r, void *arg)
{
  const failing *d = arg;
  if (SPX_UNLIKELY(r->flags & (SPX_RF_KEPT | SPX_RF_WORD)) && !d->c && r->peer == d->peer) {
    spx_other->lost(r, d->error);
    return;
  }
  if (!must_fail(r, d)) return;
  if (spx_kinds[r->kind]) {
    spx_kinds[r->kind]->ends(r, d->error);
    return;
  }
  bool was_complete = r->state == SPX_S_RECALL;
  spx_asked_forget(r);
  spx_tx_unqueue(r->peer, r);
  spx_id_drop(r); /* retracts the buffer: a receiver that is copying will see it */
  r->state = SPX_S_NONE;
  if (was_complete)
    spx_complete(r, MPI_SUCCESS);
  else
    finish(r, d);
}

static void fail_queues(uint32_t peer, const failing *d)
{
  spx_tx *tx = &spx_txs[peer];
  for (;;) { /* from the start after each: completing may change the lists */
    spx_request *r = NULL;
    for (spx_txitem *it = tx->pend; it && !r; it = it->next)
      if (it->r && must_fail(it->r, d)) r = it->r;
    for (spx_request *s = tx->stream; s && !r; s = s->next)
      if (must_fail(s, d)) r = s;
    if (!r) return;
    spx_tx_unqueue(peer, r);
    spx_id_drop(r);
    finish(r, d);
  }
}

static void end_in_vain(spx_request *r, void *arg)
{
  const failing *d = arg;
  if (r->kind != SPX_R_SEND || !must_fail(r, d)) return;
  bool was_complete = r->state == SPX_S_RECALL;
  spx_id_drop(r);
  r->state = SPX_S_NONE;
  spx_complete(r, was_complete ? MPI_SUCCESS : d->error);
}

void spx_sends_in_vain(uint32_t peer)
{
  failing d = {.peer = peer, .error = MPIX_ERR_PROC_FAILED};
  fail_queues(peer, &d);
  spx_each_id(end_in_vain, &d);
}

/* life: of the process that has died. Its number may have gone to another one by now, which is none
 * of the dead. */
static void note_death(uint32_t i, uint16_t life)
{
  spx_rx *rx = &spx_rxs[i];
  spx_rx_drain(i, life); /* its messages from before its death are delivered */
  spx_net_peer_failed(i);
  /* else the next process of this number would be taken for it: spx_rx_stale */
  if (!rx->base) spx_rx_init_as(i, life);
  spx_places[i].dead = true;
  spx_ndead++;
  spx_deaths++;
  spx_stat.failures++;
  spx_harm = 1;
  spx_note(SPX_EV_FAILURE, i, spx_proc_of(i)->world_rank, 0, 0);
  if (spx_tracer_now) spx_tracer_now->died(i);
  free(rx->ctrl);
  rx->ctrl = NULL;
  failing d = {.peer = i, .error = MPIX_ERR_PROC_FAILED};
  spx_each_posted(fail_posted, &d);
  spx_each_id(fail_id, &d);
  fail_queues(i, &d);
  spx_tx_kill(i);
  for (const spx_failure_observer *const *o = observers; *o; o++)
    if ((*o)->died) (*o)->died(i);
}

int spx_notice_deaths(void)
{
  uint32_t seq = __atomic_load_n(&spx_segment->death_seq, __ATOMIC_ACQUIRE);
  if (seq == spx_map.seen_deaths) return 0;
  spx_map.seen_deaths = seq;
  int n = 0;
  for (uint32_t i = 0; i < spx_segment->nprocs; i++) {
    /* before the state: note_death */
    uint32_t life = __atomic_load_n(&spx_proc_of(i)->incarnation, __ATOMIC_ACQUIRE);
    if (i == spx_me || spx_places[i].dead || spx_rx_stale(i, &spx_rxs[i]) ||
        __atomic_load_n(&spx_proc_of(i)->agent_state, __ATOMIC_ACQUIRE) != SPX_AGENT_DEAD)
      continue;
    note_death(i, (uint16_t)life);
    n++;
  }
  uint32_t layout = __atomic_load_n(&spx_segment->layout_seq, __ATOMIC_ACQUIRE);
  /* they must learn of members that have left as well */
  bool parts = __atomic_load_n(&spx_ft_parts, __ATOMIC_RELAXED) != 0;
  bool changed = n || parts || layout != spx_map.seen_layout;
  if (changed) spx_due |= SPX_DUE_HOOK;
  for (const spx_failure_observer *const *o = observers; changed && *o; o++)
    if ((*o)->changed) (*o)->changed();
  spx_map.seen_layout = layout;
  spx_net_news();
  spx_settings_refresh();
  return n + 1;
}

static void fail_self(spx_unex *e, void *arg)
{
  spx_request *r = e->self;
  if (!r || !must_fail(r, arg)) return;
  spx_unex_drop(e);
  spx_complete(r, MPIX_ERR_REVOKED);
}

void spx_comm_revoked(spx_comm *c)
{
  spx_lock();
  spx_harm = 1;
  failing d = {.peer = SPX_NO_PEER, .c = c, .error = MPIX_ERR_REVOKED};
  spx_each_posted(fail_posted, &d);
  spx_each_id(fail_id, &d);
  spx_each_unexpected(fail_self, &d);
  for (uint32_t i = 0; i < spx_map.nprocs; i++) fail_queues(i, &d);
  for (const spx_failure_observer *const *o = observers; *o; o++)
    if ((*o)->revoked) (*o)->revoked(c);
  spx_happened(1);
  spx_unlock();
  spx_ring_self();
}

static void drop_if_of(spx_unex *e, void *arg)
{
  if (e->ctx - *(uint64_t *)arg < SPX_CTX_STEP) spx_unex_drop(e);
}

static void move_if_of(spx_unex *e, void *arg)
{
  const uint64_t *ctx = arg;
  if (e->ctx - ctx[0] >= SPX_CTX_STEP || !spx_is_origin(e->src)) return;
  spx_unex_remove(e);
  e->ctx = ctx[1] + (e->ctx - ctx[0]);
  spx_unex_add(e);
}

void spx_inbound_move(uint64_t from, uint64_t to)
{
  uint64_t ctx[2] = {from, to};
  spx_lock();
  if (!spx_inbound_to) spx_inbound_from = from;
  spx_inbound_to = to;
  if (spx_unex_count) spx_each_unexpected(move_if_of, ctx);
  spx_unlock();
}

void spx_comm_dropped(uint64_t ctx)
{
  if (!spx_segment) return;
  spx_lock();
  if (spx_unex_count) spx_each_unexpected(drop_if_of, &ctx);
  spx_unlock();
}

/* ---- control messages ---- */

void spx_ctrl_expected(void)
{
  if (SPX_LIKELY(!__atomic_load_n(&spx_ctrl_early, __ATOMIC_SEQ_CST))) return;
  spx_lock();
  __atomic_store_n(&spx_ctrl_early, 2, __ATOMIC_SEQ_CST);
  spx_due |= SPX_DUE_HOOK;
  spx_unlock();
}

static bool enqueue(uint32_t from, uint8_t *bytes, uint32_t n)
{
  ctrl_msg *m = malloc(sizeof *m);
  if (!m) return false;
  *m = (ctrl_msg){.from = from, .n = n, .bytes = bytes};
  if (ctrl_first)
    ctrl_last->next = m;
  else
    ctrl_first = m;
  ctrl_last = m;
  spx_due |= SPX_DUE_HOOK;
  return true;
}

bool spx_ctrl_piece(uint32_t peer, spx_rx *rx, const spx_rec *rec)
{
  /* of the message, at most */
  uint32_t left = rx->ctrl ? rx->ctrl_size - rx->ctrl_n : SPX_CTRL_MAX;
  if (SPX_UNLIKELY(!spx_piece_fits(rec, left, rx->ctrl != NULL))) {
    spx_refuse(peer, "a piece of a control message that does not fit");
    return true;
  }
  if (!rx->ctrl) {
    rx->ctrl_size = rec->len + (uint32_t)rec->as.piece.more;
    rx->ctrl_n = 0;
    if (!(rx->ctrl = malloc(rx->ctrl_size ? rx->ctrl_size : 1))) return false;
  }
  memcpy(rx->ctrl + rx->ctrl_n, rec->data, rec->len);
  if (rx->ctrl_n + rec->len < rx->ctrl_size) {
    rx->ctrl_n += rec->len;
    return true;
  }
  if (!enqueue(peer, rx->ctrl, rx->ctrl_size)) return false;
  rx->ctrl = NULL;
  return true;
}

int spx_ctrl_send(uint32_t i, const void *bytes, uint32_t n)
{
  if (n > SPX_CTRL_MAX || !spx_segment) return MPI_ERR_INTERN;
  spx_lock();
  int rc = MPI_SUCCESS;
  if (i == spx_me) {
    uint8_t *copy = malloc(n ? n : 1);
    if (copy) memcpy(copy, bytes, n);
    if (!copy || !enqueue(i, copy, n)) rc = MPI_ERR_NO_MEM;
  } else
    spx_tx_put(i, SPX_REC_CTRL, (spx_rec_words){.piece.ctx = SPX_CTX_FT}, bytes, n);
  spx_unlock();
  return rc;
}

int64_t spx_ctrl_recv(void *buf, uint32_t max, uint32_t *from)
{
  spx_lock();
  ctrl_msg *m = ctrl_first;
  int64_t n = m ? (int64_t)m->n : -1;
  if (m && m->n <= max) {
    ctrl_first = m->next;
    memcpy(buf, m->bytes, m->n);
    *from = m->from;
    free(m->bytes);
    free(m);
  }
  spx_unlock();
  return n;
}
