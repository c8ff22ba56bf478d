/* mcast_fetch.c - multicasts of which members fetch the data, or confirm that they have received
 * it: what comes of that at the master. One that cannot read this process's memory gets a stream.
 */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"
#include "mcast_op.h"

typedef spx_mcast_op op;

static void settle(spx_request *r) { spx_mcast_settle(r); }

bool spx_mcast_has(const spx_request *r, uint32_t peer)
{
  return spx_mcast_at(((const op *)r->priv)->set, peer) != UINT32_MAX;
}

static void not_member(uint32_t peer)
{
  spx_refuse(peer, "the name of a multicast of which it is no member");
}

void spx_mcast_fetched(spx_request *r, uint32_t peer)
{
  if (!spx_mcast_has(r, peer))
    not_member(peer);
  else if (spx_mcast_strike(r->priv, peer))
    settle(r);
}

/* A relay has reported which members have the data: not those that got the message from here, and
 * may fetch them from here. Or some have received it. */
void spx_mcast_had(uint32_t peer, const spx_rec *rec)
{
  spx_rec_have a;
  memcpy(&a, rec->data, sizeof a);
  spx_request *r = spx_id_find(a.index, a.gen);
  if (!r || r->kind != SPX_R_MCAST || !spx_mcast_members)
    return; /* spx_mcast_members: this process has left */
  op *o = r->priv;
  if (!spx_mcast_has(r, peer)) return; /* it may have forwarded another member's report */
  int32_t what = rec->as.have.what;
  if (what == SPX_MCAST_LOST) spx_mcast_ask_all(r);
  if (what == SPX_MCAST_LOST || spx_mcast_wants_acks(r) != (what == SPX_MCAST_GOT)) return;
  int64_t n = spx_mcast_decode(rec->data + sizeof a, rec->len - (uint32_t)sizeof a, spx_map.nprocs,
                               spx_mcast_members);
  for (int64_t i = 0; i < n; i++) {
    uint32_t at = spx_mcast_at(o->set, spx_mcast_members[i].proc);
    if (at != UINT32_MAX && o->fetched && (spx_mcast_wants_acks(r) || o->fetched[at] == NOT_YET))
      spx_mcast_strike(o, spx_mcast_members[i].proc);
  }
  settle(r);
}

/* A stream to a member has ended. No lock is held. */
static int streamed(spx_request *s, MPI_Status *st)
{
  (void)st;
  spx_request *r = s->priv;
  spx_lock();
  op *o = r->priv;
  o->streams--;
  if (s->error == MPIX_ERR_PROC_FAILED)
    o->failed = true;
  else if (s->error != MPI_SUCCESS)
    r->error = s->error;
  settle(r);
  spx_unlock();
  return MPI_SUCCESS;
}

void spx_mcast_asked(spx_request *r, uint32_t peer, const spx_rec_cts *cts, bool relays)
{
  op *o = r->priv;
  uint64_t bytes = cts->bytes;
  if (!spx_mcast_has(r, peer)) {
    not_member(peer);
    return;
  }
  if (!(relays && spx_mcast_wants_acks(r) && o->streams < o->set->n) && !spx_mcast_strike(o, peer))
    return;
  if (spx_chain_is(o)) {
    if (!spx_source_ask(&o->source, peer, cts->rx_index, cts->rx_gen, 0, bytes))
      spx_fatal(MPI_ERR_NO_MEM, "no memory to answer process %u, a member of a multicast", peer);
    return;
  }
  spx_request *s = (spx_request *)spx_new(SPX_K_REQ);
  if (!s || ((spx_txs[peer].slow & SPX_TX_NEW) && spx_tx_init(peer) != MPI_SUCCESS))
    spx_fatal(MPI_ERR_NO_MEM, "no memory to answer process %u, a member of a multicast", peer);
  s->kind = SPX_R_SEND;
  s->flags = SPX_RF_ACTIVE | SPX_RF_INTERNAL | SPX_RF_FREED;
  s->finish = streamed;
  s->priv = r;
  s->buf = r->buf;
  s->count = r->count;
  s->type = r->type;
  s->comm = r->comm;
  s->ctx = r->ctx;
  s->ctx_kind = r->ctx_kind;
  s->peer = peer;
  s->bytes = r->bytes;
  s->out.to = (spx_name){cts->rx_index, cts->rx_gen};
  s->out.end = bytes < (uint64_t)r->bytes ? bytes : (uint64_t)r->bytes;
  spx_stat.streams++;
  spx_stat.streamed_bytes += s->out.end;
  o->streams++;
  spx_tx_stream(peer, s);
  spx_tx_drain();
}

void spx_mcast_fail(spx_request *r, int error)
{
  op *o = r->priv;
  r->error = error;
  o->left = 0;
  settle(r);
}

void spx_mcast_each_missing(const spx_request *r, void (*fn)(uint32_t proc, void *), void *arg)
{
  const op *o = r->priv;
  if (o->inner) {
    spx_mcast_each_missing(o->inner, fn, arg);
    return;
  }
  if (o->waits && !o->direct && !o->fetched) fn(o->lead, arg);
  for (uint32_t i = 0; o->waits && o->direct && !o->fetched && i < o->set->n; i++)
    if (spx_txs[o->set->procs[i]].pend) fn(o->set->procs[i], arg);
  for (uint32_t i = 0; o->fetched && i < o->set->n; i++)
    if (o->fetched[i] != FETCHED && o->set->procs[i] != spx_me && !spx_proc_left(o->set->procs[i]))
      fn(o->set->procs[i], arg);
}
