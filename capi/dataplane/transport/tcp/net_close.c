/* net_close.c - closing connections in order, so that a process has no more of them than it may, or
 * than it has descriptors for.
 *
 * The closing end writes a CLOSE record, its last; the other end answers with a CLOSED record, its
 * last; then the socket is closed. Two CLOSE records that cross are each other's answer: bytes that
 * wait behind them may leave no room for another record. Neither end's bytes are under way then,
 * and the pair's streams continue: through relays (net_relay.c), or over another connection once
 * there is something to send. The connection that was not used for the longest time goes first. */
#include <stdatomic.h>
#include "net_conn.h"

#define YOUNG_NS                                                                                   \
  2000000 /* a connection is not closed before it is so old: those who take turns would do nothing \
             else */
/* an end that does not answer for so long computes: its connection is not waited for */
#define UNHEARD_NS 1000000000
/* an end that does not answer for so long is not the only one to be waited for */
#define NEXT_NS 20000000
#define ROOM_NS 100000 /* between two looks for a connection that may be closed */

static bool is_kept(const spx_conn *c) { return spx_net.relays && spx_detours->kept(c->peer); }

/* without another word of missing descriptors: one connection more may be tried */
#define PRESSED_NS 1000000000

static _Atomic bool wanted; /* a descriptor is missing */

void spx_net_press(void)
{
  atomic_store(&wanted, true); /* without the lock: a program with one thread has none */
  spx_ring_self();
}

/* Further streams that nothing waits for. */
static void close_further(void)
{
  for (uint32_t i = 0; spx_n_further && i < spx_map.nprocs; i++)
    if (spx_net.conns[i]) spx_further_press(spx_net.conns[i]);
}

void spx_net_pressed(void)
{
  if (SPX_LIKELY(!atomic_load_explicit(&wanted, memory_order_relaxed))) return;
  atomic_store(&wanted, false);
  uint32_t open = 0;
  for (uint32_t i = 0; i < spx_net.n_open; i++) open += !spx_net.open_ones[i]->closing;
  uint64_t now = spx_now_ns();
  if (open > 1 && (!spx_net.most_before || open <= spx_net.most)) {
    if (!spx_net.most_before) spx_net.most_before = spx_net.most;
    spx_net.most = open - 1;
    spx_net_tell(SPX_NET_MOST | spx_net.most, 0);
  }
  spx_net.pressed_at = now;
  spx_net.many = true; /* what follows in this poll closes one */
  close_further();
}

/* Descriptors may be there again. */
static void ease(uint64_t now)
{
  if (!spx_net.most_before || now - spx_net.pressed_at < PRESSED_NS) return;
  spx_net.pressed_at = now;
  if (++spx_net.most == spx_net.most_before) spx_net.most_before = 0;
  spx_net_tell(SPX_NET_MOST | spx_net.most, 0);
}

/* How many there may be beside so many that are kept. */
static uint32_t most_beside(uint32_t kept)
{
  uint32_t least = spx_net.cache ? spx_net.cache : 1;
  return spx_net.spares && spx_net.most > kept + least ? spx_net.most - kept : least;
}

/* The other end has been waited for so long that it computes: for its answer to CLOSE, for its
 * greeting, or for the connection itself. */
static bool is_unheard(const spx_conn *o, uint64_t now)
{
  if (o->fd < 0) return now - o->asked_at > UNHEARD_NS;
  if (o->closing) return now - o->since > UNHEARD_NS;
  return o->greets && o->greeting_n < sizeof o->greeting && now - o->opened_at > UNHEARD_NS;
}

/* Where messages are relayed: may one more connection be made beside those that are kept, so that c
 * gets one? An end that computes does not count. */
static bool has_room(const spx_conn *c, uint64_t now)
{
  uint32_t beside = 0, kept = 0;
  if (is_kept(c)) return true;
  for (uint32_t i = 0; i < spx_segment->nprocs; i++) {
    const spx_conn *o = spx_net.conns[i];
    if (!o || o == c || (o->fd < 0 && !(o->asked && !spx_net_gone(i)))) continue;
    if (is_unheard(o, now)) continue;
    if (is_kept(o))
      kept++;
    else
      beside++;
  }
  return beside < most_beside(kept);
}

