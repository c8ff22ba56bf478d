/* net_relay.c - messages that go through other processes: SPX_CONNECTIONS=topology:K, or far fewer
 * connections than processes. Seen from the rest, such a pair has a buffer to write records to, and
 * one that they come from, like one with a connection.
 *
 * What waits in the buffer is cut into frames: VIA records of the pair with a neighbour, a process
 * that shares memory with this one or that it keeps a connection with. A neighbour sends them on.
 * The engine decides which neighbours are kept and which way leads where (net/conn in Go) and hands
 * over a table; here is what follows from it for each frame. A frame takes at most SPX_ROUTE_HOPS
 * hops, and three in a topology.
 *
 * - Nothing is lost, doubled or reordered. A frame says where in the pair's stream its bytes
 * belong. The receiver takes what comes next, drops what it has, and says from where on it wants to
 * have the rest again. The sender keeps all that was not acknowledged, asks for an acknowledgement
 * that does not come, and begins again from the last one when a way is lost.
 * - When a connection opens, each end sends a greeting first, when its program next calls MPI: the
 * position at which its bytes on the connection begin, that of the first one not acknowledged.
 * Until it has come, frames through relays are accepted; afterwards they are dropped, as is what
 * comes again. Neither end waits for the other's program: a connection also helps where a relay
 * computes, or the receiver acknowledges nothing. It is asked for when no acknowledgement comes for
 * a while.
 * - Relays hold a bounded number of bytes, and cannot deadlock: a frame says how many hops it may
 * take after this one, buffers are given out by that number (credit), and a frame only ever waits
 * for a buffer of a smaller one. Frames on their last hop need none.
 */
#include <errno.h>
#include <stdlib.h>
#include "net_relay.h"

#define CHUNK     (16u * 1024 - SPX_REC_HEADER) /* bytes of a frame */
#define ACK_BYTES (32u << 10)
#define ASK_NS                                                                                     \
  10000000 /* between questions how far the receiver is, at first; twice as long after each that   \
              is not answered */
#define MOST_ASK_NS 1000000000
#define REWIND_NS   2000000
#define STUCK_NS                                                                                   \
  250000000 /* without an acknowledgement, and so many times as long as they take: a connection is \
               asked for */
#define STUCK_TRIPS   8
#define MOST_STUCK_NS 2000000000
/* a neighbour that cannot be connected with for so long is passed by */
#define LATE_NS 1000000000

static spx_routes *_Atomic new_routes;
static spx_routes *routes;

void spx_net_policy(spx_net_ways ways)
{
  spx_net.heeds = ways.heeds;
  spx_net.relays = ways.relays;
  spx_net.spares = ways.spares;
  spx_net.cache = ways.cache;
  spx_net.most = ways.most;
}

void spx_net_route(spx_routes *r)
{
  free(atomic_exchange(&new_routes, r));
  spx_ring_self();
}

/* Takes the engine's newest table. */
static void take_routes(void)
{
  if (SPX_LIKELY(!atomic_load_explicit(&new_routes, memory_order_relaxed))) return;
  spx_routes *r = atomic_exchange(&new_routes, NULL);
  if (!r) return;
  free(routes);
  routes = r;
}

static const spx_route *route(uint32_t peer)
{
  /* of processes that the table does not know yet, and of other jobs */
  static const spx_route direct = {.kept = 1};
  return routes && peer < routes->n && spx_proc_of(peer)->home_job == 0 ? &routes->to[peer]
                                                                        : &direct;
}

static bool kept(uint32_t peer)
{
  take_routes();
  return route(peer)->kept;
}

static void forget_if_on(uint32_t peer)
{
  if (spx_beyond_host()) spx_hop_forget(peer);
}

const spx_peer_observer spx_relay_peers = {.forget = forget_if_on};

int spx_relay_attach(void)
{
  if (!spx_beyond_host()) return 0;
  spx_hops = calloc(spx_map.nprocs, sizeof *spx_hops);
  if (!spx_hops) return ENOMEM;
  for (uint32_t i = 0; i < spx_map.nprocs; i++) spx_hop_new(&spx_hops[i]);
  return 0;
}

