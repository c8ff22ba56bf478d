/* mcast_chain.c - the master of a chain of hosts (mcast_relay.c).
 *
 * The message is put on the shelf, whence all get it, and becomes a multicast of its own there, which nobody waits for: its caller may go on
 * when the first host has the data. What is put down is sent on at once, part by part.
 */
#include "mcast.h"
#include <stdlib.h>
#include "mcast_op.h"
#include "plan_run.h"

/* The caller of the multicast s may go on. */
static void let_caller_go(spx_request *s)
{
  spx_mcast_op *o = s->priv;
  spx_request *r = o->outer;
  if (!r) return;
  if (o->source.there < o->source.bytes) /* it is over before that: members of this host may read */
    o->source.there = spx_shelf_fill(o->block, r, o->source.there, true);
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
  spx_shelf_close(o->block, false);
}

static int finish_inner(spx_request *r, MPI_Status *st)
{
  (void)st;
  return r->error;
}

/* The poller of a chain: puts down the next part of what its caller sends, and sends what is there. */
static int pump(spx_poller *p)
{
  spx_mcast_op *o = (spx_mcast_op *)((char *)p - offsetof(spx_mcast_op, pump));
  uint64_t before = o->source.there;
  uint32_t served = o->source.served;
  if (before < o->source.bytes) o->source.there = spx_shelf_fill(o->block, o->outer, before, false);
  int moved = spx_source_pump(&o->source) + (o->source.there > before);
  if (o->source.there == o->source.bytes && o->source.served > 0) let_caller_go(o->request);
  if (o->source.served > served) spx_mcast_settle(o->request);
  return moved;
}

/* Members of other hosts that hand on; they are worth a chain if there are two of them. */
bool spx_chain_pays(const spx_request *r, const spx_member *members, uint32_t n)
{
  uint32_t away = 0;
  if (r->mode == SPX_M_SYNC || (uint64_t)r->bytes < spx_set.mcast_chain || (uint64_t)r->bytes <= spx_set.eager_max)
    return false;
  for (uint32_t i = 0; i < n; i++)
    away += !spx_peer_is_far(members[i].proc) && spx_proc_of(members[i].proc)->host != spx_proc_of(spx_me)->host;
  return away > 1 && !(spx_segment->flags & SPX_SEG_TCP);
}

/* The multicast r as one of its own, from the shelf; NULL: there is no room. */
spx_request *spx_chain_begin(spx_request *r, const spx_member *members, uint32_t n, void (*release)(spx_request *),
                             spx_mcast_rts *where)
{
  spx_mcast_op *outer = r->priv, *o = malloc(sizeof *o);
  spx_block *b = o ? spx_shelf_take((uint64_t)r->bytes, members, n, true, where) : NULL;
  spx_request *s = b ? (spx_request *)spx_new(SPX_K_REQ) : NULL;
  if (!s) {
    if (b) spx_shelf_drop(b);
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
  o->source = (spx_source){.data = spx_shelf_room(b), .bytes = (uint64_t)r->bytes};
  s->kind = SPX_R_MCAST;
  s->mode = r->mode;
  s->flags = SPX_RF_ACTIVE | SPX_RF_INTERNAL | SPX_RF_FREED;
  s->src = s->want_src = MPI_ANY_SOURCE;
  s->tag = s->want_tag = r->want_tag;
  s->buf = spx_shelf_room(b);
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
  o->source.there = spx_shelf_fill(b, r, 0, false);
  spx_poller_add(&o->pump);
  outer->inner = s;
  return s;
}

void spx_mcast_asked_from(uint32_t peer, const spx_rec *rec)
{
  spx_rec_ask a;
  memcpy(&a, rec->data, sizeof a);
  spx_request *r = rec->tag == 0 ? spx_id_find(a.index, a.gen) : NULL;
  spx_mcast_op *o = r && r->kind == SPX_R_MCAST && spx_mcast_has(r, peer) ? r->priv : NULL;
  if (o && spx_chain_is(o) && spx_source_ask(&o->source, peer, a.rx_index, a.rx_gen, a.from, UINT64_MAX)) return;
  if (rec->tag == 0) spx_tx_put(peer, SPX_REC_MCAST_ASK, 0, 1, 0, &a, sizeof a); /* there are none */
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
