/* replay.c - see replay.h: frames on their way, and when they enter matching. */
#include "replay.h"
#include <stdlib.h>
#include "copies.h"
#include "dp.h"
#include "diag.h"
#include "pass.h"
#include "progress.h"

enum {
  TAG_MESSAGE = 1,
  TAG_ACK = 2,
  TAG_CLAIM = 3,
  TAG_KIND = 3,     /* these bits; above them 1 + the party that it is for */
  COMING_MOST = 64, /* frames that are taken in at once; others wait where they are, and in the end at their senders */
  ANSWER_CYCLES = 300000, /* of spx_cycles, some 100 us: interval of polls between blocking sends (answer_others) */
  WAITING_MOST = 64,      /* messages that the program has not asked for: with more, one is let in at a time */
  LOOK_EVERY =
      64, /* polls, between looks for parties that have left: where nothing has told of one, as an end on another host may */
  KEPT_MOST = 64 << 20 /* bytes: with more kept, calls of ranks that are taken over transparently wait */
};

bool spx_replay_on;
spx_core spx_replay_core;
int spx_replay_hold;
uint64_t spx_replay_lost;

typedef struct flight { /* a frame or acknowledgement of ours, until its memory is free */
  struct flight *next;
  spx_request *r;
  spx_kept *m;
  uint8_t data[];
} flight;
typedef struct held { /* one that waits until the copy of this process's message log has what came before it */
  struct held *next;
  uint64_t need; /* version of the log */
  spx_kept *m;   /* a message; NULL: so many bytes of acknowledgements, or claims, for party */
  uint32_t party, bytes;
  int tag;
  uint8_t data[];
} held;
typedef struct coming { /* one that comes */
  struct coming *next;
  spx_request *r;
  uint32_t from, proc, life;
  int tag;
  uint64_t bytes;
  uint8_t data[];
} coming;

typedef struct { /* the I/O process that a lane goes by, when that one has died which it has gone by */
  bool known;
  uint32_t lane, party;
} detour;

static struct {
  spx_comm *wire; /* rank: party */
  spx_type *byte;
  uint32_t iops;    /* so many I/O processes */
  uint32_t *iop;    /* by party: 1 + its number among them; 0: it is a rank */
  uint32_t *at_iop; /* by that number: the party */
  int (*kind)(uint32_t fn);
  int (*choose)(int tag);
  uint32_t (*lane)(int iop, int tag);
  bool *heals;
  bool *apart;      /* by party: a rank to which nothing goes that this process sends */
  bool *away;       /* by party: an I/O process that has died, and was seen to */
  bool asks;        /* the program has looked for a message since one was let in, and may find it */
  bool leaves;      /* in MPI_Finalize: what has come is let in, though it is not asked for */
  uint64_t left_at; /* ns: when that began */
  bool busy;        /* in spx_replay_poll: what it calls polls as well */
  bool own;         /* this process's rank is taken over transparently */
  bool whole;       /* nothing is announced: some rank is taken over transparently */
  bool closed;      /* spx_replay_close */
  bool observes;    /* the program's call tells what has come without waiting for it: nothing may come meanwhile */
  detour *detours;  /* by lane modulo the number of I/O processes */
  flight *flights;
  held *held, **held_last; /* in their order */
  coming *first, **last;
  uint32_t ncoming, polls;
  uint64_t looked;         /* when answer_others did last, by spx_cycles */
  uint32_t bell;           /* of this process, at the last look for parties that have left: deaths ring it */
  bool changed;            /* who is there, and what stands for whom, has changed since */
  uint32_t nprocs, *party; /* by process: its party + 1 */
  uint32_t *life;          /* by party: serial_of its process */
  uint32_t *past;          /* by process: serial_of the last one whose place another has */
  uint32_t *past_of;       /* by process: 1 + the party that past is of */
  uint32_t *broken;        /* by process: serial_of one that has died while a message was on its way here */
} x;

/* 1 + the serial number of the process that has this number now; 0: none has had it yet. */
static uint32_t serial_of(uint32_t proc) { return spx_life_of(proc) ? spx_proc_of(proc)->serial + 1 : 0; }

/* ---- going ------------------------------------------------------------------------------------------------------- */

static bool is_reachable(uint32_t party)
{
  uint32_t proc = x.wire->peer[party];
  return proc < spx_map.nprocs && !spx_proc_left(proc);
}

