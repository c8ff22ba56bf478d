/* mcast_chain.c - the master of a chain of hosts (mcast_relay.c).
 *
 * The message is written to the staging buffer, from where all get it, and becomes a multicast of
 * its own there, which no thread waits for: its caller may continue when the first host has the
 * data. Data are sent on as soon as they are written, part by part. */
#include "mcast.h"
#include <stdlib.h>
#include "mcast_op.h"
#include "plan_run.h"
#include "settings.h"

#define FEW 4u /* hosts: fewer are not worth parts */

/* The caller of the multicast s may go on. */
static void let_caller_go(spx_request *s)
{
  spx_mcast_op *o = s->priv;
  spx_request *r = o->outer;
  if (!r) return;
  if (o->source.there < o->source.bytes) /* it is over before that: members of this host may read */
    o->source.there = spx_staging_fill(o->block, r, o->source.there, true);
  spx_mcast_op *outer = r->priv;
  o->outer = outer->inner = NULL;
  outer->failed = outer->failed || o->failed;
  if (s->error != MPI_SUCCESS) r->error = s->error;
  spx_mcast_settle(r);
}

void spx_chain_end(spx_request *s)
{
  spx_mcast_op *o = s->priv;
  let_caller_go(s);
  spx_poller_del(&o->pump);
  spx_source_end(&o->source);
  spx_staging_close(o->block, false);
}

static int finish_inner(spx_request *r, MPI_Status *st)
{
  (void)st;
  return r->error;
}

/* The poller of a chain: puts down the next part of what its caller sends, and sends what is
 * there. */
static int pump(spx_poller *p)
{
  spx_mcast_op *o = (spx_mcast_op *)((char *)p - offsetof(spx_mcast_op, pump));
  uint64_t before = o->source.there;
  uint32_t served = o->source.served;
  if (before < o->source.bytes)
    o->source.there = spx_staging_fill(o->block, o->outer, before, false);
  int moved = spx_source_pump(&o->source) + (o->source.there > before);
  if (o->source.there == o->source.bytes && o->source.served > 0) let_caller_go(o->request);
  if (o->source.served > served) spx_mcast_settle(o->request);
  return moved;
}

/* Members of other hosts that forward; they are worth a chain if there are two of them. */
bool spx_chain_pays(const spx_request *r, const spx_member *members, uint32_t n)
{
  uint32_t away = 0;
  if (r->mode == SPX_M_SYNC || (uint64_t)r->bytes < spx_set.mcast_chain ||
      (uint64_t)r->bytes <= spx_set.eager_max)
    return false;
  for (uint32_t i = 0; i < n; i++)
    away += !spx_peer_is_far(members[i].proc) &&
            spx_proc_of(members[i].proc)->host != spx_proc_of(spx_me)->host;
  return away > 1 && !(spx_segment->flags & SPX_SEG_TCP);
}

/* The multicast r as one of its own, from the staging buffer; NULL: there is no room. */
spx_request *spx_chain_begin(spx_request *r, const spx_member *members, uint32_t n,
                             void (*release)(spx_request *), spx_mcast_rts *where)
{
  spx_mcast_op *outer = r->priv, *o = malloc(sizeof *o);
  spx_block *b = o ? spx_staging_take((uint64_t)r->bytes, members, n, true, where) : NULL;
  spx_request *s = b ? (spx_request *)spx_new(SPX_K_REQ) : NULL;
  if (!s) {
    if (b) spx_staging_drop(b);
    free(o);
    return NULL;
  }
  *o = (spx_mcast_op){.set = outer->set,
                      .block = b,
                      .outer = r,
                      .request = s,
                      .pump.poll = pump,
                      .head = SPX_NO_PEER,
                      .lead = SPX_NO_PEER};
  o->source = (spx_source){.data = spx_staging_room(b), .bytes = (uint64_t)r->bytes};
  s->kind = SPX_R_MCAST;
  s->mode = r->mode;
  s->flags = SPX_RF_ACTIVE | SPX_RF_INTERNAL | SPX_RF_FREED;
  s->src = s->want_src = MPI_ANY_SOURCE;
  s->tag = s->want_tag = r->want_tag;
  s->buf = spx_staging_room(b);
  s->count = s->bytes = r->bytes;
  s->type = spx_byte_type();
  s->comm = r->comm;
  s->ctx = r->ctx;
  s->ctx_kind = r->ctx_kind;
  s->peer = SPX_NO_PEER;
  s->priv = o;
  s->finish = finish_inner;
  s->release = release;
  spx_ref(&o->set->o);
  spx_ref(&s->comm->o);
  spx_ref(&s->type->o);
  o->source.there = spx_staging_fill(b, r, 0, false);
  spx_poller_add(&o->pump);
  outer->inner = s;
  return s;
}

