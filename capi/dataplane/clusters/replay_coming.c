/* replay_coming.c - see replay.h: frames that come, and when they enter matching. */
#include "replay_flow.h"
#include <stdlib.h>
#include "copies.h"
#include "dp.h"
#include "diag.h"
#include "pass.h"
#include "progress.h"

/* Else it stays where it is: its sender has credit for so much, and what is more is announced
 * only. */
static bool has_room(void)
{
  const spx_core *c = &spx_replay_core;
  if (spx_flow.ncoming >= COMING_MOST) return false;
  return spx_flow.own ||
         (spx_flow.ncoming + c->waiting < COMING_MOST && c->waiting_bytes <= spx_set.kept_max);
}

static bool take_one(void)
{
  /* Acknowledgements always: without them no place becomes free where a program waits until its
   * messages are accepted, and receives nothing meanwhile. */
  bool room = has_room();
  int ack = spx_flow_addressed(TAG_ACK, spx_replay_core.me),
      claim = spx_flow_addressed(TAG_CLAIM, spx_replay_core.me);
  spx_unex *e = spx_match_unexpected(spx_flow.wire->ctx, MPI_ANY_SOURCE, room ? MPI_ANY_TAG : ack);
  /* another one waits for that */
  if (!e && !room) e = spx_match_unexpected(spx_flow.wire->ctx, MPI_ANY_SOURCE, claim);
  if (!e || (uint32_t)e->src >= spx_replay_core.participants)
    return false; /* of one that has come since: it is about to be known (spx_replay_grow) */
  /* announced, and the process that has its bytes is gone */
  if (e->kind == SPX_REC_RTS && spx_proc_dead(e->proc)) {
    spx_flow.broken[e->proc] = spx_flow_serial_of(e->proc);
    spx_unex_drop(e);
    return true;
  }
  coming *a = malloc(sizeof *a + e->bytes);
  if (!a) return false;
  *a = (coming){.from = (uint32_t)e->src,
                .proc = e->proc,
                .life = spx_flow_serial_of(e->proc),
                .tag = e->tag,
                .bytes = e->bytes};
  spx_unex_remove(e);
  int rc = spx_imrecv(a->data, (int64_t)a->bytes, spx_flow.byte, e, spx_flow.wire, SPX_RF_INTERNAL,
                      &a->r);
  if (rc != MPI_SUCCESS) spx_fatal(rc, "no memory for a message that comes");
  *spx_flow.last = a;
  spx_flow.last = &a->next;
  spx_flow.ncoming++;
  return true;
}

/* Of a process that has a successor. */
static bool is_before(const coming *a)
{
  return a->from < spx_replay_core.participants &&
         (spx_flow.wire->peer[a->from] != a->proc || spx_flow.life[a->from] != a->life);
}

/* A process that sends as a participant is that participant's: what is accepted is acknowledged to
 * no other. Its number may belong to another process by now, so what it sends has its serial
 * number. */
static void place_sender(coming *a, int kind)
{
  size_t at =
      kind == TAG_MESSAGE ? offsetof(spx_frame_head, process) : offsetof(spx_frame_ack, process);
  if (a->bytes < at + sizeof a->life) return;
  memcpy(&a->life, a->data + at, sizeof a->life);
  if (a->life == spx_flow_serial_of(a->proc) && !spx_proc_dead(a->proc))
    spx_flow_place(a->from, a->proc);
}

