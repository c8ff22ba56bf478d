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
#include "net_conn.h"

#define CHUNK (16u * 1024 - SPX_REC_HEADER) /* bytes of a frame */
/* of one neighbour's frames of a class that this process holds, at most */
#define CREDIT    (256u << 10)
#define HELD_MOST (16u * CREDIT) /* of all its frames, those that need no buffer with them */
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
#define CLASSES SPX_ROUTE_HOPS

enum {
  VIA_ACK = 1 /* position: up to there the receiver has all */,
  VIA_ASK = 2,
  VIA_AGAIN = 4,
  VIA_CREDIT = 8
};

typedef struct frame {
  struct frame *next;
  uint32_t from, cost; /* SPX_NET_NOBODY: a process that had a number which another one has now */
  spx_rec_words as;
  uint32_t len;
  uint8_t class; /* hops that it could take when it came */
  uint8_t data[];
} frame;

/* What this process has with a neighbour, as a relay and with it as a relay. */
typedef struct {
  uint32_t credit[CLASSES], owed[CLASSES];
  uint64_t held;                         /* of its frames */
  frame *first[CLASSES], *last[CLASSES]; /* that wait for it, by the hops that they need after it */
} hop;

static hop *hops;
static uint64_t n_held; /* frames in queues of hops */
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

static void new_hop(hop *h)
{
  for (int k = 0; k < CLASSES; k++) {
    while (h->first[k]) {
      frame *f = h->first[k];
      h->first[k] = f->next;
      free(f);
      n_held--;
    }
    h->last[k] = NULL;
    h->credit[k] = CREDIT;
    h->owed[k] = 0;
  }
  h->held = 0;
}

static void forget(uint32_t peer)
{
  new_hop(&hops[peer]);
  if (n_held == 0) return;
  for (uint32_t i = 0; i < spx_segment->nprocs;
       i++) /* the buffers that its frames still have are not the next one's */
    for (int k = 0; k < CLASSES; k++)
      for (frame *f = hops[i].first[k]; f; f = f->next)
        if (f->from == peer) f->from = SPX_NET_NOBODY;
}

static void forget_if_on(uint32_t peer)
{
  if (spx_beyond_host()) forget(peer);
}

const spx_peer_observer spx_relay_peers = {.forget = forget_if_on};

int spx_relay_attach(void)
{
  if (!spx_beyond_host()) return 0;
  hops = calloc(spx_map.nprocs, sizeof *hops);
  if (!hops) return ENOMEM;
  for (uint32_t i = 0; i < spx_map.nprocs; i++) new_hop(&hops[i]);
  return 0;
}

void spx_relay_detach(void)
{
  for (uint32_t i = 0; hops && i < spx_map.nprocs; i++) new_hop(&hops[i]);
  free(hops);
  free(routes);
  free(atomic_exchange(&new_routes, NULL));
  hops = NULL;
  routes = NULL;
}

/* ---- frames ---- */

/* The form of a frame's route: whom it is for, how many hops it may take after this one, what it
 * says beside its bytes. */
#define ROUTE_LEFT  24
#define ROUTE_FLAGS 27
#define ROUTE_DST   ((1u << ROUTE_LEFT) - 1)
_Static_assert(CLASSES <= 1 << (ROUTE_FLAGS - ROUTE_LEFT),
               "the hops that are left have their place in a frame's route");

static uint32_t route_of(uint32_t dst, uint32_t left, uint32_t flags)
{
  return dst | left << ROUTE_LEFT | flags << ROUTE_FLAGS;
}
static uint32_t left_of(uint32_t route)
{
  return route >> ROUTE_LEFT & ((1u << (ROUTE_FLAGS - ROUTE_LEFT)) - 1);
}

static uint16_t life_of(uint32_t i) { return (uint16_t)spx_proc_of(i)->incarnation; }

/* The head of a frame of this process's own for dst. */
static spx_rec_words frame_for(uint32_t dst, uint32_t needs, uint32_t flags, uint32_t position)
{
  return (spx_rec_words){.via = {.position = position,
                                 .from_life = life_of(spx_me),
                                 .to_life = life_of(dst),
                                 .route = route_of(dst, needs, flags),
                                 .from = spx_me}};
}

