/* mcast_relay_direct.c - a relay (mcast_relay.c) that is the only member of its host, and receives
 * the message while it comes.
 *
 * The data go from the network straight into its receive, and from there to the next hosts: no
 * process here reads a staging buffer. The receive completes when all have come, as any other does,
 * however slow the next hosts are: what they have still to get is copied into the block of the
 * staging buffer first, and sent from there. Hosts that go on at the same pace leave little to be
 * copied, and the last host of a chain nothing.
 */
#include "mcast_relay.h"
#include "dp.h"

char *spx_mcast_relay_room(const relay *x)
{
  return x->into ? x->into->buf : spx_staging_room(x->block);
}

/* One run of memory for all of the message, which the program has until the receive is complete. */
static bool can_take(const spx_request *r, uint64_t bytes)
{
  return (uint64_t)r->bytes == bytes && r->error == MPI_SUCCESS && r->type->flags & SPX_T_CONTIG &&
         !(r->flags & (SPX_RF_KEPT | SPX_RF_WORD | SPX_RF_PASS));
}

bool spx_mcast_relay_into(spx_request *r, uint32_t master, const spx_mcast_rts *where)
{
  relay *x = spx_mcast_relay_find(master, where->rts.index, where->rts.gen);
  if (!x || x->direct || x->whole || x->revoked || x->mine > 0 || !can_take(r, x->source.bytes))
    return false;
  const char *before = spx_mcast_relay_room(x);
  for (uint32_t i = 0; i < parts_of(x); i++) {
    const share *s = &x->shares[i];
    uint64_t there = x->span[i].there;
    if (s->r && !spx_is_done(s->r)) there = s->base + s->r->in.at;
    if (s->r && spx_is_done(s->r) && s->r->error == MPI_SUCCESS) there = x->span[i].end;
    memcpy((char *)r->buf + x->span[i].at, before + x->span[i].at, there - x->span[i].at);
  }
  x->direct = true;
  x->into = r;
  x->source.data = r->buf;
  for (uint32_t i = 0; i < parts_of(x); i++)
    if (x->shares[i].r) x->shares[i].r->buf = (char *)r->buf + x->shares[i].base;
  r->state = SPX_S_DATA;
  r->in.at = 0;
  r->in.block = NULL;
  return true;
}

/* Does a host that is to get data from this one have yet to request them? */
static bool awaits_requests(const relay *x)
{
  if (x->leads == 0) return spx_source_requests(&x->source) < x->successors;
  for (uint32_t k = 0; k < x->leads; k++)
    if (k != x->lead && !(x->word[k] & NOTIFIED) && !spx_proc_left(x->lead_of[k].proc) &&
        spx_mcast_part_from(is_doubling(x), k, x->lead, x->leads) == x->lead)
      return true;
  return false;
}

void spx_mcast_relay_received(relay *x, int error)
{
  spx_request *r = x->into;
  if (!r) return;
  if (error == MPI_SUCCESS) {
    bool all = awaits_requests(x);
    spx_source_move(&x->source, spx_staging_room(x->block), all);
    x->partly = !all;
  }
  x->into = NULL;
  r->state = SPX_S_NONE;
  r->in.at = 0;
  spx_complete(r, error == MPI_SUCCESS ? r->error : error);
}
