/* mcast_source.c - data that are sent on while they arrive: a master's, and those of the hosts of a
 * chain (mcast_relay.c).
 *
 * A requester names a receive of its own, and gets them as any announced message that is streamed:
 * in pieces, each of them a send of what has arrived meanwhile. All that they take here is the room
 * where they arrive, with any number of requesters. */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"
#include "plan_run.h"

/* Bytes of a message that are worth a send, unless they are the last: the shorter it is, the more
 * the hosts behind gain by beginning early. */
static uint64_t piece(uint64_t bytes)
{
  enum { LEAST = 16 << 10, MOST = 64 << 10 };
  return bytes / 8 < LEAST ? LEAST : bytes / 8 < MOST ? bytes / 8 : MOST;
}

struct spx_hop {
  spx_hop *next;
  uint32_t peer, rx_index, rx_gen;
  uint64_t at, end,
      /* all before `at` are sent, those before `end` are on their way by s; wanted are those before
         `to` */
      to;
  spx_request *s;
};

bool spx_source_may_ask(const spx_source *s, uint32_t peer)
{
  uint32_t n = 0;
  for (const spx_hop *h = s->hops; h; h = h->next) n += h->peer == peer;
  return n <= s->parts + 1;
}

bool spx_source_ask(spx_source *s, uint32_t peer, uint32_t rx_index, uint32_t rx_gen, uint64_t from,
                    uint64_t to)
{
  if (to > s->bytes) to = s->bytes;
  const spx_hop *same = s->hops;
  while (same && !(same->peer == peer && same->rx_index == rx_index && same->rx_gen == rx_gen))
    same = same->next;
  spx_hop *h = from <= to && !same ? malloc(sizeof *h) : NULL;
  if (!h) return false;
  *h = (spx_hop){
      .next = s->hops, .peer = peer, .rx_index = rx_index, .rx_gen = rx_gen, .at = from, .to = to};
  s->hops = h;
  spx_stat.streams++;
  spx_stat.streamed_bytes += to - from;
  return true;
}

/* Up to which byte they are there without a gap from byte `at` on. */
static uint64_t reach(const spx_source *s, uint64_t at)
{
  if (!s->spans || s->there > at) return s->there;
  uint32_t i = 0;
  while (i + 1 < s->parts && s->spans[i].end <= at) i++;
  while (i + 1 < s->parts && s->spans[i].there == s->spans[i].end) i++;
  return s->spans[i].there;
}

static void send_piece(const spx_source *s, spx_hop *h, uint64_t there)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  if (!r || ((spx_txs[h->peer].slow & SPX_TX_NEW) && spx_tx_init(h->peer) != MPI_SUCCESS))
    spx_fatal(MPI_ERR_NO_MEM, "no memory to send process %u the data of a multicast", h->peer);
  h->end = there < h->to ? there : h->to;
  r->kind = SPX_R_SEND;
  r->flags = SPX_RF_ACTIVE | SPX_RF_INTERNAL;
  r->buf = (void *)(uintptr_t)s->data;
  r->count = r->bytes = (int64_t)h->end;
  r->type = spx_byte_type();
  r->peer = h->peer;
  r->out.at = h->at;
  r->out.end = h->end;
  r->out.to = (spx_name){h->rx_index, h->rx_gen};
  h->s = r;
  spx_tx_stream(h->peer, r);
  spx_tx_drain();
}

/* The send of h is over, if there was one; false: it has failed. */
static bool sent(spx_hop *h)
{
  if (!h->s) return true;
  bool fine = h->s->error == MPI_SUCCESS;
  spx_retire(SPX_K_REQ, &h->s->o);
  h->s = NULL;
  h->at = h->end;
  return fine;
}

/* Sends to h that are on their way stay there. */
static void recall(spx_hop *h)
{
  if (!h->s) return;
  if (!spx_is_done(h->s)) spx_tx_unqueue(h->peer, h->s);
  spx_retire(SPX_K_REQ, &h->s->o);
  h->s = NULL;
}

int spx_source_pump(spx_source *s)
{
  int moved = 0;
  for (spx_hop **p = &s->hops; *p;) {
    spx_hop *h = *p;
    uint64_t before = h->at;
    bool left = spx_proc_left(h->peer), over = left; /* it may have got them from another process */
    if (left && h->s && spx_is_done(h->s)) sent(h);
    if (left) recall(h);
    while (!over && (!h->s || spx_is_done(h->s))) {
      over = !sent(h) || h->at >= h->to;
      uint64_t there = over ? h->at : reach(s, h->at);
      if (h->at >= there || (there - h->at < piece(s->bytes) && there < h->to)) break;
      send_piece(s, h, there);
    }
    moved += over || h->at != before;
    if (!over) {
      p = &h->next;
      continue;
    }
    s->served += left || h->at >= h->to;
    *p = h->next;
    free(h);
  }
  return moved;
}

uint32_t spx_source_requests(const spx_source *s)
{
  uint32_t n = s->served;
  for (const spx_hop *h = s->hops; h; h = h->next) n++;
  return n;
}

static uint64_t position(const spx_hop *h)
{
  if (!h->s) return h->at;
  return spx_is_done(h->s) ? h->end : h->s->out.at;
}

void spx_source_move(spx_source *s, void *to, bool all)
{
  for (uint32_t i = 0; i < s->parts; i++) {
    const spx_span *p = &s->spans[i];
    uint64_t from = all ? p->at : p->end;
    for (const spx_hop *h = s->hops; h && !all; h = h->next) {
      uint64_t at = position(h) > p->at ? position(h) : p->at;
      if (h->to > p->at && at < from) from = at;
    }
    if (from < p->end)
      spx_copy_past_cache((char *)to + from, (const char *)s->data + from, p->end - from);
  }
  for (const spx_hop *h = s->hops; h; h = h->next)
    if (h->s && !spx_is_done(h->s)) h->s->buf = to;
  s->data = to;
}

void spx_source_cut(spx_source *s)
{
  for (spx_hop *h = s->hops; h; h = h->next) {
    uint64_t there = reach(s, h->at);
    if (h->to > there) h->to = there > h->at ? there : h->at;
  }
  s->bytes = s->there;
}

void spx_source_end(spx_source *s)
{
  while (s->hops) {
    spx_hop *h = s->hops;
    s->hops = h->next;
    recall(h);
    free(h);
  }
}