static void handle(coming *a)
{
  spx_frame_head h;
  int kind = a->tag & TAG_KIND;
  if (a->r->error == MPI_SUCCESS) place_sender(a, kind);
  if (a->r->error != MPI_SUCCESS) /* its sender has died in the middle of it */
    spx_flow.broken[a->proc] = a->life;
  else if (a->tag != spx_flow_addressed(kind, spx_replay_core.me))
    ; /* for the process that had this number before */
  else if (kind != TAG_MESSAGE && is_before(a))
    ; /* it was sent to the successor again, which is to confirm it */
  else if (kind == TAG_ACK)
    spx_core_acked(&spx_replay_core, a->from, (const spx_frame_ack *)(void *)a->data,
                   (uint32_t)(a->bytes / sizeof(spx_frame_ack)));
  else if (kind == TAG_CLAIM && spx_proc_dead(a->proc))
    ; /* it will send none of that any more */
  else if (kind == TAG_CLAIM)
    spx_core_claimed(&spx_replay_core, a->from, (const spx_frame_claim *)(void *)a->data,
                     (uint32_t)(a->bytes / sizeof(spx_frame_claim)));
  /* else one before it is missing: all are sent again */
  else if (a->bytes >= sizeof h && spx_flow.broken[a->proc] != a->life) {
    memcpy(&h, a->data, sizeof h);
    if (h.bytes != a->bytes - sizeof h || !spx_replay_sound(&h, a->data + sizeof h) ||
        (h.announced && spx_flow.whole))
      spx_fatal(MPI_ERR_INTERN, "process %u has sent a message whose head is none", a->proc);
    if (!spx_core_arrived(&spx_replay_core, &h, a->data + sizeof h))
      spx_fatal(MPI_ERR_NO_MEM, "no memory for a message that has come");
  }
}

static int take_in(void)
{
  int n = 0;
  while (take_one()) n++;
  for (coming *a; (a = spx_flow.first) && spx_is_done(a->r);) {
    spx_flow.first = a->next;
    if (!spx_flow.first) spx_flow.last = &spx_flow.first;
    spx_flow.ncoming--;
    handle(a);
    spx_request_free(a->r);
    free(a);
    n++;
  }
  return n;
}

bool spx_flow_deliver(void *arg, const spx_frame_head *head, uint32_t number, uint32_t token,
                      const uint8_t *data)
{
  (void)arg;
  spx_frame_head h = *head;
  /* Of another cluster: for MPI_COMM_WORLD, be it a newer one than when it was sent. */
  if (!spx_io_process && spx_is_origin(h.src)) h.ctx = spx_world->ctx + SPX_CTX_P2P;
  uint32_t peer = spx_flow.wire->peer[h.from];
  return h.announced ? spx_replay_announced(&h, peer, number, token, data)
                     : spx_deliver_frame(peer, &h, number, data);
}

void spx_flow_again(void *arg, const spx_frame_head *head, uint32_t token, const uint8_t *data)
{
  (void)arg;
  spx_replay_again(head, spx_flow.wire->peer[head->from], token, data);
}

/* The program polls for a message: one for it may be behind others that it does not receive. A rank
 * that is taken over transparently is no exception: admitted messages are in its message log, and
 * in each commit. */
static bool is_asked(void)
{
  return spx_flow.asks || spx_flow.leaves || spx_posted_count || spx_diag_now.probe.comm;
}

/* Its sender may wait for what has come of it before it sends what is looked for: tags are of no
 * account. */
void spx_replay_missed(uint64_t ctx, int src)
{
  if (!spx_replay_on || spx_io_process) return; /* there each such call requests one */
  for (const spx_came *m = spx_replay_core.ready; m && !spx_flow.asks; m = m->next) {
    bool other = spx_is_origin(m->head.src); /* of another cluster: for MPI_COMM_WORLD (deliver) */
    spx_flow.asks =
        ctx == (other ? spx_world->ctx + SPX_CTX_P2P : m->head.ctx) &&
        (src == MPI_ANY_SOURCE || src == m->head.src || spx_origin_fits(src, m->head.src));
  }
}

/* One more, behind n others: the number of messages that the program does not receive is
 * bounded. */
static bool may_let_in(int n)
{
  const spx_came *m = spx_replay_core.ready;
  if (n == 0 && is_asked()) return true;
  return spx_unex_count < WAITING_MOST &&
         (spx_flow.own || !m || spx_unex_count == 0 || m->head.bytes <= spx_set.eager_max);
}

int spx_flow_let_in(bool inside)
{
  int n = 0;
  while (!spx_flow.closed && may_let_in(n) && spx_core_may_accept(&spx_replay_core, inside) &&
         spx_core_accept(&spx_replay_core))
    n++;
  if (n) spx_flow.asks = false;
  return n;
}

/* A participant that has left after MPI_Finalize, or is dead and not replaced, accepts nothing
 * more; nor does a dead I/O process, when there is no other way. */
