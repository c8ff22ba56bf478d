/* mcast_match.c - multicasts among the messages that receives match: kinds.h. docs/multicast.md.
 *
 * A multicast enters matching in its turn (mcast_arrive.c), with its data or, if it is announced,
 * with the place of these: on this host (mcast_staging.c), or at its master.
 */
#include "dp.h"
#include "kinds.h"
#include "mcast_op.h"

static bool keep_mcast(uint32_t master, const spx_mcast_head *h, spx_mcast_name name,
                       const void *data, uint32_t n)
{
  bool announced = h->flags & SPX_MCAST_ANNOUNCED;
  spx_unex *e = spx_unex_new(n);
  if (!e) return false;
  e->ctx = h->ctx;
  e->src = h->src;
  e->tag = h->tag;
  e->proc = master;
  e->seq = h->number;
  e->kind = announced ? SPX_REC_MCAST_RTS : SPX_REC_MCAST;
  e->bytes = n;
  if ((e->addr =
           (h->flags & SPX_MCAST_ACKED) != 0)) { /* the master must learn which member takes it */
    e->index = name.index;
    e->gen = name.gen;
  }
  memcpy(e->data, data, n);
  if (announced) {
    spx_mcast_rts where;
    memcpy(&where, data, sizeof where);
    e->bytes = where.rts.bytes;
  } else
    spx_stat.unexpected_bytes += n;
  spx_unex_add(e);
  return true;
}

/* The receive r has matched an announced multicast; data: an spx_mcast_rts. */
static void fetch_mcast(spx_request *r, uint32_t master, const void *data, bool acked)
{
  spx_mcast_rts where;
  memcpy(&where, data, sizeof where);
  spx_accept(r, where.rts.bytes);
  bool here = spx_staging_has(master, &where);
  if (here)
    spx_staging_read(r, master, &where);
  else
    spx_fetch_now(r, master, &where.rts);
  if (acked) spx_mcast_took(master, (spx_mcast_name){where.rts.index, where.rts.gen}, !here);
}

bool spx_deliver_mcast(uint32_t master, const spx_mcast_head *h, const void *data, uint32_t n)
{
  bool announced = h->flags & SPX_MCAST_ANNOUNCED, acked = h->flags & SPX_MCAST_ACKED;
  spx_mcast_name name = {0};
  spx_mcast_rts where = {.rts.bytes = n};
  if (announced) {
    memcpy(&where, data, sizeof where);
    name = (spx_mcast_name){where.rts.index, where.rts.gen};
  } else if (acked) {
    memcpy(&name, data, sizeof name);
    data = (const uint8_t *)data + sizeof name;
    where.rts.bytes = n -= (uint32_t)sizeof name;
  }
  spx_request *r = spx_match_posted(h->ctx, h->src, h->tag);
  if (!r) return keep_mcast(master, h, name, data, n);
  spx_found(r, h->src, h->tag, master, where.rts.bytes, h->number, true);
  if (announced) {
    fetch_mcast(r, master, data, acked);
    return true;
  }
  spx_receive_whole(r, data, n);
  spx_mcast_matched(master, n);
  if (acked) spx_mcast_took(master, name, false);
  spx_complete(r, r->error);
  return true;
}

static void take(spx_request *r, const spx_unex *e)
{
  spx_found(r, e->src, e->tag, e->proc, e->bytes, e->seq, true);
  if (e->kind == SPX_REC_MCAST_RTS) {
    fetch_mcast(r, e->proc, e->data, e->addr != 0);
    return;
  }
  spx_receive_whole(r, e->data, e->bytes);
  spx_mcast_matched(e->proc, e->bytes);
  if (e->addr) spx_mcast_took(e->proc, (spx_mcast_name){e->index, e->gen}, false);
  spx_complete(r, r->error);
}

/* An announced multicast that no receive here will fetch. */
static void pass(const spx_unex *e)
{
  spx_mcast_rts where;
  memcpy(&where, e->data, sizeof where);
  if (spx_staging_has(e->proc, &where)) spx_staging_pass(e->proc, &where);
}

static void drop(const spx_unex *e)
{
  if (e->kind == SPX_REC_MCAST)
    spx_mcast_matched(e->proc, e->bytes);
  else
    pass(e);
}

const spx_cast_ops spx_mcast_unexpected = {take, drop};
const spx_kind_ops spx_mcast_kind = {spx_mcast_fail, spx_mcast_fetched, spx_mcast_asked};

bool spx_mcast_on_record(uint32_t peer, const spx_rec *rec)
{
  switch (rec->kind) {
  case SPX_REC_MCAST_ACK: spx_mcast_acked(peer, rec); return true;
  case SPX_REC_MCAST_ASK: spx_mcast_on_ask(peer, rec); return true;
  case SPX_REC_MCAST_HAVE: spx_mcast_on_have(peer, rec); return true;
  default: return spx_mcast_arrived(peer, rec);
  }
}
