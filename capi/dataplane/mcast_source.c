/* mcast_source.c - data that come and are sent on as they come: a master's, and those of the hosts of a chain (mcast_relay.c).
 *
 * Who wants them asks, naming a receive of its own, and gets them as any announced message that is streamed: in pieces, each of them a send of what has
 * come meanwhile. All that they take here is the room where they come, whoever takes them or not.
 */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"
#include "plan_run.h"

/* Bytes of a message that are worth a send, unless they are the last: the shorter it is, the more the hosts behind gain by beginning early. */
static uint64_t piece(uint64_t bytes)
{
  enum { LEAST = 16 << 10, MOST = 64 << 10 };
  return bytes / 8 < LEAST ? LEAST : bytes / 8 < MOST ? bytes / 8 : MOST;
}

struct spx_hop {
  spx_hop *next;
  uint32_t peer, rx_index, rx_gen;
  uint64_t at, end,
      to; /* all before `at` are sent, those before `end` are on their way by s; wanted are those before `to` */
  spx_request *s;
};

bool spx_source_ask(spx_source *s, uint32_t peer, uint32_t rx_index, uint32_t rx_gen, uint64_t from, uint64_t to)
{
  if (to > s->bytes) to = s->bytes;
  const spx_hop *same = s->hops;
  while (same && !(same->peer == peer && same->rx_index == rx_index && same->rx_gen == rx_gen)) same = same->next;
  spx_hop *h = from <= to && !same ? malloc(sizeof *h) : NULL;
  if (!h) return false;
  *h = (spx_hop){.next = s->hops, .peer = peer, .rx_index = rx_index, .rx_gen = rx_gen, .at = from, .to = to};
  s->hops = h;
  spx_stat.streams++;
  spx_stat.streamed_bytes += to - from;
  return true;
}

static void send_piece(const spx_source *s, spx_hop *h)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  if (!r || ((spx_txs[h->peer].slow & SPX_TX_NEW) && spx_tx_init(h->peer) != MPI_SUCCESS))
    spx_fatal(MPI_ERR_NO_MEM, "no memory to send process %u the data of a multicast", h->peer);
  h->end = s->there < h->to ? s->there : h->to;
  r->kind = SPX_R_SEND;
  r->flags = SPX_RF_ACTIVE | SPX_RF_INTERNAL;
  r->buf = (void *)(uintptr_t)s->data;
  r->count = r->bytes = (int64_t)h->end;
  r->type = spx_byte_type();
  r->peer = h->peer;
  r->aux[1] = h->at;
  r->aux[2] = (uint64_t)h->rx_gen << 32 | h->rx_index;
  r->aux[3] = h->end;
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

int spx_source_pump(spx_source *s)
{
  int moved = 0;
  for (spx_hop **p = &s->hops; *p;) {
    spx_hop *h = *p;
    uint64_t before = h->at;
    bool over = false;
    while (!over && (!h->s || spx_is_done(h->s))) {
      over = !sent(h) || h->at >= h->to || spx_proc_left(h->peer);
      if (over || h->at >= s->there || (s->there - h->at < piece(s->bytes) && s->there < h->to)) break;
      send_piece(s, h);
    }
    moved += over || h->at != before;
    if (!over) {
      p = &h->next;
      continue;
    }
    s->served += h->at >= h->to;
    *p = h->next;
    free(h);
  }
  return moved;
}

void spx_source_cut(spx_source *s)
{
  s->bytes = s->there;
  for (spx_hop *h = s->hops; h; h = h->next)
    if (h->to > s->there) h->to = s->there;
}

void spx_source_end(spx_source *s)
{
  while (s->hops) {
    spx_hop *h = s->hops;
    s->hops = h->next;
    if (h->s) {
      if (!spx_is_done(h->s)) spx_tx_unqueue(h->peer, h->s);
      spx_retire(SPX_K_REQ, &h->s->o);
    }
    free(h);
  }
}