/* Who has a party's place may be another one's process by now, as tables of the system arrive late: what is for another party is dropped there, and goes again to the process that has that place. */
static int addressed(int kind, uint32_t party) { return kind | (int)((party + 1) * (TAG_KIND + 1)); }

static void fly(uint32_t party, int kind, const void *data, uint64_t n, flight *f)
{
  int rc = spx_isend(data, (int64_t)n, x.byte, (int)party, addressed(kind, party), x.wire, SPX_CTX_P2P, SPX_M_STANDARD,
                     SPX_RF_INTERNAL, &f->r);
  if (rc != MPI_SUCCESS) spx_fatal(rc, "no memory for a message on its way");
  f->next = x.flights;
  x.flights = f;
}

static flight *new_flight(uint64_t bytes)
{
  flight *f = malloc(sizeof *f + bytes);
  if (!f) spx_fatal(MPI_ERR_NO_MEM, "no memory for a message on its way");
  f->m = NULL;
  return f;
}

static bool must_wait(void) { return x.held || !spx_copies_have(spx_replay_core.version); }

/* All that is kept for a party is sent again, in order: what waits of it already goes with that, not before. */
static void hold_no_more(spx_kept *m)
{
  for (held *h = x.held; h; h = h->next)
    if (h->m == m) {
      h->m = NULL;
      spx_core_unbusy(&spx_replay_core, m);
    }
}