/* Can frames go to this neighbour? */
static bool usable(uint32_t i, uint64_t now)
{
  if (spx_net_gone(i) || spx_proc_left(i)) return false;
  if (!spx_net_peer(i))
    return __atomic_load_n(&spx_proc_of(i)->owner_state, __ATOMIC_ACQUIRE) == SPX_OWNER_INIT;
  const spx_conn *c = spx_net.conns[i];
  return !c || (!c->over && (c->fd >= 0 || !c->asked || now - c->asked_at < LATE_NS));
}

/* The longest frame that goes to a neighbour in one record: one of this host that has no ring gets
 * pieces. */
static uint32_t piece_for(uint32_t next, uint32_t len)
{
  spx_tx *tx = &spx_txs[next];
  if (tx->conn) return len;
  if (len > SPX_REC_INLINE && (tx->ring >= 0 || tx->by->widen(tx)))
    return (uint32_t)spx_segment->ring_bytes / 4 - SPX_REC_HEADER;
  return SPX_REC_INLINE;
}

/* What a frame takes of a relay's buffers: each piece is a frame of its own there, and is given
 * back as one. */
static uint32_t cost_of(uint32_t len, uint32_t piece)
{
  uint32_t cost = 0;
  for (; len > piece; len -= piece) cost += SPX_REC_BYTES(piece);
  return cost + SPX_REC_BYTES(len);
}

/* Into the memory of a process of this host. */
static bool to_memory(uint32_t next, spx_rec_words as, const uint8_t *data, uint32_t len,
                      uint32_t piece)
{
  if (spx_txs[next].pend) return false;
  do {
    uint32_t n = len < piece ? len : piece;
    spx_tx_put(next, SPX_REC_VIA, as, data, n);
    as.via.position += n;
    data += n;
    len -= n;
  } while (len > 0);
  return true;
}

/* Gives a frame to a neighbour that is ready. False: it has to wait. */
static bool give_ready(uint32_t next, spx_rec_words as, const uint8_t *data, uint32_t len)
{
  hop *h = &hops[next];
  uint32_t needs = left_of(as.via.route);
  if (as.via.route >> ROUTE_FLAGS & VIA_ACK) { /* holds no buffer */
    spx_tx_put(next, SPX_REC_VIA, as, NULL, 0);
    return true;
  }
  uint32_t piece = piece_for(next, len), cost = cost_of(len, piece);
  if (needs > 0 && h->credit[needs] < cost) return false;
  bool given = spx_txs[next].conn ? spx_tx_write(next, SPX_REC_VIA, as, data, len)
                                  : to_memory(next, as, data, len, piece);
  if (!given) return false;
  if (needs > 0) h->credit[needs] -= cost;
  return true;
}

static bool give(uint32_t next, spx_rec_words as, const uint8_t *data, uint32_t len)
{
  return spx_net_ready(next) && give_ready(next, as, data, len);
}

/* The neighbour, of those that need at most left hops after it, through which dst is reached; -1:
 * none. */