/* Writes the last record of this end. False: there is no room for it now. */
static bool say(spx_conn *c, int32_t closed)
{
  if (!spx_net_ready(c->peer) ||
      !spx_tx_write(c->peer, SPX_REC_CLOSE, (spx_rec_words){.flag.on = closed}, NULL, 0))
    return false;
  c->stop = spx_net_end(c);
  spx_burst_let_go(c);
  return true;
}

/* Whether a connection of c is worth more than that of o: some frames for c have gone through
 * relays since o was last used, or they do not arrive. Where all pairs communicate in turn the
 * first is never so: connections would be closed just before they are used again. */
static bool worth_more(const spx_conn *c, const spx_conn *o, uint64_t now)
{
  if (!spx_net.relays || is_kept(c) || spx_detours->stuck(c, now)) return true;
  return c->frames >= SPX_NET_SHORTCUT_AFTER &&
         c->used_at[c->frames % SPX_NET_SHORTCUT_AFTER] > o->used;
}

/* a connection that gave way before it was so old was not worth making */
#define CHURN_NS      500000000
#define PAUSE_NS      20000000
#define MOST_PAUSE_NS 1000000000

void spx_net_gave_way(const spx_conn *c, uint64_t now)
{
  if (!spx_net.relays || is_kept(c)) return;
  if (now - c->opened_at >= CHURN_NS) {
    spx_net.pause /= 2;
    return;
  }
  spx_net_pause_shortcuts(now);
}

void spx_net_pause_shortcuts(uint64_t now)
{
  if (now < spx_net.next_shortcut) return;
  spx_net.pause = spx_net.pause < PAUSE_NS            ? PAUSE_NS
                  : spx_net.pause < MOST_PAUSE_NS / 2 ? 2 * spx_net.pause
                                                      : MOST_PAUSE_NS;
  spx_net.next_shortcut = now + spx_net.pause;
}

/* Which connections may be closed for another one. */
typedef enum { WORTH_LESS /* than the other would be; none that is kept */, NOT_KEPT, ANY } victims;

/* Begins to close the connection beside c that was not used for the longest time. False: none is
 * old enough, or has room for the record, or is one that may be closed. */
static bool evict(const spx_conn *c, victims which, uint64_t now)
{
  spx_conn *victim = NULL;
  for (uint32_t i = 0; i < spx_net.n_open; i++) {
    spx_conn *o = spx_net.open_ones[i];
    if (o == c || o->closing || o->must_answer || (o->greets && o->greeting_n < sizeof o->greeting))
      continue;
    if (now - o->opened_at < YOUNG_NS || (which != ANY && is_kept(o))) continue;
    if (!victim || (is_kept(victim) && !is_kept(o)) ||
        (is_kept(victim) == is_kept(o) && o->used < victim->used))
      victim = o;
  }
  if (!victim || (which == WORTH_LESS && !worth_more(c, victim, now)) || !say(victim, 0))
    return false;
  victim->closing = SPX_CLOSING_SAID;
  victim->since = now;
  spx_net_gave_way(victim, now);
  spx_stat.net_evicted++;
  spx_net_push(victim);
  return true;
}

static bool one_is_closing(uint64_t now, uint64_t patience)
{
  for (uint32_t i = 0; i < spx_net.n_open; i++)
    if (spx_net.open_ones[i]->closing && now - spx_net.open_ones[i]->since < patience) return true;
  return false;
}

/* ---- the limit of all ---- The engine (capi/net_slots.go) makes or takes no connection that would
 * be one too many: it waits until another is closed, which is done here. An end that does not
 * answer keeps its connection, and its place, so other ends are asked to close theirs. */

static _Atomic uint32_t slots_used, slots_wanted;

void spx_net_slots(uint32_t used, uint32_t wanted)
{
  atomic_store(&slots_used, used);
  if (wanted > atomic_exchange(&slots_wanted, wanted)) spx_ring_self();
}

bool spx_net_full(void)
{
  return spx_net.most && atomic_load_explicit(&slots_used, memory_order_relaxed) +
                                 atomic_load_explicit(&slots_wanted, memory_order_relaxed) >=
                             spx_net.most;
}

bool spx_net_sought(void) { return atomic_load_explicit(&slots_wanted, memory_order_relaxed) > 0; }

