/* net_relay_hop.c - frames of relayed pairs (net_relay.c) at this process: what goes to a
 * neighbour, as far as that one has given buffers for it (credit), and, of other processes' frames,
 * what waits here for a neighbour. Each buffer is given back when its frame has gone.
 */
#include <stdlib.h>
#include "net_relay.h"

spx_relay_hop *spx_hops;
uint64_t spx_hops_held;

void spx_hop_new(spx_relay_hop *h)
{
  for (int k = 0; k < CLASSES; k++) {
    while (h->first[k]) {
      frame *f = h->first[k];
      h->first[k] = f->next;
      free(f);
      spx_hops_held--;
    }
    h->last[k] = NULL;
    h->credit[k] = CREDIT;
    h->owed[k] = 0;
  }
  h->held = 0;
}

void spx_hop_forget(uint32_t peer)
{
  spx_hop_new(&spx_hops[peer]);
  if (spx_hops_held == 0) return;
  for (uint32_t i = 0; i < spx_segment->nprocs;
       i++) /* the buffers that its frames still have are not the next one's */
    for (int k = 0; k < CLASSES; k++)
      for (frame *f = spx_hops[i].first[k]; f; f = f->next)
        if (f->from == peer) f->from = SPX_NET_NOBODY;
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
  spx_relay_hop *h = &spx_hops[next];
  uint32_t needs = spx_via_left(as.via.route);
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

bool spx_hop_give(uint32_t next, spx_rec_words as, const uint8_t *data, uint32_t len)
{
  return spx_net_ready(next) && give_ready(next, as, data, len);
}

/* A buffer that a neighbour's frame had is free. */
static void repay(uint32_t from, uint32_t class, uint32_t cost)
{
  spx_relay_hop *h = &spx_hops[from];
  if (class == 0 || (h->owed[class] += cost) < CREDIT / 4 || !spx_net_ready(from)) return;
  spx_rec_words as = {.via = {.position = h->owed[class],
                              .route = spx_via_route(from, class, VIA_CREDIT),
                              .from = spx_me}};
  spx_tx_put(from, SPX_REC_VIA, as, NULL, 0);
  h->owed[class] = 0;
}

bool spx_hop_forward(uint32_t from, const spx_rec *rec, uint32_t dst, uint32_t left, uint32_t flags)
{
  uint32_t cost = SPX_REC_BYTES(rec->len), needs = 0;
  int next = left == 0 || spx_net_gone(dst) ? -1 : spx_relay_way(dst, left - 1, &needs);
  bool counts = !(flags & VIA_ACK);
  if (next < 0 || (uint32_t)next == from) {
    if (counts) repay(from, left, cost);
    return true;
  }
  spx_relay_hop *h = &spx_hops[next];
  spx_rec_words as = rec->as;
  as.via.route = spx_via_route(dst, needs, flags);
  if (!h->first[needs] || !counts) {
    if (spx_hop_give((uint32_t)next, as, rec->data, rec->len)) {
      if (counts) repay(from, left, cost);
      spx_stat.net_forwarded++;
      spx_stat.net_forwarded_bytes += rec->len;
      return true;
    }
  }
  if (!counts) return true;                     /* it took no buffer, and is asked for again */
  if (spx_hops[from].held + cost > HELD_MOST) { /* it does not heed what it was given */
    spx_refuse(from, "more frames than there are buffers for");
    return true;
  }
  frame *f = malloc(sizeof *f + rec->len);
  if (!f) return false;
  spx_hops[from].held += cost;
  *f = (frame){.from = from, .cost = cost, .as = as, .len = rec->len, .class = (uint8_t)left};
  memcpy(f->data, rec->data, rec->len);
  if (h->first[needs])
    h->last[needs]->next = f;
  else
    h->first[needs] = f;
  h->last[needs] = f;
  spx_hops_held++;
  return true;
}

int spx_hop_send_held(void)
{
  int n = 0;
  uint64_t now = spx_now_ns();
  for (uint32_t i = 0; spx_hops_held > 0 && i < spx_segment->nprocs; i++)
    for (uint32_t k = 0; k < CLASSES; k++)
      while (spx_hops[i].first[k]) {
        /* it may be another one by now: none of what waits is for that */
        bool ready = spx_net_ready(i);
        frame *f = spx_hops[i].first[k];
        if (!f) break;
        if (spx_relay_usable(i, now)) {
          if (!ready || !give_ready(i, f->as, f->data, f->len)) break;
          spx_stat.net_forwarded++;
          spx_stat.net_forwarded_bytes += f->len;
        }
        spx_hops[i].first[k] = f->next;
        SPX_ASSERT(spx_hops_held > 0 && spx_via_left(f->as.via.route) == k);
        spx_hops_held--;
        n++;
        if (f->from != SPX_NET_NOBODY) {
          spx_hops[f->from].held -=
              f->cost < spx_hops[f->from].held ? f->cost : spx_hops[f->from].held;
          repay(f->from, f->class, f->cost);
        }
        free(f);
      }
  return n;
}
