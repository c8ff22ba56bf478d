/* replay_going.c - see replay.h: frames and acknowledgements of this process, until their memory is
 * free. */
#include "replay_flow.h"
#include <stdlib.h>
#include "copies.h"
#include "dp.h"
#include "diag.h"
#include "pass.h"
#include "progress.h"

static bool is_reachable(uint32_t participant)
{
  uint32_t proc = spx_flow.wire->peer[participant];
  return proc < spx_map.nprocs && !spx_proc_left(proc);
}

/* A participant's process may be another one's by now, as tables of the system arrive late: a
 * message for another participant is dropped there, and goes again to the process that has that
 * place. */
int spx_flow_addressed(int kind, uint32_t participant)
{
  return kind | (int)((participant + 1) * (TAG_KIND + 1));
}

static void fly(uint32_t participant, int kind, const void *data, uint64_t n, flight *f)
{
  int rc = spx_isend(data, (int64_t)n, spx_flow.byte, (int)participant,
                     spx_flow_addressed(kind, participant), spx_flow.wire, SPX_CTX_P2P,
                     SPX_M_STANDARD, SPX_RF_INTERNAL, &f->r);
  if (rc != MPI_SUCCESS) spx_fatal(rc, "no memory for a message on its way");
  f->next = spx_flow.flights;
  spx_flow.flights = f;
}

static flight *new_flight(uint64_t bytes)
{
  flight *f = malloc(sizeof *f + bytes);
  if (!f) spx_fatal(MPI_ERR_NO_MEM, "no memory for a message on its way");
  f->m = NULL;
  return f;
}

static bool must_wait(void) { return spx_flow.held || !spx_copies_have(spx_replay_core.version); }

/* All that is kept for a participant is sent again, in order: what waits of it already goes with
 * that, not before. */
static void hold_no_more(spx_kept *m)
{
  for (held *h = spx_flow.held; h; h = h->next)
    if (h->m == m) {
      h->m = NULL;
      spx_core_unbusy(&spx_replay_core, m);
    }
}

void spx_flow_hold(spx_kept *m, uint32_t participant, int tag, const void *data, size_t n)
{
  if (m && m->busy) hold_no_more(m);
  held *h = malloc(sizeof *h + n);
  if (!h) spx_fatal(MPI_ERR_NO_MEM, "no memory for a message on its way");
  *h = (held){.need = spx_replay_core.version,
              .m = m,
              .participant = participant,
              .bytes = (uint32_t)n,
              .tag = tag};
  if (n) memcpy(h->data, data, n);
  if (m) m->busy++;
  *spx_flow.held_last = h;
  spx_flow.held_last = &h->next;
  spx_copies_go();
}

/* Its send waits no more: it is on its way. */
static void let_go_on(spx_kept *m)
{
  spx_request *r = m->waits;
  m->waits = NULL;
  if (r) spx_replay_settled(r, true);
}

static void send_now(spx_kept *m);
static void tell_now(uint32_t participant, int tag, const void *data, size_t n);

int spx_replay_release(void)
{
  int n = 0;
  for (held *h; (h = spx_flow.held) && (!spx_copies_gate || spx_copies_have(h->need)); n++) {
    spx_flow.held = h->next;
    if (!spx_flow.held) spx_flow.held_last = &spx_flow.held;
    if (h->m) {
      let_go_on(h->m);
      if (!h->m->gone) send_now(h->m);
      spx_core_unbusy(&spx_replay_core, h->m);
    } else if (h->bytes)
      tell_now(h->participant, h->tag, h->data, h->bytes);
    free(h);
  }
  return n;
}

void spx_flow_transmit(void *arg, spx_kept *m)
{
  (void)arg;
  if (SPX_UNLIKELY(spx_copies_gate) && must_wait())
    spx_flow_hold(m, 0, TAG_MESSAGE, NULL, 0);
  else
    send_now(m);
}

static void send_now(spx_kept *m)
{
  if (!is_reachable(m->to)) return; /* it goes to the successor */
  if (m->head.announced && m->waits) spx_replay_word_goes(m, spx_flow.wire->peer[m->to]);
  flight *f = new_flight(0);
  f->m = m;
  m->busy++;
  m->head.process = spx_flow_serial_of(spx_me);
  fly(m->to, TAG_MESSAGE, &m->head, sizeof m->head + m->head.bytes, f);
}

static void tell(uint32_t participant, int tag, const void *data, size_t n)
{
  if (SPX_UNLIKELY(spx_copies_gate) && must_wait())
    spx_flow_hold(NULL, participant, tag, data, n);
  else
    tell_now(participant, tag, data, n);
}

void spx_flow_acknowledge(void *arg, uint32_t participant, const spx_frame_ack *acks, uint32_t n)
{
  (void)arg;
  tell(participant, TAG_ACK, acks, n * sizeof *acks);
}