void spx_relay_detach(void)
{
  for (uint32_t i = 0; spx_hops && i < spx_map.nprocs; i++) spx_hop_new(&spx_hops[i]);
  free(spx_hops);
  free(routes);
  free(atomic_exchange(&new_routes, NULL));
  spx_hops = NULL;
  routes = NULL;
}

/* ---- frames ---- */

static uint16_t life_of(uint32_t i) { return (uint16_t)spx_proc_of(i)->incarnation; }

/* The head of a frame of this process's own for dst. */
static spx_rec_words frame_for(uint32_t dst, uint32_t needs, uint32_t flags, uint32_t position)
{
  return (spx_rec_words){.via = {.position = position,
                                 .from_life = life_of(spx_me),
                                 .to_life = life_of(dst),
                                 .route = spx_via_route(dst, needs, flags),
                                 .from = spx_me}};
}

bool spx_relay_usable(uint32_t i, uint64_t now)
{
  if (spx_net_gone(i) || spx_proc_left(i)) return false;
  if (!spx_net_peer(i))
    return __atomic_load_n(&spx_proc_of(i)->owner_state, __ATOMIC_ACQUIRE) == SPX_OWNER_INIT;
  const spx_conn *c = spx_net.conns[i];
  return !c || (!c->over && (c->fd >= 0 || !c->asked || now - c->asked_at < LATE_NS));
}

int spx_relay_way(uint32_t dst, uint32_t left, uint32_t *needs)
{
  if (!spx_net_peer(dst) || kept(dst)) {
    *needs = 0;
    return (int)dst;
  }
  const spx_route *r = route(dst);
  uint64_t now = spx_now_ns();
  for (int k = 0; k < r->n; k++)
    if (r->needs[k] <= left && spx_relay_usable(r->via[k], now)) {
      *needs = r->needs[k];
      return (int)r->via[k];
    }
  return -1;
}

/* ---- sending ---- */

static void rewind_to_acked(spx_conn *c)
{
  if (c->sent != c->flushed) spx_stat.net_again++;
  c->sent = c->flushed;
}

/* The neighbour through which c's messages go: the same as long as it is there. */
static int choose(spx_conn *c, uint64_t now)
{
  const spx_route *r = route(c->peer);
  int found = -1;
  for (int k = 0; k < r->n; k++) {
    if (!spx_relay_usable(r->via[k], now)) continue;
    if (r->via[k] == c->via) return k;
    if (found < 0) found = k;
  }
  rewind_to_acked(c); /* what it held may be lost */
  c->via = found < 0 ? SPX_NET_NOBODY : r->via[found];
  return found;
}

/* For how long to wait for an acknowledgement before one is asked for, or asked for again: most
 * that were asked for have come by then. */
static uint64_t patience(void) { return 2 * spx_net.trip > ASK_NS ? 2 * spx_net.trip : ASK_NS; }

/* A receiver that has said nothing for so long is not reached: some process on the way computes.
 * Where ranks share processors, all answers take long. */
static uint64_t stuck_after(void)
{
  uint64_t ns = STUCK_TRIPS * spx_net.trip;
  return ns < STUCK_NS ? STUCK_NS : ns < MOST_STUCK_NS ? ns : MOST_STUCK_NS;
}

static bool stuck(const spx_conn *c, uint64_t now)
{
  if (c->flushed == spx_txs[c->peer].pos) return false;
  return c->via == SPX_NET_NOBODY || (c->sent > c->flushed && now - c->progress >= stuck_after());
}

static void ask_ack(spx_conn *c, uint64_t now)
{
  const spx_route *r = route(c->peer);
  int k = choose(c, now);
  c->asked_ack = now;
  c->asking = true;
  c->patience = c->patience < MOST_ASK_NS ? 2 * c->patience : MOST_ASK_NS;
  if (k >= 0)
    spx_hop_give(c->via, frame_for(c->peer, r->needs[k], VIA_ASK, c->done + c->sent - c->flushed),
                 NULL, 0);
}

