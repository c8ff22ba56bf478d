/* replay.c - see replay.h: frames on their way, and when they enter matching. */
#include "replay.h"
#include <stdlib.h>
#include "dp.h"
#include "pass.h"

enum {
  TAG_MESSAGE = 1,
  TAG_ACK = 2,
  COMING_MOST = 64,  /* frames that are taken in at once; others wait where they are, and in the end at their senders */
  WAITING_MOST = 64, /* messages that nobody has asked for: with more, one is let in at a time */
  LOOK_EVERY = 64,   /* polls, between looks for parties that have left */
  KEPT_MOST = 64 << 20 /* bytes: with more kept, calls wait until some were accepted */
};

bool spx_replay_on;
spx_core spx_replay_core;
int spx_replay_hold;
void (*spx_replay_due)(void);

typedef struct flight { /* a frame or acknowledgement of ours, until its memory is free */
  struct flight *next;
  spx_request *r;
  spx_kept *m;
  uint8_t data[];
} flight;
typedef struct coming { /* one that comes */
  struct coming *next;
  spx_request *r;
  uint32_t from;
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
  uint32_t iops;
  uint32_t (*origin)(int cluster, int rank);
  int (*kind)(uint32_t fn);
  int (*choose)(int tag);
  uint32_t (*lane)(int iop, int tag);
  bool *heals;
  bool *away;      /* by party: an I/O process that has died, and was seen to */
  bool busy;       /* in spx_replay_poll: what it calls polls as well */
  bool observes;   /* the program's call tells what has come without waiting for it: nothing may come meanwhile */
  detour *detours; /* by lane modulo the number of I/O processes */
  flight *flights;
  coming *first, **last;
  uint32_t ncoming, polls;
  uint32_t nprocs, *party; /* by process: its party + 1 */
  uint32_t *life, *past;   /* incarnations: by party, its process's; by process, the last whose place another has */
} x;

/* ---- going ------------------------------------------------------------------------------------------------------- */

static bool is_reachable(uint32_t party)
{
  uint32_t proc = x.wire->peer[party];
  return proc < spx_map.nprocs && !spx_proc_left(proc);
}