int spx_flow_look_for_left(void)
{
  int n = 0;
  for (uint32_t p = 0; p < spx_replay_core.participants; p++) {
    uint32_t proc = spx_flow.wire->peer[p];
    if (p == spx_replay_core.me || !spx_proc_left(proc)) continue;
    if (spx_replay_core.claiming && !(spx_proc_dies(proc) && spx_flow.heals[p]))
      spx_core_silent(&spx_replay_core, p);
    if (!spx_replay_core.first[p]) continue;
    bool gone =
        !spx_flow.iop[p] ? !spx_flow.heals[p] : !spx_io_process && spx_flow.choose(SPX_NO_TAG) < 0;
    bool dead = spx_proc_dies(proc);
    if (dead && !gone) continue;
    uint64_t before = spx_replay_core.lost;
    spx_core_left(&spx_replay_core, p);
    n++;
    spx_replay_lost += dead ? spx_replay_core.lost - before : 0;
    if (spx_replay_lost) spx_due |= SPX_DUE_TAKEOVER; /* that is reported */
  }
  return n;
}

/* How the present process of this index has ended: not an earlier one, whose death this process
 * still notes as long as no communicator leads there. */
spx_flow_end spx_flow_end_of(uint32_t proc)
{
  const spx_proc *p = spx_proc_of(proc);
  uint32_t state = __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE);
  uint32_t owner = __atomic_load_n(&p->owner_state, __ATOMIC_ACQUIRE);
  if (state == SPX_AGENT_DEAD || state == SPX_AGENT_EMPTY || owner == SPX_OWNER_ABORTED)
    return DEAD;
  return state == SPX_AGENT_EXITED || owner == SPX_OWNER_FINALIZED ? LEFT : RUNS;
}

/* Nothing but ranks that have not started yet keeps MPI_Finalize: I/O processes hold the messages
 * for them. A rank that is replaced, or an I/O process that died holding messages of this process,
 * comes back soon as a rule: it is waited for, up to SOON_NS. */
bool spx_flow_is_only_awaited(void)
{
  const uint64_t SOON_NS = 10000000000;
  uint64_t now = spx_now_ns();
  bool later = false, soon = false;
  if (!spx_flow.left_at) spx_flow.left_at = now;
  for (uint32_t p = 0; p < spx_replay_core.participants; p++) {
    uint32_t proc = spx_flow.wire->peer[p];
    bool came = proc < spx_flow.nprocs && spx_life_of(proc) != 0,
         dead = came && spx_flow_end_of(proc) == DEAD;
    later |= !spx_flow.iop[p] && !spx_flow.apart[p] && (!came || (spx_flow.heals[p] && dead));
    soon |= dead && (spx_flow.iop[p] ? spx_replay_core.first[p] != NULL
                                     : !spx_flow.apart[p] && spx_flow.heals[p]);
  }
  return later && (!soon || now - spx_flow.left_at > SOON_NS);
}

/* No transfer of this process is under way. */
static bool is_quiet(void)
{
  return !spx_flow.own && !spx_flow.flights && !spx_flow.first && !spx_unex_count &&
         !spx_replay_core.kept_bytes && !spx_replay_core.ready && !spx_replay_core.owed &&
         !spx_replay_has_words();
}

/* A process that sleeps does not poll again until it is woken: the cause is processed now. */
static bool is_look_due(void)
{
  uint32_t bell = __atomic_load_n(&spx_proc_of(spx_me)->bell, __ATOMIC_ACQUIRE);
  if (++spx_flow.polls % LOOK_EVERY && bell == spx_flow.bell && !spx_flow.changed) return false;
  spx_flow.bell = bell;
  spx_flow.changed = false;
  return true;
}

int spx_replay_poll(void)
{
  if (SPX_UNLIKELY(spx_replay_core.failing) && !spx_flow.busy && spx_io_process &&
      spx_diag_now.probe.comm)
    spx_core_asked(&spx_replay_core, SPX_NEEDS_ALL_BUT_FAILED);
  if (spx_flow.busy || is_quiet()) return 0;
  spx_flow.busy = true;
  int n = spx_flow_land() + take_in();
  if (!spx_replay_hold && !spx_flow.observes) n += spx_flow_let_in(true);
  if (is_look_due()) {
    n += spx_flow_look_for_left();
    n += spx_replay_look_for_lost();
  }
  spx_core_tell(&spx_replay_core);
  spx_flow.busy = false;
  return n;
}