static void pump(spx_conn *c)
{
  spx_tx *tx = &spx_txs[c->peer];
  if (c->pumping || c->fd >= 0 || tx->conn != c) return;
  if (kept(c->peer) || !spx_net.relays) { /* waits for its connection */
    if (c->flushed == tx->pos) return;
    spx_net_busy(c);
    spx_net_want(c);
    return;
  }
  if (spx_net.spares && c->frames == 0 && c->asked && spx_now_ns() - c->asked_at < STUCK_NS) {
    spx_net_busy(c); /* its connection is being made */
    return;
  }
  c->pumping = true;
  while (c->sent < tx->pos) {
    uint64_t now = spx_now_ns();
    int k = choose(c, now);
    if (k < 0) {
      spx_net_want(c);
      break;
    }
    uint32_t n = tx->pos - c->sent < CHUNK ? tx->pos - c->sent : CHUNK;
    if (c->sent == c->flushed) {
      c->progress = c->asked_ack = now;
      c->asking = false;
      c->patience = patience();
    }
    /* The last one asks for the acknowledgement by itself, now and then: else a frame would have
     * to. */
    bool asks = c->sent + n == tx->pos && !c->asking && now - c->rode >= c->patience;
    uint32_t needs = route(c->peer)->needs[k], at = c->done + c->sent - c->flushed;
    if (!spx_hop_give(c->via, frame_for(c->peer, needs, asks ? VIA_ASK : 0, at), c->out + c->sent,
                      n))
      break;
    if (asks) {
      c->rode = c->asked_ack = now;
      c->asking = true;
    }
    c->sent += n;
    spx_stat.net_relayed++;
    spx_net.clock++;
    for (uint32_t i = 0; i <= n / SPX_NET_SHORTCUT_BYTES; i++)
      c->used_at[c->frames++ % SPX_NET_SHORTCUT_AFTER] = spx_net.clock;
    bool worth = c->frames >= SPX_NET_SHORTCUT_AFTER && spx_net.cache;
    if ((worth || spx_net_has_room()) && now >= spx_net.next_shortcut) spx_net_want(c);
  }
  if (c->flushed < tx->pos) spx_net_busy(c);
  c->pumping = false;
}

/* src has all before a position, or wants all from there on again. */
static void acked(uint32_t src, uint32_t position, bool again)
{
  spx_conn *c = spx_net.conns[src];
  if (!c || c->fd >= 0 || spx_txs[src].conn != c) return;
  uint32_t n = position - c->done;
  if (n > spx_txs[src].pos - c->flushed) return; /* of long ago */
  uint64_t now = spx_now_ns();
  if (c->asking) {
    uint64_t took = now - c->asked_ack;
    spx_net.trip = spx_net.trip ? spx_net.trip - spx_net.trip / 8 + took / 8 : took;
    c->asking = false;
  }
  c->patience = patience();
  if (n) c->progress = now;
  spx_net_done(c, n);
  if (again && now - c->rewound > REWIND_NS) {
    c->rewound = now;
    rewind_to_acked(c);
  }
  pump(c);
}

/* ---- receiving ---- */

static void acknowledge(spx_conn *c, bool again)
{
  uint32_t needs;
  int next = spx_relay_way(c->peer, CLASSES - 1, &needs);
  c->owed = 0;
  if (next >= 0)
    spx_hop_give((uint32_t)next,
                 frame_for(c->peer, needs, VIA_ACK | (again ? VIA_AGAIN : 0), c->got), NULL, 0);
}