static int way(uint32_t dst, uint32_t left, uint32_t *needs)
{
  if (!spx_net_peer(dst) || kept(dst)) {
    *needs = 0;
    return (int)dst;
  }
  const spx_route *r = route(dst);
  uint64_t now = spx_now_ns();
  for (int k = 0; k < r->n; k++)
    if (r->needs[k] <= left && usable(r->via[k], now)) {
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
    if (!usable(r->via[k], now)) continue;
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
    give(c->via, frame_for(c->peer, r->needs[k], VIA_ASK, c->done + c->sent - c->flushed), NULL, 0);
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
    if (!give(c->via, frame_for(c->peer, needs, asks ? VIA_ASK : 0, at), c->out + c->sent, n))
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
  int next = way(c->peer, CLASSES - 1, &needs);
  c->owed = 0;
  if (next >= 0)
    give((uint32_t)next, frame_for(c->peer, needs, VIA_ACK | (again ? VIA_AGAIN : 0), c->got), NULL,
         0);
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

/* A buffer that a neighbour's frame had is free. */
static void repay(uint32_t from, uint32_t class, uint32_t cost)
{
  hop *h = &hops[from];
  if (class == 0 || (h->owed[class] += cost) < CREDIT / 4 || !spx_net_ready(from)) return;
  spx_rec_words as = {.via = {.position = h->owed[class],
                              .route = route_of(from, class, VIA_CREDIT),
                              .from = spx_me}};
  spx_tx_put(from, SPX_REC_VIA, as, NULL, 0);
  h->owed[class] = 0;
}

/* A frame for another process. One that no way is known for is dropped: its sender sends it again,
 * another way. */
static bool forward(uint32_t from, const spx_rec *rec, uint32_t dst, uint32_t left, uint32_t flags)
{
  uint32_t cost = SPX_REC_BYTES(rec->len), needs = 0;
  int next = left == 0 || spx_net_gone(dst) ? -1 : way(dst, left - 1, &needs);
  bool counts = !(flags & VIA_ACK);
  if (next < 0 || (uint32_t)next == from) {
    if (counts) repay(from, left, cost);
    return true;
  }
  hop *h = &hops[next];
  spx_rec_words as = rec->as;
  as.via.route = route_of(dst, needs, flags);
  if (!h->first[needs] || !counts) {
    if (give((uint32_t)next, as, rec->data, rec->len)) {
      if (counts) repay(from, left, cost);
      spx_stat.net_forwarded++;
      spx_stat.net_forwarded_bytes += rec->len;
      return true;
    }
  }
  if (!counts) return true;                 /* it took no buffer, and is asked for again */
  if (hops[from].held + cost > HELD_MOST) { /* it does not heed what it was given */
    spx_refuse(from, "more frames than there are buffers for");
    return true;
  }
  frame *f = malloc(sizeof *f + rec->len);
  if (!f) return false;
  hops[from].held += cost;
  *f = (frame){.from = from, .cost = cost, .as = as, .len = rec->len, .class = (uint8_t)left};
  memcpy(f->data, rec->data, rec->len);
  if (h->first[needs])
    h->last[needs]->next = f;
  else
    h->first[needs] = f;
  h->last[needs] = f;
  n_held++;
  return true;
}

bool spx_net_via(uint32_t from, const spx_rec *rec)
{
  uint32_t route = rec->as.via.route, dst = route & ROUTE_DST, flags = route >> ROUTE_FLAGS,
           left = left_of(route);
  uint32_t src = rec->as.via.from, position = rec->as.via.position;
  uint16_t from_life = rec->as.via.from_life, to_life = rec->as.via.to_life;
  if (!hops) return true;
  bool sound = left < CLASSES && dst < spx_map.nprocs && src < spx_map.nprocs &&
               flags < 2 * VIA_CREDIT && (!(flags & (VIA_ACK | VIA_CREDIT)) || rec->len == 0);
  if (sound && flags & VIA_CREDIT)
    sound = !from_life && !to_life && position <= CREDIT - hops[from].credit[left];
  if (!sound) {
    spx_refuse(from, "a frame that can be none");
    return true;
  }
  if (dst >= spx_segment->nprocs || src >= spx_segment->nprocs || src == spx_me)
    return true; /* they are not known here */
  if (flags & VIA_CREDIT) {
    hops[from].credit[left] += position;
    return true;
  }
  if (dst != spx_me) return forward(from, rec, dst, left, flags);
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
    spx_net_push(c); /* for nobody */
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

static int send_held(void)
{
  int n = 0;
  uint64_t now = spx_now_ns();
  for (uint32_t i = 0; n_held > 0 && i < spx_segment->nprocs; i++)
    for (uint32_t k = 0; k < CLASSES; k++)
      while (hops[i].first[k]) {
        /* it may be another one by now: none of what waits is for that */
        bool ready = spx_net_ready(i);
        frame *f = hops[i].first[k];
        if (!f) break;
        if (usable(i, now)) {
          if (!ready || !give_ready(i, f->as, f->data, f->len)) break;
          spx_stat.net_forwarded++;
          spx_stat.net_forwarded_bytes += f->len;
        }
        hops[i].first[k] = f->next;
        SPX_ASSERT(n_held > 0 && left_of(f->as.via.route) == k);
        n_held--;
        n++;
        if (f->from != SPX_NET_NOBODY) {
          hops[f->from].held -= f->cost < hops[f->from].held ? f->cost : hops[f->from].held;
          repay(f->from, f->class, f->cost);
        }
        free(f);
      }
  return n;
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
  int n = n_held ? send_held() : 0;
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
  if (spx_net.n_busy == 0 && n_held == 0) return UINT64_MAX;
  uint64_t now = spx_now_ns(), at = n_held ? now + ASK_NS : UINT64_MAX;
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
  return now - since < STUCK_NS ? n_held : 0;
}

const spx_detour spx_relay_detour = {.kept = kept,
                                     .pump = pump,
                                     .stuck = stuck,
                                     .dropped = forget,
                                     .poll = look,
                                     .sleep = sleep_most,
                                     .slept = slept,
                                     .unsent = unsent};