void spx_flow_claim(void *arg, uint32_t participant, const spx_frame_claim *claims, uint32_t n)
{
  (void)arg;
  tell(participant, TAG_CLAIM, claims, n * sizeof *claims);
}

static void tell_now(uint32_t participant, int tag, const void *data, size_t n)
{
  if (!is_reachable(participant))
    /* the successor sends again, and is known from then on: that is acknowledged, or claimed,
     * again */
    return;
  flight *f = new_flight(n);
  memcpy(f->data, data, n);
  ((spx_frame_ack *)(void *)f->data)->process =
      spx_flow_serial_of(spx_me); /* a claim begins with one */
  fly(participant, tag, f->data, n, f);
}

int spx_flow_land(void)
{
  int n = 0;
  for (flight **at = &spx_flow.flights, *f; (f = *at);) {
    if (!spx_is_done(f->r)) {
      at = &f->next;
      continue;
    }
    *at = f->next;
    spx_request_free(f->r);
    if (f->m) spx_core_unbusy(&spx_replay_core, f->m);
    free(f);
    n++;
  }
  return n;
}

/* A message of a process that keeps much already is complete when it was accepted, and so is a
 * synchronous one. */
static bool is_held_back(const spx_request *r)
{
  return !spx_flow.own && (r->mode == SPX_M_SYNC || spx_replay_core.kept_bytes > spx_set.kept_max);
}

/* The message is on its way, or delivered, whatever this process does now. One that is not, such as
 * a long one, is complete when its receiver has accepted it. */
static bool has_gone(const spx_kept *m)
{
  return spx_flow.flights && spx_flow.flights->m == m && spx_is_done(spx_flow.flights->r);
}

void spx_flow_settled(void *arg, void *waits, bool accepted)
{
  (void)arg;
  spx_replay_settled(waits, accepted || spx_flow.own); /* spx_replay_drops */
}

/* After a blocking send, polls once in ANSWER_CYCLES: relays wait for answers to claims, and a
 * program that only sends makes no other progress. With takeover the next call does
 * (spx_replay_enter). */
void spx_flow_answer_others(void)
{
  if (spx_io_process) return;
  uint64_t now = spx_cycles();
  if (now - spx_flow.looked < ANSWER_CYCLES) return;
  spx_flow.looked = now;
  spx_poll(true);
}

bool spx_replay_send(spx_request *r)
{
  uint32_t to = spx_replay_participant(r->peer);
  if (to == UINT32_MAX) return false;
  uint64_t n = spx_capacity(r);
  bool leaving = !spx_io_process && spx_flow.iop[to];
  /* messages sent before this go first */
  if (leaving && spx_due & SPX_DUE_TAKEOVER) spx_replay_reroute();
  uint32_t lane = leaving ? spx_flow.lane((int)spx_flow.iop[to] - 1, r->want_tag) : 0;
  bool announced = !spx_flow.whole && spx_replay_announces(r, n);
  spx_kept *m =
      spx_core_message(&spx_replay_core, to, leaving, lane, r->ctx, r->want_tag, r->as,
                       announced ? sizeof(spx_rec_rts) : n, spx_io_process ? spx_origin_number : 0);
  if (!m) {
    spx_complete(r, MPI_ERR_NO_MEM);
    return true;
  }
  if (announced) {
    r->bytes = (int64_t)n;
    spx_count_sent(r->comm, n);
    spx_replay_word(r, m);
    return true;
  }
  if (r->flags & SPX_RF_PASS)
    spx_bulk_load(r, 0, n, m->data); /* all of it is there: it has come as a frame */
  else
    spx_pack(r->buf, r->count, r->type, 0, (int64_t)n, m->data);
  r->bytes = (int64_t)n;
  spx_count_sent(r->comm, n);
  bool held_back = is_held_back(r);
  if (spx_flow.own) {
    bool waits =
        spx_copies_gate && spx_replay_core.mode != SPX_CORE_PRELUDE && r->flags & SPX_RF_BLOCKING;
    held **before = spx_flow.held_last;
    spx_core_send(&spx_replay_core, m);
    /* else it would leave with the program's next call */
    if (SPX_UNLIKELY(waits) && spx_flow.held_last != before) {
      m->waits = r;
      r->state = SPX_S_KEPT;
      return true;
    }
  } else {
    m->waits = r;
    r->state = SPX_S_KEPT;
    spx_core_send(&spx_replay_core, m);
    if (held_back || !has_gone(m)) return true;
    m->waits = NULL;
  }
  r->state = SPX_S_EAGER;
  spx_complete(r, MPI_SUCCESS);
  if (r->flags & SPX_RF_BLOCKING && !spx_flow.own) spx_flow_answer_others();
  return true;
}