static uint32_t host_of(uint32_t i) { return spx_proc_of(i)->host; }

/* From each host to two, or in parts, as SPX_MCAST_WAY sets. The fastest was measured
 * (docs/decisions/multicast.md): a chain, which takes as long as the link does; two each where it
 * would be long to fill. Parts, where SPX_MCAST_PARTS asks for them, cross from switch to switch
 * again and again. */
static uint16_t way_to(const spx_request *s, uint32_t hosts, bool switched)
{
  enum { AUTO, CHAIN, FORK, RING, DOUBLING };
  uint64_t way = spx_setting_value(SPX_SET_MCAST_WAY);
  double each = (double)s->bytes / hosts;
  if (way == AUTO) {
    bool parts =
        spx_set.mcast_parts && hosts >= FEW && !switched && each >= (double)spx_set.mcast_parts;
    way = parts ? DOUBLING : each <= (double)spx_set.mcast_fork ? FORK : CHAIN;
  }
  if (way == CHAIN || hosts < 2) return 0;
  return (uint16_t)(SPX_MCAST_FORK | (way == RING       ? SPX_MCAST_RING
                                      : way == DOUBLING ? SPX_MCAST_DOUBLING
                                                        : 0));
}

uint32_t spx_chain_way(spx_request *s, spx_mcast_head *h, const spx_member *m, uint32_t n,
                       bool switched, uint8_t *announcement, uint32_t len)
{
  spx_member *leads = malloc(n * sizeof *leads);
  if (!leads) return len; /* a chain, then */
  uint32_t hosts = spx_mcast_leads(m, n, host_of, leads);
  h->flags |= way_to(s, hosts, switched);
  if (h->flags & SPX_MCAST_PARTS) {
    len += spx_mcast_encode(announcement + len, leads, hosts);
    ((spx_mcast_op *)s->priv)->source.parts = hosts;
  }
  free(leads);
  return len;
}

void spx_mcast_asked_from(uint32_t peer, const spx_rec *rec)
{
  spx_rec_ask a;
  memcpy(&a, rec->data, sizeof a);
  spx_request *r = rec->as.ask.what == SPX_ASK_FOR ? spx_id_find(a.index, a.gen) : NULL;
  spx_mcast_op *o = r && r->kind == SPX_R_MCAST && spx_mcast_has(r, peer) ? r->priv : NULL;
  if (o && spx_chain_is(o) && spx_source_may_ask(&o->source, peer) &&
      spx_source_ask(&o->source, peer, a.rx_index, a.rx_gen, a.from, rec->as.ask.to))
    return;
  if (rec->as.ask.what == SPX_ASK_FOR) {
    spx_rec_words none = {.ask = {rec->as.ask.to, SPX_ASK_NONE, 0}};
    spx_tx_put(peer, SPX_REC_MCAST_ASK, none, &a, sizeof a);
  }
}

static void count_one(uint32_t proc, void *n)
{
  (void)proc;
  ++*(uint32_t *)n;
}

bool spx_mcast_wanted(const spx_request *r)
{
  const spx_mcast_op *o = r->priv;
  uint32_t n = o->streams + (o->source.hops != NULL);
  spx_mcast_each_missing(r, count_one, &n);
  return n > 0;
}