static void fly(uint32_t party, int tag, const void *data, uint64_t n, flight *f)
{
  int rc =
      spx_isend(data, (int64_t)n, x.byte, (int)party, tag, x.wire, SPX_CTX_P2P, SPX_M_STANDARD, SPX_RF_INTERNAL, &f->r);
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

static void transmit(void *arg, spx_kept *m)
{
  (void)arg;
  if (!is_reachable(m->to)) return; /* it goes to whoever takes that place */
  flight *f = new_flight(0);
  f->m = m;
  m->busy++;
  fly(m->to, TAG_MESSAGE, &m->head, sizeof m->head + m->head.bytes, f);
}

static void acknowledge(void *arg, uint32_t party, const spx_frame_ack *acks, uint32_t n)
{
  (void)arg;
  if (!is_reachable(party))
    return; /* who takes that place sends again, and is known from then on: that is acknowledged again */
  flight *f = new_flight(n * sizeof *acks);
  memcpy(f->data, acks, n * sizeof *acks);
  fly(party, TAG_ACK, f->data, n * sizeof *acks, f);
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

bool spx_replay_send(spx_request *r)
{
  uint32_t to = spx_replay_party(r->peer);
  if (to == UINT32_MAX) return false;
  uint64_t n = spx_capacity(r), of = spx_io_process ? spx_origin_number : 0;
  bool leaving = spx_io_process ? of != 0 : to >= x.iops;
  if (leaving && spx_due & SPX_DUE_TAKEOVER) spx_replay_reroute(); /* what was sent before this goes first */
  uint32_t lane = leaving && !spx_io_process ? x.lane((int)(to - x.iops), r->want_tag) : 0;
  spx_kept *m =
      spx_core_message(&spx_replay_core, to, leaving, lane, r->ctx, r->want_tag, r->as, n,
                       leaving && spx_io_process ? x.origin(spx_origin_cluster(r->as), spx_origin_rank(r->as)) : 0, of);
  if (!m) {
    spx_complete(r, MPI_ERR_NO_MEM);
    return true;
  }
  if (r->flags & SPX_RF_PASS)
    spx_pass_load(r, 0, n, m->data); /* all of it is there: it has come as a frame */
  else
    spx_pack(r->buf, r->count, r->type, 0, (int64_t)n, m->data);
  r->bytes = (int64_t)n;
  spx_count_sent(r->comm, n);
  spx_core_send(&spx_replay_core, m);
  r->state = SPX_S_EAGER;
  spx_complete(r, MPI_SUCCESS);
  return true;
}

/* ---- who is who -------------------------------------------------------------------------------------------------- */

static uint32_t life_of(uint32_t proc) { return __atomic_load_n(&spx_proc_of(proc)->incarnation, __ATOMIC_ACQUIRE); }

/* A process is a party from now on, unless it has been one before another: the table of the system comes late, and each version of it tells of all. */
static void place(uint32_t party, uint32_t proc)
{
  uint32_t before = x.wire->peer[party], life = proc < x.nprocs ? life_of(proc) : 0;
  if (life == 0 || life <= x.past[proc] || (before == proc && life == x.life[party])) return;
  x.past[before] = x.life[party];
  x.life[party] = life;
  x.wire->peer[party] = proc;
  x.party[proc] = party + 1;
  x.away[party] = false;
  spx_core_replaced(&spx_replay_core, party);
}

/* ---- coming ------------------------------------------------------------------------------------------------------ */

static bool take_one(void)
{
  spx_unex *e = x.ncoming < COMING_MOST ? spx_match_unexpected(x.wire->ctx, MPI_ANY_SOURCE, MPI_ANY_TAG) : NULL;
  if (!e) return false;
  if (e->kind == SPX_REC_RTS && spx_proc_dead(e->proc)) { /* announced, and nobody is there any more to get it from */
    spx_unex_drop(e);
    return true;
  }
  coming *a = malloc(sizeof *a + e->bytes);
  if (!a) return false;
  *a = (coming){.from = (uint32_t)e->src, .tag = e->tag, .bytes = e->bytes};
  /* Who sends as a party is that one: what is accepted is acknowledged to nobody else. */
  if (a->from < spx_replay_core.parties && !spx_proc_dead(e->proc)) place(a->from, e->proc);
  spx_unex_remove(e);
  int rc = spx_imrecv(a->data, (int64_t)a->bytes, x.byte, e, x.wire, SPX_RF_INTERNAL, &a->r);
  if (rc != MPI_SUCCESS) spx_fatal(rc, "no memory for a message that comes");
  *x.last = a;
  x.last = &a->next;
  x.ncoming++;
  return true;
}

static void handle(coming *a)
{
  spx_frame_head h;
  if (a->r->error != MPI_SUCCESS) return; /* its sender has died in the middle of it */
  if (a->tag == TAG_ACK)
    spx_core_acked(&spx_replay_core, a->from, (const spx_frame_ack *)(void *)a->data,
                   (uint32_t)(a->bytes / sizeof(spx_frame_ack)));
  else if (a->bytes >= sizeof h) {
    memcpy(&h, a->data, sizeof h);
    if (h.bytes != a->bytes - sizeof h || !spx_core_arrived(&spx_replay_core, &h, a->data + sizeof h))
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

static bool deliver(void *arg, const spx_frame_head *head, const uint8_t *data)
{
  (void)arg;
  return spx_deliver_frame(x.wire->peer[head->from], head, data);
}

static int let_in(bool inside)
{
  int n = 0;
  while ((n == 0 || spx_unex_count < WAITING_MOST) && spx_core_may_accept(&spx_replay_core, inside) &&
         spx_core_accept(&spx_replay_core))
    n++;
  return n;
}

/* Who has left after MPI_Finalize, or is dead and not replaced, accepts nothing more. */
static void look_for_left(void)
{
  for (uint32_t p = 0; p < spx_replay_core.parties; p++) {
    uint32_t proc = x.wire->peer[p];
    if (!spx_replay_core.first[p] || p == spx_replay_core.me || !spx_proc_left(proc)) continue;
    bool dead = spx_proc_dead(proc);
    if (!dead || (p < x.iops && !x.heals[p])) spx_core_left(&spx_replay_core, p);
  }
}

int spx_replay_poll(void)
{
  if (x.busy) return 0;
  x.busy = true;
  int n = land() + take_in();
  if (!spx_replay_hold && !x.observes) n += let_in(true);
  if (++x.polls % LOOK_EVERY == 0) look_for_left();
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

void spx_replay_enter(uint32_t fn)
{
  int kind = x.kind(fn);
  if (kind & SPX_REPLAY_LOCAL) return;
  spx_lock();
  x.observes = true;
  spx_poll(true);
  if (SPX_UNLIKELY(spx_due)) spx_run_due();
  x.busy = true;
  spx_core_enter(&spx_replay_core);
  x.busy = false;
  progress_outside();
  wait_for_room();
  x.observes = kind & SPX_REPLAY_OBSERVES && !spx_io_process;
  if (kind & SPX_REPLAY_ASKS && spx_io_process) spx_core_asked(&spx_replay_core, false);
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

int spx_replay_begin(const spx_replay_setup *s)
{
  spx_core_io io = {transmit, acknowledge, deliver, s->room ? s->room : no_room, failed, NULL};
  x.nprocs = spx_map.nprocs;
  x.party = calloc(x.nprocs, sizeof *x.party);
  x.heals = calloc(s->parties, sizeof *x.heals);
  x.away = calloc(s->parties, sizeof *x.away);
  x.life = calloc(s->parties, sizeof *x.life);
  x.detours = calloc(s->parties - s->iops + 1, sizeof *x.detours);
  x.past = calloc(x.nprocs, sizeof *x.past);
  if (!x.party || !x.heals || !x.away || !x.life || !x.detours || !x.past) return MPI_ERR_NO_MEM;
  memcpy(x.heals, s->heals, s->parties * sizeof *x.heals);
  for (uint32_t p = 0; p < s->parties; p++) {
    if (s->procs[p] >= x.nprocs) continue;
    x.party[s->procs[p]] = p + 1;
    x.life[p] = life_of(s->procs[p]);
  }
  x.wire = s->wire;
  x.origin = s->origin;
  x.kind = s->kind;
  x.choose = s->choose;
  x.lane = s->lane;
  x.byte = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  x.iops = s->iops;
  x.last = &x.first;
  if (!spx_core_begin(&spx_replay_core, &io, s->parties, s->me, s->me >= s->iops, s->vault)) return MPI_ERR_NO_MEM;
  spx_harm = 1; /* no short path past us */
  spx_replay_on = true;
  return MPI_SUCCESS;
}

void spx_replay_end(void)
{
  if (!spx_replay_on) return;
  spx_replay_on = false;
  land();
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
  free(x.life);
  free(x.detours);
  free(x.past);
  memset(&x, 0, sizeof x);
}

void spx_replay_place(uint32_t party, uint32_t proc)
{
  if (!spx_replay_on || party >= spx_replay_core.parties) return;
  spx_lock();
  place(party, proc);
  spx_unlock();
}

/* Of one lane all goes by the same. Lanes that are tags are chosen for by tag, again if need be. */
static uint32_t other_iop(void *arg, const spx_kept *m)
{
  detour *all = arg, *d = &all[m->lane % (spx_replay_core.parties - x.iops)];
  if (!d->known || d->lane != m->lane) {
    int iop = x.choose(m->head.tag);
    *d = (detour){true, m->lane, iop < 0 ? UINT32_MAX : x.iops + (uint32_t)iop};
  }
  return d->party;
}

void spx_replay_reroute(void)
{
  spx_lock();
  uint32_t iops = spx_replay_core.parties - x.iops;
  for (uint32_t p = x.iops; p < spx_replay_core.parties && !spx_io_process; p++) {
    if (!spx_proc_dead(x.wire->peer[p]) || (x.away[p] && !spx_replay_core.first[p])) continue;
    memset(x.detours, 0, iops * sizeof *x.detours);
    x.away[p] = true;
    spx_core_reroute(&spx_replay_core, p, other_iop, x.detours);
  }
  spx_unlock();
}

bool spx_replay_awaited(uint32_t proc)
{
  uint32_t p = spx_replay_party(proc);
  return p < x.iops && x.heals[p] && spx_proc_dead(proc);
}

bool spx_replay_idle(void)
{
  spx_lock();
  look_for_left();
  if (spx_io_process) spx_core_asked(&spx_replay_core, true);
  spx_core_tell(&spx_replay_core);
  bool idle = !x.first && spx_core_idle(&spx_replay_core);
  spx_unlock();
  return idle;
}
