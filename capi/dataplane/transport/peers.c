/* peers.c - processes that come and go: spawned ones, and those of other jobs. MPI-5.0, 11.8 to
 * 11.10.
 *
 * A peer's number is its place in our own job's memory file. A number is given to another process
 * only when no process holds its former one: every communicator holds its members, and spx_seg.held
 * publishes that to the agent. Leftovers of an earlier process of the number in channels are
 * recognised by their epoch and by positions, so that nothing has to be cleaned while other
 * processes run.
 *
 * A process of another job is an external process here, as we are in its file: place.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "dp.h"

bool (*spx_arrived)(uint32_t peer, spx_rx *rx, const spx_rec *rec, uint32_t kind);

typedef struct {
  uint32_t refs;    /* communicators, counted once for each rank of theirs */
  uint32_t parting; /* of these, in MPI_Comm_disconnect */
  bool held, leaving;
} peer_state;
static peer_state *peers;
static const spx_peer_observer *const *observers;

int spx_peers_attach(const spx_peer_observer *const *list)
{
  observers = list;
  peers = calloc(spx_map.nprocs, sizeof *peers);
  return peers ? 0 : ENOMEM;
}

void spx_peers_detach(void)
{
  free(peers);
  peers = NULL;
}

/* ---- holding ---- */

static void mark(const spx_file *f, uint32_t i, uint8_t value)
{
  if (!spx_head(f)->held_off) return;
  uint8_t *row = (uint8_t *)(f->base + spx_head(f)->held_off + f->me * spx_head(f)->held_stride);
  __atomic_store_n(row + i, value, __ATOMIC_SEQ_CST);
}

static void mark_all(uint32_t i, uint8_t value)
{
  if (i == spx_me) return;
  mark(&spx_own, i, value);
  if (spx_places[i].file) mark(spx_places[i].file, spx_places[i].there, value);
}

/* Calls the observers of an event. */
#define EACH(event, peer)                                                                          \
  for (const spx_peer_observer *const *o = observers; *o; o++)                                     \
    if ((*o)->event) (*o)->event(peer)

/* The peer may have written, and may be waiting for room, before its bell was located here. */
static void rehome(uint32_t i)
{
  spx_rx *rx = &spx_rxs[i];
  spx_proc *home = spx_home(i);
  if (!rx->base || rx->proc == home) return;
  rx->proc = home;
  spx_ring_bell(i);
}

void spx_peer_meet(uint32_t i)
{
  spx_tx *tx = &spx_txs[i];
  spx_rx *rx = &spx_rxs[i];
  uint32_t life = spx_life_of(i);
  if (spx_rx_stale(i, rx)) EACH(stale, i);
  rehome(i);
  if (!spx_places[i].dead &&
      __atomic_load_n(&spx_proc_of(i)->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_DEAD)
    /* this process did not hold it when it died: spx_notice_deaths checks again */
    spx_map.seen_deaths = UINT64_MAX;
  if (tx->life != life) {
    EACH(forget, i);
    tx->life = life;
    if (spx_places[i].dead) tx->slow |= SPX_TX_DEAD;
  }
  EACH(met, i);
  tx->slow &= ~(uint32_t)SPX_TX_CLOSED;
}

/* The number went to another process although we hold it: its agent had read the holders before we
 * began to. */
static bool is_another(uint32_t i)
{
  return spx_rx_stale(i, &spx_rxs[i]) || (spx_txs[i].life && spx_txs[i].life != spx_life_of(i));
}

bool spx_peer_is_held(uint32_t i) { return peers[i].held; }

void spx_peer_hold(uint32_t i)
{
  spx_lock();
  peer_state *s = &peers[i];
  s->leaving = false;
  if (s->held && s->parting == s->refs) mark_all(i, SPX_TIE_HELD); /* there is another one now */
  bool first = s->refs++ == 0 && !s->held;
  if (i != spx_me && (first || is_another(i))) {
    s->held = true;
    if (spx_places[i].life != spx_life_of(i)) {
      spx_places[i].file = NULL;
      spx_places[i].abroad = false;
    }
    mark_all(i, SPX_TIE_HELD);
    spx_peer_meet(i);
  }
  spx_unlock();
}

static void let_go(uint32_t i)
{
  spx_tx *tx = &spx_txs[i];
  if (tx->pend || tx->stream) { /* the last answers: spx_peer_idle */
    peers[i].leaving = true;
    return;
  }
  peers[i].held = peers[i].leaving = false;
  tx->slow |= SPX_TX_CLOSED;
  EACH(released, i);
  mark_all(i, SPX_TIE_NONE);
}

static void mark_parting(uint32_t i)
{
  const peer_state *s = &peers[i];
  if (s->held && s->refs && s->parting == s->refs) mark_all(i, SPX_TIE_PARTING);
}

void spx_peer_part(uint32_t i)
{
  if (!peers) return;
  spx_lock();
  peers[i].parting++;
  SPX_ASSERT(peers[i].parting <= peers[i].refs);
  mark_parting(i);
  spx_unlock();
}

void spx_peer_release(uint32_t i, int parted)
{
  if (!peers) return;
  spx_lock();
  peer_state *s = &peers[i];
  SPX_ASSERT(s->refs > 0 && (!parted || s->parting > 0));
  if (parted) s->parting--;
  if (--s->refs == 0 && i != spx_me)
    let_go(i);
  else
    mark_parting(i);
  spx_unlock();
}

int spx_peer_holds_us(uint32_t i)
{
  const spx_seg *head = spx_head(&spx_own);
  if (!head->held_off || spx_proc_of(i)->host != spx_proc_of(spx_me)->host) return 1;
  const uint8_t *row = (const uint8_t *)(spx_own.base + head->held_off + i * head->held_stride);
  return __atomic_load_n(row + spx_me, __ATOMIC_SEQ_CST) == SPX_TIE_HELD;
}

void spx_peer_idle(uint32_t peer)
{
  if (SPX_UNLIKELY(peers[peer].leaving)) let_go(peer);
}

/* ---- other jobs' files ---- */

static bool is_used(const spx_file *f)
{
  for (uint32_t i = 0; i < spx_segment->nprocs; i++) {
    const spx_proc *p = spx_proc_of(i);
    if (spx_places[i].file == f && peers[i].held) return true;
    if (p->home_job == f->job &&
        __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_STARTED)
      return true;
  }
  return false;
}

void spx_files_sweep(void)
{
  spx_lock();
  for (spx_file **at = &spx_own.next, *f; (f = *at);) {
    if (is_used(f)) {
      at = &f->next;
      continue;
    }
    for (uint32_t i = 0; i < spx_map.nprocs; i++) {
      if (spx_places[i].file != f) continue;
      EACH(unmapped, i);
      spx_places[i].file = NULL;
      /* its received messages stay received: see meet */
      if (spx_rxs[i].base) spx_rxs[i].proc = spx_home(i);
    }
    *at = f->next;
    spx_seg_unmap(f);
    close(f->fd);
    free(f);
  }
  spx_unlock();
}

void spx_peer_place(uint32_t i, uint64_t job, uint32_t there)
{
  spx_lock();
  spx_whereabouts *s = &spx_places[i];
  s->file = spx_file_found(job);
  s->there = there;
  s->life = spx_life_of(i);
  s->abroad = false;
  rehome(i);
  spx_unlock();
}
