/* replay.c - see replay.h: the program's calls, participants that change, the beginning and the
 * end. */
#include "replay_flow.h"
#include <stdlib.h>
#include "copies.h"
#include "dp.h"
#include "diag.h"
#include "pass.h"
#include "progress.h"

bool spx_replay_on;
spx_core spx_replay_core;
int spx_replay_hold;
uint64_t spx_replay_lost;

spx_replay_flow spx_flow;

/* 1 + the serial number of the process that has this number now; 0: none has had it yet. */
uint32_t spx_flow_serial_of(uint32_t proc)
{
  return spx_life_of(proc) ? spx_proc_of(proc)->serial + 1 : 0;
}

/* ---- participants and processes ---- */

/* Makes a process a participant's, unless the participant has had it before its present one: tables
 * of the system arrive late, and each lists all participants. A process number may have been
 * reserved for one participant and then given to another's process, so the check is by
 * participant. */
void spx_flow_place(uint32_t participant, uint32_t proc)
{
  uint32_t before = spx_flow.wire->peer[participant],
           life = proc < spx_flow.nprocs ? spx_flow_serial_of(proc) : 0;
  if (life == 0 || (before == proc && life == spx_flow.life[participant])) return;
  if (spx_flow.past_of[proc] == participant + 1 && life <= spx_flow.past[proc]) return;
  spx_flow.past[before] = spx_flow.life[participant];
  spx_flow.past_of[before] = participant + 1;
  spx_flow.life[participant] = life;
  spx_flow.changed = true;
  spx_flow.wire->peer[participant] = proc;
  spx_flow.participant[proc] = participant + 1;
  spx_flow.away[participant] = false;
  spx_core_replaced(&spx_replay_core, participant);
}

/* ---- the program's calls ---- */

static void progress_outside(void)
{
  spx_flow.observes = true;
  spx_poll(true);
  spx_flow.busy = true;
  spx_flow_let_in(false);
  spx_core_tell(&spx_replay_core);
  spx_flow.busy = false;
}

/* The sum of kept messages is bounded: but other participants may wait for what this process
 * accepts. */
static void wait_for_room(void)
{
  while (spx_replay_core.kept_bytes > KEPT_MOST && spx_replay_core.mode == SPX_CORE_LIVE &&
         !spx_io_process) {
    uint32_t ticket = spx_ticket();
    progress_outside();
    if (spx_due) spx_run_due();
    if (spx_replay_core.kept_bytes > KEPT_MOST) spx_wait_event(ticket, spx_now_ns() + 1000000);
  }
}

/* Waits until all of the message log up to this version has been sent to the keeper of the copy. */
static void wait_until_sent(uint64_t version)
{
  while (spx_copies_gate && !spx_copies_sent(version)) {
    uint32_t ticket = spx_ticket();
    progress_outside();
    if (spx_due) spx_run_due();
    if (spx_copies_gate && !spx_copies_sent(version))
      spx_wait_event(ticket, spx_now_ns() + 1000000);
  }
}