/* Bytes of src's stream from a position on. False: no memory. */
static bool arrived(uint32_t src, uint32_t position, uint32_t flags, const uint8_t *data,
                    uint32_t len)
{
  spx_conn *c = spx_net_conn(src);
  if (!c) return false;
  /* all that is missing comes on the connection */
  bool greeted = !c->greets || c->greeting_n == sizeof c->greeting;
  if (c->over || (c->fd >= 0 && greeted && c->closing != SPX_CLOSING_ANSWERED)) return true;
  uint32_t old = c->got - position;
  if ((int32_t)old < 0) {
    if (!c->refused || (flags & VIA_ASK)) acknowledge(c, true);
    c->refused = true;
    return true;
  }
  if (old < len) {
    uint32_t n = len - old;
    if (SPX_NET_IN - c->in_end < n && !c->delivering) spx_net_to_start(c);
    if (SPX_NET_IN - c->in_end < n) return true; /* it is asked for again */
    memcpy(c->in + c->in_end, data + old, n);
    c->in_end += n;
    c->got += n;
    c->owed += n;
    c->refused = false;
    int moved = 0;
    if (!c->delivering && !spx_net_deliver(c, &moved)) {
      spx_stat.net_refused++;
      c->over = true;
    }
    if (c->stalled) spx_net_busy(c);
  }
  if ((flags & VIA_ASK) || c->owed >= ACK_BYTES) acknowledge(c, false);
  return true;
}

bool spx_net_via(uint32_t from, const spx_rec *rec)
{
  uint32_t route = rec->as.via.route, dst = route & ROUTE_DST, flags = route >> ROUTE_FLAGS,
           left = spx_via_left(route);
  uint32_t src = rec->as.via.from, position = rec->as.via.position;
  uint16_t from_life = rec->as.via.from_life, to_life = rec->as.via.to_life;
  if (!spx_hops) return true;
  bool sound = left < CLASSES && dst < spx_map.nprocs && src < spx_map.nprocs &&
               flags < 2 * VIA_CREDIT && (!(flags & (VIA_ACK | VIA_CREDIT)) || rec->len == 0);
  if (sound && flags & VIA_CREDIT)
    sound = !from_life && !to_life && position <= CREDIT - spx_hops[from].credit[left];
  if (!sound) {
    spx_refuse(from, "a frame that can be none");
    return true;
  }
  if (dst >= spx_segment->nprocs || src >= spx_segment->nprocs || src == spx_me)
    return true; /* they are not known here */
  if (flags & VIA_CREDIT) {
    spx_hops[from].credit[left] += position;
    return true;
  }
  if (dst != spx_me) return spx_hop_forward(from, rec, dst, left, flags);
  if (!spx_net_peer(src) || spx_proc_dead(src) || from_life != life_of(src) ||
      to_life != life_of(dst))
    return true;
  if (spx_net_is_new(src)) return true; /* it is met first, and sends again */
  if (!(flags & VIA_ACK)) return arrived(src, position, flags, rec->data, rec->len);
  acked(src, position, flags & VIA_AGAIN);
  return true;
}

/* ---- now and then ---- */

/* The next time something is to be looked after. */
static uint64_t next_look;

static void look_after(spx_conn *c, uint64_t now)
{
  spx_tx *tx = &spx_txs[c->peer];
  int n = 0;
  if (c->stalled && !spx_net_deliver(c, &n)) c->over = true;
  bool waits = tx->conn == c && c->flushed < tx->pos;
  if (waits && c->fd < 0 && (c->over || spx_net_gone(c->peer))) {
    c->over = true;
    spx_net_push(c); /* it has no receiver */
    waits = false;
  }
  if (!c->stalled && (!waits || c->fd >= 0)) {
    spx_net_not_busy(c);
    return;
  }
  if (c->sent > c->flushed && now - c->asked_ack >= c->patience) ask_ack(c, now);
  if (stuck(c, now)) spx_net_want(c);
  pump(c);
}

/* The time at which something counts as having happened, when this process has not looked from last
 * until now: a usual pause of that counts. */
static uint64_t shifted(uint64_t at, uint64_t last, uint64_t now)
{
  uint64_t latest = now - ASK_NS;
  if (at <= last) return at + (latest - last);
  return at > latest ? at : latest;
}

/* Time in which this process did not look, as its program computed, tells nothing of others: what
 * has come meanwhile was read a moment ago. Each look counts for a usual pause, so that who looks
 * seldom still asks, and asks again. */