static void hold(spx_kept *m, uint32_t party, int tag, const void *data, size_t n)
{
  if (m && m->busy) hold_no_more(m);
  held *h = malloc(sizeof *h + n);
  if (!h) spx_fatal(MPI_ERR_NO_MEM, "no memory for a message on its way");
  *h = (held){.need = spx_replay_core.version, .m = m, .party = party, .bytes = (uint32_t)n, .tag = tag};
  if (n) memcpy(h->data, data, n);
  if (m) m->busy++;
  *x.held_last = h;
  x.held_last = &h->next;
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
static void tell_now(uint32_t party, int tag, const void *data, size_t n);

int spx_replay_release(void)
{
  int n = 0;
  for (held *h; (h = x.held) && (!spx_copies_gate || spx_copies_have(h->need)); n++) {
    x.held = h->next;
    if (!x.held) x.held_last = &x.held;
    if (h->m) {
      let_go_on(h->m);
      if (!h->m->gone) send_now(h->m);
      spx_core_unbusy(&spx_replay_core, h->m);
    } else if (h->bytes)
      tell_now(h->party, h->tag, h->data, h->bytes);
    free(h);
  }
  return n;
}

static void transmit(void *arg, spx_kept *m)
{
  (void)arg;
  if (SPX_UNLIKELY(spx_copies_gate) && must_wait())
    hold(m, 0, TAG_MESSAGE, NULL, 0);
  else
    send_now(m);
}

static void send_now(spx_kept *m)
{
  if (!is_reachable(m->to)) return; /* it goes to whoever takes that place */
  if (m->head.announced && m->waits) spx_replay_word_goes(m, x.wire->peer[m->to]);
  flight *f = new_flight(0);
  f->m = m;
  m->busy++;
  m->head.process = serial_of(spx_me);
  fly(m->to, TAG_MESSAGE, &m->head, sizeof m->head + m->head.bytes, f);
}

static void tell(uint32_t party, int tag, const void *data, size_t n)
{
  if (SPX_UNLIKELY(spx_copies_gate) && must_wait())
    hold(NULL, party, tag, data, n);
  else
    tell_now(party, tag, data, n);
}

static void acknowledge(void *arg, uint32_t party, const spx_frame_ack *acks, uint32_t n)
{
  (void)arg;
  tell(party, TAG_ACK, acks, n * sizeof *acks);
}

static void claim(void *arg, uint32_t party, const spx_frame_claim *claims, uint32_t n)
{
  (void)arg;
  tell(party, TAG_CLAIM, claims, n * sizeof *claims);
}

static void tell_now(uint32_t party, int tag, const void *data, size_t n)
{
  if (!is_reachable(party))
    return; /* who takes that place sends again, and is known from then on: that is acknowledged, or claimed, again */
  flight *f = new_flight(n);
  memcpy(f->data, data, n);
  ((spx_frame_ack *)(void *)f->data)->process = serial_of(spx_me); /* a claim begins with one */
  fly(party, tag, f->data, n, f);
}

static int land(void)
{
  int n = 0;
  for (flight **at = &x.flights, *f; (f = *at);) {
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

/* A message of a process that keeps much already is complete when it was accepted, and so is a synchronous one. */
static bool is_held_back(const spx_request *r)
{
  return !x.own && (r->mode == SPX_M_SYNC || spx_replay_core.kept_bytes > spx_set.kept_max);
}

/* It is on its way, or there, whatever this process does now. What is not, as a long one, is complete when it was accepted. */
static bool has_gone(const spx_kept *m) { return x.flights && x.flights->m == m && spx_is_done(x.flights->r); }

static void settled(void *arg, void *waits, bool accepted)
{
  (void)arg;
  spx_replay_settled(waits, accepted || x.own); /* spx_replay_drops */
}

/* After a blocking send, polls once in ANSWER_CYCLES: relays wait for answers to claims, and a program that only sends makes no other progress. With takeover the next call does (spx_replay_enter). */
static void answer_others(void)
{
  if (spx_io_process) return;
  uint64_t now = spx_cycles();
  if (now - x.looked < ANSWER_CYCLES) return;
  x.looked = now;
  spx_poll(true);
}

bool spx_replay_send(spx_request *r)
{
  uint32_t to = spx_replay_party(r->peer);
  if (to == UINT32_MAX) return false;
  uint64_t n = spx_capacity(r);
  bool leaving = !spx_io_process && x.iop[to];
  if (leaving && spx_due & SPX_DUE_TAKEOVER) spx_replay_reroute(); /* what was sent before this goes first */
  uint32_t lane = leaving ? x.lane((int)x.iop[to] - 1, r->want_tag) : 0;
  bool announced = !x.whole && spx_replay_announces(r, n);
  spx_kept *m = spx_core_message(&spx_replay_core, to, leaving, lane, r->ctx, r->want_tag, r->as,
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
  if (x.own) {
    bool waits = spx_copies_gate && spx_replay_core.mode != SPX_CORE_PRELUDE && r->flags & SPX_RF_BLOCKING;
    held **before = x.held_last;
    spx_core_send(&spx_replay_core, m);
    if (SPX_UNLIKELY(waits) && x.held_last != before) { /* else it would leave with the program's next call */
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
  if (r->flags & SPX_RF_BLOCKING && !x.own) answer_others();
  return true;
}

/* ---- who is who -------------------------------------------------------------------------------------------------- */

/* Makes a process a party's, unless the party has had it before its present one: tables of the system arrive late, and each lists
 * all parties. A process number may have been reserved for one party and then given to another's process, so the check is by party. */
static void place(uint32_t party, uint32_t proc)
{
  uint32_t before = x.wire->peer[party], life = proc < x.nprocs ? serial_of(proc) : 0;
  if (life == 0 || (before == proc && life == x.life[party])) return;
  if (x.past_of[proc] == party + 1 && life <= x.past[proc]) return;
  x.past[before] = x.life[party];
  x.past_of[before] = party + 1;
  x.life[party] = life;
  x.changed = true;
  x.wire->peer[party] = proc;
  x.party[proc] = party + 1;
  x.away[party] = false;
  spx_core_replaced(&spx_replay_core, party);
}

/* ---- coming ------------------------------------------------------------------------------------------------------ */

/* Else it stays where it is: its sender has credit for so much, and what is more is announced only. */
static bool has_room(void)
{
  const spx_core *c = &spx_replay_core;
  if (x.ncoming >= COMING_MOST) return false;
  return x.own || (x.ncoming + c->waiting < COMING_MOST && c->waiting_bytes <= spx_set.kept_max);
}

static bool take_one(void)
{
  /* Acknowledgements always: without them no place comes free where a program waits until what it has sent is accepted, and asks for nothing meanwhile. */
  bool room = has_room();
  int ack = addressed(TAG_ACK, spx_replay_core.me), claim = addressed(TAG_CLAIM, spx_replay_core.me);
  spx_unex *e = spx_match_unexpected(x.wire->ctx, MPI_ANY_SOURCE, room ? MPI_ANY_TAG : ack);
  if (!e && !room) e = spx_match_unexpected(x.wire->ctx, MPI_ANY_SOURCE, claim); /* another one waits for that */
  if (!e || (uint32_t)e->src >= spx_replay_core.parties)
    return false; /* of one that has come since: it is about to be known (spx_replay_grow) */
  if (e->kind == SPX_REC_RTS && spx_proc_dead(e->proc)) { /* announced, and nobody is there any more to get it from */
    x.broken[e->proc] = serial_of(e->proc);
    spx_unex_drop(e);
    return true;
  }
  coming *a = malloc(sizeof *a + e->bytes);
  if (!a) return false;
  *a =
      (coming){.from = (uint32_t)e->src, .proc = e->proc, .life = serial_of(e->proc), .tag = e->tag, .bytes = e->bytes};
  spx_unex_remove(e);
  int rc = spx_imrecv(a->data, (int64_t)a->bytes, x.byte, e, x.wire, SPX_RF_INTERNAL, &a->r);
  if (rc != MPI_SUCCESS) spx_fatal(rc, "no memory for a message that comes");
  *x.last = a;
  x.last = &a->next;
  x.ncoming++;
  return true;
}

/* Of a process whose place another one has. */
static bool is_before(const coming *a)
{
  return a->from < spx_replay_core.parties && (x.wire->peer[a->from] != a->proc || x.life[a->from] != a->life);
}

/* A process that sends as a party is that party's: what is accepted is acknowledged to no other. Its number may belong to
 * another process by now, so what it sends has its serial number. */
static void place_sender(coming *a, int kind)
{
  spx_frame_head h;
  spx_frame_ack first;
  if (kind == TAG_MESSAGE && a->bytes >= sizeof h) {
    memcpy(&h, a->data, sizeof h);
    a->life = h.process;
  } else if (kind != TAG_MESSAGE && a->bytes >= sizeof first) {
    memcpy(&first, a->data, sizeof first);
    a->life = first.process;
  } else
    return;
  if (a->life == serial_of(a->proc) && !spx_proc_dead(a->proc)) place(a->from, a->proc);
}

static void handle(coming *a)
{
  spx_frame_head h;
  int kind = a->tag & TAG_KIND;
  if (a->r->error == MPI_SUCCESS) place_sender(a, kind);
  if (a->r->error != MPI_SUCCESS) /* its sender has died in the middle of it */
    x.broken[a->proc] = a->life;
  else if (a->tag != addressed(kind, spx_replay_core.me))
    ; /* for the process that had this number before */
  else if (kind != TAG_MESSAGE && is_before(a))
    ; /* who has its place was sent them again, and is to say that it has them */
  else if (kind == TAG_ACK)
    spx_core_acked(&spx_replay_core, a->from, (const spx_frame_ack *)(void *)a->data,
                   (uint32_t)(a->bytes / sizeof(spx_frame_ack)));
  else if (kind == TAG_CLAIM && spx_proc_dead(a->proc))
    ; /* it will send nothing of that any more */
  else if (kind == TAG_CLAIM)
    spx_core_claimed(&spx_replay_core, a->from, (const spx_frame_claim *)(void *)a->data,
                     (uint32_t)(a->bytes / sizeof(spx_frame_claim)));
  else if (a->bytes >= sizeof h && x.broken[a->proc] != a->life) { /* else one before it is missing: all come again */
    memcpy(&h, a->data, sizeof h);
    if (h.bytes != a->bytes - sizeof h || !spx_replay_sound(&h, a->data + sizeof h) || (h.announced && x.whole))
      spx_fatal(MPI_ERR_INTERN, "process %u has sent a message whose head is none", a->proc);
    if (!spx_core_arrived(&spx_replay_core, &h, a->data + sizeof h))
      spx_fatal(MPI_ERR_NO_MEM, "no memory for a message that has come");
  }
}

static int take_in(void)
{
  int n = 0;
  while (take_one()) n++;
  for (coming *a; (a = x.first) && spx_is_done(a->r);) {
    x.first = a->next;
    if (!x.first) x.last = &x.first;
    x.ncoming--;
    handle(a);
    spx_request_free(a->r);
    free(a);
    n++;
  }
  return n;
}

static bool deliver(void *arg, const spx_frame_head *head, uint32_t number, uint32_t token, const uint8_t *data)
{
  (void)arg;
  spx_frame_head h = *head;
  /* Of another cluster: for MPI_COMM_WORLD, be it a newer one than when it was sent. */
  if (!spx_io_process && spx_is_origin(h.src)) h.ctx = spx_world->ctx + SPX_CTX_P2P;
  uint32_t peer = x.wire->peer[h.from];
  return h.announced ? spx_replay_announced(&h, peer, number, token, data) : spx_deliver_frame(peer, &h, number, data);
}

static void again(void *arg, const spx_frame_head *head, uint32_t token, const uint8_t *data)
{
  (void)arg;
  spx_replay_again(head, x.wire->peer[head->from], token, data);
}

/* The program looks for a message: what has come for it may stand behind others that it does not ask for. A rank that
 * is taken over transparently is no exception: what is let in is in its message log, and in each commit. */
static bool is_asked(void) { return x.asks || x.leaves || spx_posted_count || spx_diag_now.probe.comm; }

/* Its sender may wait for what has come of it before it sends what is looked for: tags are of no account. */
void spx_replay_missed(uint64_t ctx, int src)
{
  if (!spx_replay_on || spx_io_process) return; /* there each such call asks */
  for (const spx_came *m = spx_replay_core.ready; m && !x.asks; m = m->next) {
    bool other = spx_is_origin(m->head.src); /* of another cluster: for MPI_COMM_WORLD (deliver) */
    x.asks = ctx == (other ? spx_world->ctx + SPX_CTX_P2P : m->head.ctx) &&
             (src == MPI_ANY_SOURCE || src == m->head.src || spx_origin_fits(src, m->head.src));
  }
}

/* One more, behind n others: what the program does not ask for is bounded. */
static bool may_let_in(int n)
{
  const spx_came *m = spx_replay_core.ready;
  if (n == 0 && is_asked()) return true;
  return spx_unex_count < WAITING_MOST && (x.own || !m || spx_unex_count == 0 || m->head.bytes <= spx_set.eager_max);
}

static int let_in(bool inside)
{
  int n = 0;
  while (!x.closed && may_let_in(n) && spx_core_may_accept(&spx_replay_core, inside) &&
         spx_core_accept(&spx_replay_core))
    n++;
  if (n) x.asks = false;
  return n;
}

/* Who has left after MPI_Finalize, or is dead and not replaced, accepts nothing more; nor does an I/O process that is dead, when there is no other way. */
static int look_for_left(void)
{
  int n = 0;
  for (uint32_t p = 0; p < spx_replay_core.parties; p++) {
    uint32_t proc = x.wire->peer[p];
    if (p == spx_replay_core.me || !spx_proc_left(proc)) continue;
    if (spx_replay_core.claiming && !(spx_proc_dies(proc) && x.heals[p])) spx_core_silent(&spx_replay_core, p);
    if (!spx_replay_core.first[p]) continue;
    bool gone = !x.iop[p] ? !x.heals[p] : !spx_io_process && x.choose(SPX_NO_TAG) < 0;
    bool dead = spx_proc_dies(proc);
    if (dead && !gone) continue;
    uint64_t before = spx_replay_core.lost;
    spx_core_left(&spx_replay_core, p);
    n++;
    spx_replay_lost += dead ? spx_replay_core.lost - before : 0;
    if (spx_replay_lost) spx_due |= SPX_DUE_TAKEOVER; /* that is said */
  }
  return n;
}

/* How the process has ended that has this number now: not one that had it before, whose death this process goes on noting as long as no communicator leads there. */
static enum { RUNS, LEFT, DEAD } end_of(uint32_t proc)
{
  const spx_proc *p = spx_proc_of(proc);
  uint32_t state = __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE);
  uint32_t owner = __atomic_load_n(&p->owner_state, __ATOMIC_ACQUIRE);
  if (state == SPX_AGENT_DEAD || state == SPX_AGENT_EMPTY || owner == SPX_OWNER_ABORTED) return DEAD;
  return state == SPX_AGENT_EXITED || owner == SPX_OWNER_FINALIZED ? LEFT : RUNS;
}

/* Nothing but ranks that have not started yet keeps MPI_Finalize: I/O processes hold the messages for them. A rank that is replaced, or an
 * I/O process that died holding messages of this process, comes back soon as a rule: it is waited for, up to SOON_NS. */
static bool is_only_awaited(void)
{
  const uint64_t SOON_NS = 10000000000;
  uint64_t now = spx_now_ns();
  bool later = false, soon = false;
  if (!x.left_at) x.left_at = now;
  for (uint32_t p = 0; p < spx_replay_core.parties; p++) {
    uint32_t proc = x.wire->peer[p];
    bool came = proc < x.nprocs && spx_life_of(proc) != 0, dead = came && end_of(proc) == DEAD;
    later |= !x.iop[p] && !x.apart[p] && (!came || (x.heals[p] && dead));
    soon |= dead && (x.iop[p] ? spx_replay_core.first[p] != NULL : !x.apart[p] && x.heals[p]);
  }
  return later && (!soon || now - x.left_at > SOON_NS);
}

/* Nothing of ours is under way. */
static bool is_quiet(void)
{
  return !x.own && !x.flights && !x.first && !spx_unex_count && !spx_replay_core.kept_bytes && !spx_replay_core.ready &&
         !spx_replay_core.owed && !spx_replay_has_words();
}

/* A process that sleeps does not poll again until something wakes it: what that tells of is looked at now. */
static bool is_look_due(void)
{
  uint32_t bell = __atomic_load_n(&spx_proc_of(spx_me)->bell, __ATOMIC_ACQUIRE);
  if (++x.polls % LOOK_EVERY && bell == x.bell && !x.changed) return false;
  x.bell = bell;
  x.changed = false;
  return true;
}

int spx_replay_poll(void)
{
  if (SPX_UNLIKELY(spx_replay_core.failing) && !x.busy && spx_io_process && spx_diag_now.probe.comm)
    spx_core_asked(&spx_replay_core, SPX_NEEDS_ALL_BUT_FAILED);
  if (x.busy || is_quiet()) return 0;
  x.busy = true;
  int n = land() + take_in();
  if (!spx_replay_hold && !x.observes) n += let_in(true);
  if (is_look_due()) {
    n += look_for_left();
    n += spx_replay_look_for_lost();
  }
  spx_core_tell(&spx_replay_core);
  x.busy = false;
  return n;
}

/* ---- the program's calls -------------------------------------------------------------------------------------------- */

static void progress_outside(void)
{
  x.observes = true;
  spx_poll(true);
  x.busy = true;
  let_in(false);
  spx_core_tell(&spx_replay_core);
  x.busy = false;
}

/* The sum of what is kept is bounded: but others may wait for what we accept. */
static void wait_for_room(void)
{
  while (spx_replay_core.kept_bytes > KEPT_MOST && spx_replay_core.mode == SPX_CORE_LIVE && !spx_io_process) {
    uint32_t ticket = spx_ticket();
    progress_outside();
    if (spx_due) spx_run_due();
    if (spx_replay_core.kept_bytes > KEPT_MOST) spx_wait_event(ticket, spx_now_ns() + 1000000);
  }
}

/* All of the message log up to this version has gone to who keeps the copy. */
static void wait_until_sent(uint64_t version)
{
  while (spx_copies_gate && !spx_copies_sent(version)) {
    uint32_t ticket = spx_ticket();
    progress_outside();
    if (spx_due) spx_run_due();
    if (spx_copies_gate && !spx_copies_sent(version)) spx_wait_event(ticket, spx_now_ns() + 1000000);
  }
}

void spx_replay_all_out(void)
{
  spx_lock();
  while (spx_copies_gate && x.held && spx_replay_on) {
    uint32_t ticket = spx_ticket();
    spx_poll(true);
    if (spx_copies_gate && x.held) spx_wait_event(ticket, spx_now_ns() + 1000000);
  }
  spx_unlock();
}

void spx_replay_commits(uint64_t last)
{
  spx_lock();
  wait_until_sent(last);
  spx_unlock();
}

void spx_replay_enter(uint32_t fn)
{
  int kind = x.kind(fn);
  if (kind & SPX_REPLAY_LOCAL) return;
  spx_lock();
  x.observes = true;
  spx_poll(true);
  if (SPX_UNLIKELY(spx_due)) spx_run_due();
  x.busy = true;
  spx_core_enter(&spx_replay_core, fn, kind & SPX_REPLAY_SENDS);
  x.busy = false;
  progress_outside();
  wait_for_room();
  x.observes = kind & SPX_REPLAY_OBSERVES && !spx_io_process;
  if (kind & SPX_REPLAY_ASKS && spx_io_process) {
    spx_core_asked(&spx_replay_core, SPX_NEEDS_UNSEEN);
    x.asks = true;
  } else
    spx_core_other(&spx_replay_core);
  spx_unlock();
}

/* ---- beginning, end, change -------------------------------------------------------------------------------------------- */

static void failed(void *arg, const char *why)
{
  (void)arg;
  spx_fatal(MPI_ERR_OTHER, "transparent takeover: %s", why);
}

static bool no_room(void *arg, uint64_t at, uint64_t bytes)
{
  (void)arg;
  (void)at;
  (void)bytes;
  return false;
}

uint32_t spx_replay_party(uint32_t proc) { return proc < x.nprocs ? x.party[proc] - 1 : UINT32_MAX; }

/* What is known by party, and by I/O process; of those that are known nothing changes but whether they are replaced. false: no memory, and nothing has changed. */
static bool make_tables(const spx_replay_setup *s)
{
  uint32_t before = spx_replay_on ? spx_replay_core.parties : 0, iops = 0;
  for (uint32_t p = 0; p < s->parties; p++) iops += s->iop[p] != 0;
  bool *heals = calloc(s->parties, sizeof *heals), *away = calloc(s->parties, sizeof *away);
  bool *apart = calloc(s->parties, sizeof *apart);
  uint32_t *life = calloc(s->parties, sizeof *life), *iop = calloc(s->parties, sizeof *iop);
  uint32_t *at_iop = calloc(iops + 1, sizeof *at_iop);
  detour *detours = calloc(iops + 1, sizeof *detours);
  bool all = heals && away && apart && life && iop && at_iop && detours;
  for (uint32_t p = 0; p < s->parties && all; p++) {
    heals[p] = s->heals[p];
    if ((iop[p] = s->iop[p])) at_iop[iop[p] - 1] = p;
    if (p < before) {
      away[p] = x.away[p];
      apart[p] = x.apart[p];
      life[p] = x.life[p];
    } else if (s->procs[p] < x.nprocs) {
      x.party[s->procs[p]] = p + 1;
      life[p] = serial_of(s->procs[p]);
    }
  }
  free(all ? x.heals : heals);
  free(all ? x.away : away);
  free(all ? x.apart : apart);
  free(all ? x.life : life);
  free(all ? x.iop : iop);
  free(all ? x.at_iop : at_iop);
  free(all ? x.detours : detours);
  if (!all) return false;
  x.heals = heals;
  x.away = away;
  x.apart = apart;
  x.life = life;
  x.iop = iop;
  x.at_iop = at_iop;
  x.detours = detours;
  x.iops = iops;
  return true;
}

int spx_replay_begin(const spx_replay_setup *s)
{
  spx_core_io io = {transmit, acknowledge, claim, deliver, again, settled, s->room ? s->room : no_room, failed, NULL};
  x.nprocs = spx_map.nprocs;
  x.party = calloc(x.nprocs, sizeof *x.party);
  x.past = calloc(x.nprocs, sizeof *x.past);
  x.past_of = calloc(x.nprocs, sizeof *x.past_of);
  x.broken = calloc(x.nprocs, sizeof *x.broken);
  if (!x.party || !x.past || !x.past_of || !x.broken || !make_tables(s)) return MPI_ERR_NO_MEM;
  x.wire = s->wire;
  x.kind = s->kind;
  x.choose = s->choose;
  x.lane = s->lane;
  x.byte = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  x.last = &x.first;
  x.held_last = &x.held;
  x.own = s->vault != NULL;
  x.whole = s->whole;
  if (!spx_core_begin(&spx_replay_core, &io, s->parties, s->me, serial_of(spx_me), s->iop[s->me] != 0, s->vault))
    return MPI_ERR_NO_MEM;
  spx_replay_core.sparing = spx_copies_on;
  spx_harm = 1; /* no short path past us */
  spx_replay_on = true;
  spx_late_source = spx_replay_poll;
  return MPI_SUCCESS;
}

int spx_replay_grow(const spx_replay_setup *s, uint32_t *ranks)
{
  uint32_t before = spx_replay_core.parties;
  if (!make_tables(s) || !spx_core_grow(&spx_replay_core, s->parties)) return MPI_ERR_NO_MEM;
  for (uint32_t p = 0; p < s->parties; p++) ranks[p] = p < before ? x.wire->peer[p] : s->procs[p];
  x.changed = true;
  return MPI_SUCCESS;
}

void spx_replay_end(void)
{
  if (!spx_replay_on) return;
  spx_replay_on = false;
  spx_late_source = NULL;
  spx_replay_words_end();
  land();
  for (held *h; (h = x.held);) {
    x.held = h->next;
    if (h->m) spx_core_unbusy(&spx_replay_core, h->m);
    free(h);
  }
  while (x.flights) { /* copies of what was accepted: their memory stays, since somebody may read it yet */
    flight *f = x.flights;
    x.flights = f->next;
    if (f->m) f->m->gone = true;
    free(f);
  }
  spx_core_end(&spx_replay_core);
  free(x.party);
  free(x.heals);
  free(x.away);
  free(x.apart);
  free(x.life);
  free(x.iop);
  free(x.at_iop);
  free(x.detours);
  free(x.past);
  free(x.past_of);
  free(x.broken);
  memset(&x, 0, sizeof x);
}

void spx_replay_place(uint32_t party, uint32_t proc)
{
  if (!spx_replay_on || party >= spx_replay_core.parties) return;
  spx_lock();
  place(party, proc);
  bool changed = x.changed;
  spx_unlock();
  if (changed) spx_ring_self();
}

/* Of one lane all goes by the same. Lanes that are tags are chosen for by tag, again if need be. */
static uint32_t other_iop(void *arg, const spx_kept *m)
{
  detour *all = arg, *d = &all[m->lane % x.iops];
  if (!d->known || d->lane != m->lane) {
    int iop = x.choose(m->head.tag);
    *d = (detour){true, m->lane, iop < 0 ? UINT32_MAX : x.at_iop[iop]};
  }
  return d->party;
}

void spx_replay_reroute(void)
{
  spx_lock();
  for (uint32_t p = 0; p < spx_replay_core.parties && !spx_io_process; p++) {
    if (!x.iop[p] || !spx_proc_dead(x.wire->peer[p]) || (x.away[p] && !spx_replay_core.first[p])) continue;
    memset(x.detours, 0, x.iops * sizeof *x.detours);
    x.away[p] = true;
    x.changed = true;
    spx_core_reroute(&spx_replay_core, p, other_iop, x.detours);
  }
  spx_unlock();
}

uint64_t spx_replay_number(uint32_t token, uint32_t *given)
{
  spx_lock();
  uint32_t party;
  uint64_t n = spx_core_number(&spx_replay_core, token, &party);
  *given = party - 1;
  spx_unlock();
  return n;
}

void spx_replay_give(uint32_t token, uint32_t proc)
{
  spx_lock();
  uint32_t party = spx_replay_party(proc);
  if (party != UINT32_MAX) spx_core_give(&spx_replay_core, token, party);
  spx_unlock();
}

void spx_replay_close(void) { x.closed = true; }

void spx_replay_changed(void)
{
  if (!spx_replay_on) return;
  spx_lock();
  x.changed = true; /* who is dead may not be replaced any more */
  if (!x.own) spx_core_unsettle(&spx_replay_core);
  spx_unlock();
}

void spx_replay_count_lost(void)
{
  if (!spx_replay_on) return;
  spx_lock();
  x.changed = true;
  spx_poll(true);
  spx_unlock();
}

/* A synchronous one says that its receiver has begun. */
static bool may_go_on(const void *waits) { return ((const spx_request *)waits)->mode != SPX_M_SYNC; }

int spx_replay_excuse(uint32_t proc)
{
  uint32_t party = spx_replay_party(proc);
  return party == UINT32_MAX ? 0 : spx_core_excuse(&spx_replay_core, party, may_go_on);
}

bool spx_replay_awaited(uint32_t proc)
{
  uint32_t p = spx_replay_party(proc);
  return p != UINT32_MAX && !x.iop[p] && x.heals[p] && spx_proc_dies(proc);
}

bool spx_replay_is_relay(uint32_t proc)
{
  uint32_t party = spx_replay_party(proc);
  return party != UINT32_MAX && x.iop[party];
}

bool spx_replay_is_gone(uint32_t party, uint32_t life)
{
  uint32_t proc = x.wire->peer[party], now = proc < x.nprocs ? serial_of(proc) : 0;
  if (now < life) return !x.heals[party]; /* it is a later one: the tables that say so are on their way */
  return now > life || end_of(proc) != RUNS;
}

void spx_replay_heals(uint32_t party, bool heals)
{
  if (!spx_replay_on || party >= spx_replay_core.parties || x.heals[party] == heals) return;
  spx_lock();
  x.heals[party] = heals;
  x.changed = true;
  spx_unlock();
  spx_ring_self();
}

void spx_replay_apart(uint32_t party, bool apart)
{
  if (spx_replay_on && party < spx_replay_core.parties) x.apart[party] = apart;
}

bool spx_replay_coming(void)
{
  if (spx_replay_core.mode != SPX_CORE_LIVE) return false; /* a call that is made again gets what it got then */
  return x.first || spx_replay_core.ready || spx_match_unexpected(x.wire->ctx, MPI_ANY_SOURCE, MPI_ANY_TAG);
}

bool spx_replay_idle(void)
{
  spx_lock();
  x.leaves = true;
  look_for_left();
  if (spx_io_process) spx_core_asked(&spx_replay_core, SPX_NEEDS_NOTHING);
  spx_core_tell(&spx_replay_core);
  bool idle = spx_core_idle(&spx_replay_core) && !(x.own && (x.first || x.held));
  if (!x.own && !spx_io_process && !x.flights && is_only_awaited()) idle = true;
  spx_unlock();
  return idle;
}