void spx_replay_all_out(void)
{
  spx_lock();
  while (spx_copies_gate && spx_flow.held && spx_replay_on) {
    uint32_t ticket = spx_ticket();
    spx_poll(true);
    if (spx_copies_gate && spx_flow.held) spx_wait_event(ticket, spx_now_ns() + 1000000);
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
  int kind = spx_flow.kind(fn);
  if (kind & SPX_DOES_LOCAL) return;
  spx_lock();
  spx_flow.observes = true;
  spx_poll(true);
  if (SPX_UNLIKELY(spx_due)) spx_run_due();
  spx_flow.busy = true;
  spx_core_enter(&spx_replay_core, fn, kind & SPX_DOES_SEND);
  spx_flow.busy = false;
  progress_outside();
  wait_for_room();
  spx_flow.observes = kind & SPX_DOES_OBSERVE && !spx_io_process;
  if (kind & SPX_DOES_ASK && spx_io_process) {
    spx_core_asked(&spx_replay_core, SPX_NEEDS_UNSEEN);
    spx_flow.asks = true;
  } else
    spx_core_other(&spx_replay_core);
  spx_unlock();
}

/* ---- beginning, end, change ---- */

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

uint32_t spx_replay_participant(uint32_t proc)
{
  return proc < spx_flow.nprocs ? spx_flow.participant[proc] - 1 : UINT32_MAX;
}

/* Tables by participant, and by I/O process; for entries that exist already only `replaced`
 * changes. false: no memory, and nothing has changed. */
static bool make_tables(const spx_replay_setup *s)
{
  uint32_t before = spx_replay_on ? spx_replay_core.participants : 0, iops = 0;
  for (uint32_t p = 0; p < s->participants; p++) iops += s->iop[p] != 0;
  bool *heals = calloc(s->participants, sizeof *heals),
       *away = calloc(s->participants, sizeof *away);
  bool *apart = calloc(s->participants, sizeof *apart);
  uint32_t *life = calloc(s->participants, sizeof *life),
           *iop = calloc(s->participants, sizeof *iop);
  uint32_t *at_iop = calloc(iops + 1, sizeof *at_iop);
  detour *detours = calloc(iops + 1, sizeof *detours);
  bool all = heals && away && apart && life && iop && at_iop && detours;
  for (uint32_t p = 0; p < s->participants && all; p++) {
    heals[p] = s->heals[p];
    if ((iop[p] = s->iop[p])) at_iop[iop[p] - 1] = p;
    if (p < before) {
      away[p] = spx_flow.away[p];
      apart[p] = spx_flow.apart[p];
      life[p] = spx_flow.life[p];
    } else if (s->procs[p] < spx_flow.nprocs) {
      spx_flow.participant[s->procs[p]] = p + 1;
      life[p] = spx_flow_serial_of(s->procs[p]);
    }
  }
  free(all ? spx_flow.heals : heals);
  free(all ? spx_flow.away : away);
  free(all ? spx_flow.apart : apart);
  free(all ? spx_flow.life : life);
  free(all ? spx_flow.iop : iop);
  free(all ? spx_flow.at_iop : at_iop);
  free(all ? spx_flow.detours : detours);
  if (!all) return false;
  spx_flow.heals = heals;
  spx_flow.away = away;
  spx_flow.apart = apart;
  spx_flow.life = life;
  spx_flow.iop = iop;
  spx_flow.at_iop = at_iop;
  spx_flow.detours = detours;
  spx_flow.iops = iops;
  return true;
}

int spx_replay_begin(const spx_replay_setup *s)
{
  spx_core_io io = {spx_flow_transmit,
                    spx_flow_acknowledge,
                    spx_flow_claim,
                    spx_flow_deliver,
                    spx_flow_again,
                    spx_flow_settled,
                    s->room ? s->room : no_room,
                    failed,
                    NULL};
  spx_flow.nprocs = spx_map.nprocs;
  spx_flow.participant = calloc(spx_flow.nprocs, sizeof *spx_flow.participant);
  spx_flow.past = calloc(spx_flow.nprocs, sizeof *spx_flow.past);
  spx_flow.past_of = calloc(spx_flow.nprocs, sizeof *spx_flow.past_of);
  spx_flow.broken = calloc(spx_flow.nprocs, sizeof *spx_flow.broken);
  if (!spx_flow.participant || !spx_flow.past || !spx_flow.past_of || !spx_flow.broken ||
      !make_tables(s))
    return MPI_ERR_NO_MEM;
  spx_flow.wire = s->wire;
  spx_flow.kind = s->kind;
  spx_flow.choose = s->choose;
  spx_flow.lane = s->lane;
  spx_flow.byte = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  spx_flow.last = &spx_flow.first;
  spx_flow.held_last = &spx_flow.held;
  spx_flow.own = s->msglog != NULL;
  spx_flow.whole = s->whole;
  if (!spx_core_begin(&spx_replay_core, &io, s->participants, s->me, spx_flow_serial_of(spx_me),
                      s->iop[s->me] != 0, s->msglog))
    return MPI_ERR_NO_MEM;
  spx_replay_core.sparing = spx_copies_on;
  spx_harm = 1; /* no short path past us */
  spx_replay_on = true;
  spx_late_source = spx_replay_poll;
  return MPI_SUCCESS;
}

int spx_replay_grow(const spx_replay_setup *s, uint32_t *ranks)
{
  uint32_t before = spx_replay_core.participants;
  if (!make_tables(s) || !spx_core_grow(&spx_replay_core, s->participants)) return MPI_ERR_NO_MEM;
  for (uint32_t p = 0; p < s->participants; p++)
    ranks[p] = p < before ? spx_flow.wire->peer[p] : s->procs[p];
  spx_flow.changed = true;
  return MPI_SUCCESS;
}

void spx_replay_end(void)
{
  if (!spx_replay_on) return;
  spx_replay_on = false;
  spx_late_source = NULL;
  spx_replay_words_end();
  spx_flow_land();
  for (held *h; (h = spx_flow.held);) {
    spx_flow.held = h->next;
    if (h->m) spx_core_unbusy(&spx_replay_core, h->m);
    free(h);
  }
  /* copies of accepted messages: their memory stays, since a reader may still use it */
  while (spx_flow.flights) {
    flight *f = spx_flow.flights;
    spx_flow.flights = f->next;
    if (f->m) f->m->gone = true;
    free(f);
  }
  spx_core_end(&spx_replay_core);
  free(spx_flow.participant);
  free(spx_flow.heals);
  free(spx_flow.away);
  free(spx_flow.apart);
  free(spx_flow.life);
  free(spx_flow.iop);
  free(spx_flow.at_iop);
  free(spx_flow.detours);
  free(spx_flow.past);
  free(spx_flow.past_of);
  free(spx_flow.broken);
  memset(&spx_flow, 0, sizeof spx_flow);
}

void spx_replay_place(uint32_t participant, uint32_t proc)
{
  if (!spx_replay_on || participant >= spx_replay_core.participants) return;
  spx_lock();
  spx_flow_place(participant, proc);
  bool changed = spx_flow.changed;
  spx_unlock();
  if (changed) spx_ring_self();
}

/* Of one lane all goes by the same. Lanes that are tags are chosen for by tag, again if need be. */
static uint32_t other_iop(void *arg, const spx_kept *m)
{
  detour *all = arg, *d = &all[m->lane % spx_flow.iops];
  if (!d->known || d->lane != m->lane) {
    int iop = spx_flow.choose(m->head.tag);
    *d = (detour){true, m->lane, iop < 0 ? UINT32_MAX : spx_flow.at_iop[iop]};
  }
  return d->participant;
}

void spx_replay_reroute(void)
{
  spx_lock();
  for (uint32_t p = 0; p < spx_replay_core.participants && !spx_io_process; p++) {
    if (!spx_flow.iop[p] || !spx_proc_dead(spx_flow.wire->peer[p]) ||
        (spx_flow.away[p] && !spx_replay_core.first[p]))
      continue;
    memset(spx_flow.detours, 0, spx_flow.iops * sizeof *spx_flow.detours);
    spx_flow.away[p] = true;
    spx_flow.changed = true;
    spx_core_reroute(&spx_replay_core, p, other_iop, spx_flow.detours);
  }
  spx_unlock();
}

uint64_t spx_replay_number(uint32_t token, uint32_t *given)
{
  spx_lock();
  uint32_t participant;
  uint64_t n = spx_core_number(&spx_replay_core, token, &participant);
  *given = participant - 1;
  spx_unlock();
  return n;
}

void spx_replay_give(uint32_t token, uint32_t proc)
{
  spx_lock();
  uint32_t participant = spx_replay_participant(proc);
  if (participant != UINT32_MAX) spx_core_give(&spx_replay_core, token, participant);
  spx_unlock();
}

void spx_replay_close(void) { spx_flow.closed = true; }

void spx_replay_changed(void)
{
  if (!spx_replay_on) return;
  spx_lock();
  spx_flow.changed = true; /* a dead process may not be replaced any more */
  if (!spx_flow.own) spx_core_unsettle(&spx_replay_core);
  spx_unlock();
}

void spx_replay_count_lost(void)
{
  if (!spx_replay_on) return;
  spx_lock();
  spx_flow.changed = true;
  spx_poll(true);
  spx_unlock();
}

/* A synchronous send: its receiver has begun. */
static bool may_go_on(const void *waits)
{
  return ((const spx_request *)waits)->mode != SPX_M_SYNC;
}

int spx_replay_excuse(uint32_t proc)
{
  uint32_t participant = spx_replay_participant(proc);
  return participant == UINT32_MAX ? 0 : spx_core_excuse(&spx_replay_core, participant, may_go_on);
}

bool spx_replay_awaited(uint32_t proc)
{
  uint32_t p = spx_replay_participant(proc);
  return p != UINT32_MAX && !spx_flow.iop[p] && spx_flow.heals[p] && spx_proc_dies(proc);
}

bool spx_replay_is_relay(uint32_t proc)
{
  uint32_t participant = spx_replay_participant(proc);
  return participant != UINT32_MAX && spx_flow.iop[participant];
}

bool spx_replay_is_gone(uint32_t participant, uint32_t life)
{
  uint32_t proc = spx_flow.wire->peer[participant],
           now = proc < spx_flow.nprocs ? spx_flow_serial_of(proc) : 0;
  /* a later incarnation: the tables that contain it are on their way */
  if (now < life) return !spx_flow.heals[participant];
  return now > life || spx_flow_end_of(proc) != RUNS;
}

void spx_replay_heals(uint32_t participant, bool heals)
{
  if (!spx_replay_on || participant >= spx_replay_core.participants ||
      spx_flow.heals[participant] == heals)
    return;
  spx_lock();
  spx_flow.heals[participant] = heals;
  spx_flow.changed = true;
  spx_unlock();
  spx_ring_self();
}

void spx_replay_apart(uint32_t participant, bool apart)
{
  if (spx_replay_on && participant < spx_replay_core.participants)
    spx_flow.apart[participant] = apart;
}

bool spx_replay_coming(void)
{
  /* a call that is made again gets what it got then */
  if (spx_replay_core.mode != SPX_CORE_LIVE) return false;
  return spx_flow.first || spx_replay_core.ready ||
         spx_match_unexpected(spx_flow.wire->ctx, MPI_ANY_SOURCE, MPI_ANY_TAG);
}

bool spx_replay_idle(void)
{
  spx_lock();
  spx_flow.leaves = true;
  spx_flow_look_for_left();
  if (spx_io_process) spx_core_asked(&spx_replay_core, SPX_NEEDS_NOTHING);
  spx_core_tell(&spx_replay_core);
  bool idle =
      spx_core_idle(&spx_replay_core) && !(spx_flow.own && (spx_flow.first || spx_flow.held));
  if (!spx_flow.own && !spx_io_process && !spx_flow.flights && spx_flow_is_only_awaited())
    idle = true;
  spx_unlock();
  return idle;
}