static void not_looked(uint64_t last, uint64_t now)
{
  for (uint32_t i = 0; i < spx_net.n_busy; i++) {
    spx_conn *c = spx_net.busy[i];
    c->progress = shifted(c->progress, last, now);
    c->asked_ack = shifted(c->asked_ack, last, now);
  }
}

/* When something was looked after, or would have woken this process. */
static uint64_t looked_at;

static int look(void)
{
  take_routes();
  int n = spx_hops_held ? spx_hop_send_held() : 0;
  if (spx_net.n_busy == 0 && !spx_net.many) return n;
  uint64_t now = spx_now_ns();
  if (SPX_UNLIKELY(now - looked_at >= ASK_NS)) not_looked(looked_at, now);
  looked_at = now;
  bool all = now >= next_look;
  if (all) next_look = now + ASK_NS / 10;
  if (all && spx_net.many) spx_net_trim(NULL);
  for (uint32_t i = spx_net.n_busy; i-- > 0;) {
    if (i >= spx_net.n_busy) continue; /* some have gone */
    spx_conn *c = spx_net.busy[i];
    uint32_t before = c->sent;
    if (all)
      look_after(c, now);
    else if (c->sent < spx_txs[c->peer].pos && spx_net.relays)
      pump(c);
    n += c->sent > before;
  }
  return n;
}

/* When something is to be looked after that nothing wakes this process for: an acknowledgement that
 * does not come is asked for, or a connection. What waits for room, here or at a neighbour, or for
 * a connection, goes on with a record or a bell; a way that serves no longer is seen to now and
 * then. */
static uint64_t due(const spx_conn *c, uint64_t now)
{
  if (c->stalled || c->over) return now;
  uint64_t at = c->sent < spx_txs[c->peer].pos ? now + ASK_NS : UINT64_MAX;
  if (c->fd >= 0 || c->sent == c->flushed) return at;
  uint64_t ask = c->asked_ack + c->patience, stuck = c->progress + stuck_after();
  if (ask < at) at = ask;
  return stuck > now && stuck < at ? stuck : at; /* once it is, that is seen to at each look */
}

/* For how long this process may sleep: hundreds that share processors, and each wake now and then
 * for nothing, would leave no time for anything else. */
static uint64_t sleep_most(void)
{
  if (spx_net.many || spx_net_sought()) return ASK_NS / 10;
  if (spx_net.n_busy == 0 && spx_hops_held == 0) return UINT64_MAX;
  uint64_t now = spx_now_ns(), at = spx_hops_held ? now + ASK_NS : UINT64_MAX;
  for (uint32_t i = 0; i < spx_net.n_busy && at > now + ASK_NS / 10; i++) {
    uint64_t next = due(spx_net.busy[i], now);
    if (next < at) at = next;
  }
  return at == UINT64_MAX ? at : at < now + ASK_NS / 10 ? ASK_NS / 10 : at - now;
}

/* The process has slept from a time on, for so long at most: until then it would have been woken,
 * which is as good as to look. */
static void slept(uint64_t began, uint64_t most)
{
  uint64_t now = spx_now_ns(), until = most < now - began ? began + most : now;
  if (until > looked_at) looked_at = until;
}

/* A relay that leaves waits a moment for those it has frames of, and for their next relays: what
 * they have sent they still have. */
static uint64_t unsent(void)
{
  static uint64_t since;
  uint64_t now = spx_now_ns();
  if (since == 0) since = now;
  for (uint32_t i = 0; i < spx_net.n_busy; i++) {
    spx_conn *c = spx_net.busy[i];
    if (c->fd < 0 && c->sent > c->flushed && now - c->asked_ack >= ASK_NS / 10) ask_ack(c, now);
  }
  return now - since < STUCK_NS ? spx_hops_held : 0;
}

const spx_detour spx_relay_detour = {.kept = kept,
                                     .pump = pump,
                                     .stuck = stuck,
                                     .dropped = spx_hop_forget,
                                     .poll = look,
                                     .sleep = sleep_most,
                                     .slept = slept,
                                     .unsent = unsent};