void spx_net_make_room(void)
{
  static uint64_t next;
  if (SPX_LIKELY(!spx_net_sought())) return;
  uint64_t now = spx_now_ns();
  if (now < next) return;
  next = now + ROOM_NS;
  if (SPX_UNLIKELY(spx_net.most_before != 0)) ease(now);
  uint32_t before = spx_n_further;
  close_further();
  if (spx_n_further == before && !one_is_closing(now, NEXT_NS)) evict(NULL, ANY, now);
}

void spx_net_want(spx_conn *c)
{
  if (c->fd >= 0 || c->asked || c->over || spx_net.want_fd < 0 || spx_net_gone(c->peer)) return;
  uint64_t now = spx_now_ns();
  if (SPX_UNLIKELY(spx_net.most_before != 0)) ease(now);
  if (spx_net.relays && !has_room(c, now)) {
    if (!one_is_closing(now, UNHEARD_NS)) evict(c, WORTH_LESS, now);
    spx_net_busy(c);
    return;
  }
  c->asked = true;
  c->asked_at = now;
  spx_net_tell(SPX_NET_CONNECT | c->peer, c->life);
}

void spx_net_trim(const spx_conn *c)
{
  if (!spx_net.relays && !spx_net.most) return;
  uint32_t all = 0, beside = 0;
  for (uint32_t i = 0; i < spx_net.n_open; i++) {
    const spx_conn *o = spx_net.open_ones[i];
    all += !o->closing;
    beside += !o->closing && !is_kept(o);
  }
  uint32_t limit = most_beside(all - beside);
  uint64_t now = spx_now_ns();
  while ((spx_net.most && all > spx_net.most) || (spx_net.relays && beside > limit)) {
    if (!evict(c, spx_net.most && all > spx_net.most ? ANY : NOT_KEPT, now)) {
      spx_net.many = true; /* later */
      return;
    }
    all--;
    beside--;
  }
  spx_net.many = false;
}

static void answer(spx_conn *c)
{
  if (!c->must_answer || !say(c, 1)) return;
  c->must_answer = false;
  spx_net.n_answers--;
  c->closing = SPX_CLOSING_ANSWERED;
  c->since = spx_now_ns();
  spx_net_gave_way(c, c->since);
  c->told = true; /* before the other end can call again */
  spx_net_tell(SPX_NET_CLOSED | c->peer, c->life);
  spx_net_push(c);
}

bool spx_net_closes(uint32_t peer, const spx_rec *rec)
{
  spx_conn *c = spx_beyond_host() ? spx_net.conns[peer] : NULL;
  if (!c || c->fd < 0) return true;
  if (rec->as.flag.on || c->closing == SPX_CLOSING_SAID) {
    c->farewell = true; /* the rest of our bytes goes first */
    spx_net_push(c);
  } else if (!c->must_answer) {
    c->must_answer = true;
    spx_net.n_answers++;
    answer(c);
  }
  return true;
}

void spx_net_answers(void)
{
  for (uint32_t i = spx_net.n_open; i-- > 0;) answer(spx_net.open_ones[i]);
}

void spx_net_finish(spx_conn *c)
{
  spx_net_disconnect(c);
  if (!c->told) spx_net_tell(SPX_NET_CLOSED | c->peer, c->life);
  c->told = false;
  c->via = SPX_NET_NOBODY;
  c->frames = 0;
  c->sent = c->flushed;
  spx_net_thin(c);
  if (spx_txs[c->peer].conn == c && c->flushed < spx_txs[c->peer].pos) spx_net_busy(c);
}

/* ---- pairs for which something waits, without a connection ---- */

void spx_net_busy(spx_conn *c)
{
  if (c->busy) return;
  c->busy = true;
  spx_net.busy[spx_net.n_busy++] = c;
}

void spx_net_not_busy(spx_conn *c)
{
  if (!c->busy) return;
  c->busy = false;
  uint32_t i = 0;
  while (spx_net.busy[i] != c) i++;
  spx_net.busy[i] = spx_net.busy[--spx_net.n_busy];
}

bool spx_net_ready(uint32_t peer)
{
  const spx_tx *tx = &spx_txs[peer];
  /* no communicator leads there */
  if (SPX_UNLIKELY(tx->life != spx_proc_of(peer)->incarnation)) spx_peer_meet(peer);
  if (SPX_LIKELY(!(tx->slow & SPX_TX_NEW))) return true;
  spx_net.hurry = true;
  bool there = spx_tx_init(peer) == MPI_SUCCESS;
  spx_net.hurry = false;
  return there;
}
