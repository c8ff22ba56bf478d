/* mcast_kept.c - what the master of multicasts keeps: each message until all its members have
 * acknowledged it, and what it has sent to each process. From here a message is sent again when
 * a process dies that may have had to forward it; and what a member lacks goes directly, in order.
 */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"
#include "fail.h"
#include "mcast_op.h"

typedef spx_mcast_op op;

spx_mcast_to *spx_mcast_out;
spx_mcast_entry *spx_mcast_kept, **spx_mcast_kept_end = &spx_mcast_kept;
uint64_t spx_mcast_kept_bytes;
spx_member *spx_mcast_members;

static uint32_t after(uint32_t number) { return spx_mcast_after(number); }
static bool is_before(uint32_t a, uint32_t b) { return spx_mcast_is_before(a, b); }

static uint32_t set_of(const spx_mcast_entry *e, spx_mcast_head *h)
{
  memcpy(h, e->data, sizeof *h);
  int64_t n = spx_mcast_decode(e->data + sizeof *h, h->set, spx_map.nprocs, spx_mcast_members);
  return n > 0 ? (uint32_t)n : 0;
}

static bool has_it(spx_member m)
{
  return !is_before(spx_mcast_out[m.proc].acked, m.number) || spx_proc_left(m.proc);
}

void spx_mcast_release_kept(void)
{
  while (spx_mcast_kept && !spx_mcast_kept->r) {
    spx_mcast_entry *e = spx_mcast_kept;
    spx_mcast_head h;
    uint32_t n = set_of(e, &h);
    for (uint32_t i = 0; i < n; i++)
      if (!has_it(spx_mcast_members[i])) return;
    if (!(spx_mcast_kept = e->next)) spx_mcast_kept_end = &spx_mcast_kept;
    spx_mcast_kept_bytes -= e->len;
    free(e);
  }
}

void spx_mcast_renew(uint32_t proc)
{
  for (spx_mcast_entry *e = spx_mcast_out[proc].life ? spx_mcast_kept : NULL; e; e = e->next) {
    spx_mcast_head h;
    uint32_t n = set_of(e, &h), k = 0;
    for (uint32_t i = 0; i < n; i++)
      if (spx_mcast_members[i].proc != proc) spx_mcast_members[k++] = spx_mcast_members[i];
    if (k == n) continue;
    h.set = 0; /* it is not sent again */
    memcpy(e->data, &h, sizeof h);
  }
  uint32_t first = spx_mcast_first();
  spx_mcast_out[proc] =
      (spx_mcast_to){.life = spx_life_of(proc), .number = first, .acked = first, .direct = first};
}

/* Has a member an announced message, or is its record in the channel from its relay? Then it must
 * not request the data: it would get no answer. */
static bool is_there(const spx_mcast_entry *e, const spx_mcast_head *h, spx_member m)
{
  const op *o = e->r ? e->r->priv : NULL;
  uint32_t at = o && o->fetched ? spx_mcast_at(o->set, m.proc) : UINT32_MAX;
  return h->flags & SPX_MCAST_ANNOUNCED && !spx_staging_reaches(m.proc) &&
         (at == UINT32_MAX || o->fetched[at] == FETCHED);
}

/* Puts the message into the member's own channel; twice: it has gone another way, too. */
static void put_again(const spx_mcast_entry *e, spx_mcast_head h, spx_member m, bool twice)
{
  if (is_there(e, &h, m)) return;
  uint32_t skip = (uint32_t)sizeof h + h.set;
  h.number = m.number;
  h.flags &= (uint16_t)~SPX_MCAST_ALONG;
  if (twice) h.flags |= SPX_MCAST_AGAIN;
  if (spx_peer_is_far(m.proc)) h.master = SPX_MCAST_DIRECT;
  op *o = e->r ? e->r->priv : NULL;
  uint32_t at = o && o->fetched ? spx_mcast_at(o->set, m.proc) : UINT32_MAX;
  if (at != UINT32_MAX && o->fetched[at] == NOT_YET) o->fetched[at] = ITSELF;
  spx_mcast_put(m.proc, h, NULL, 0, e->data + skip, e->len - skip);
}

/* What follows in the member's channel comes after a message that is there. */
static void put_order(spx_mcast_head h, spx_member m)
{
  h.number = m.number;
  h.flags = SPX_MCAST_THERE;
  spx_mcast_put(m.proc, h, NULL, 0, NULL, 0);
}

/* Is the member not known to have received the message, whose master wants to know? */
static bool is_unknown(const spx_request *r, uint32_t proc)
{
  const op *o = r->priv;
  uint32_t at = o->fetched ? spx_mcast_at(o->set, proc) : UINT32_MAX;
  return at != UINT32_MAX && o->fetched[at] != FETCHED && !spx_proc_left(proc);
}

/* Resends what a process may have had to forward to all members that have not acknowledged it, and
 * to those that may have received it and reported that to a process that is gone: a member that
 * gets it from here answers here. */
static void send_again(spx_mcast_entry *e, const spx_mcast_head *h, uint32_t n)
{
  bool acked = e->r && spx_mcast_wants_acks(e->r);
  e->all = true;
  for (uint32_t i = 0; i < n; i++)
    if (!has_it(spx_mcast_members[i]) || (acked && is_unknown(e->r, spx_mcast_members[i].proc)))
      put_again(e, *h, spx_mcast_members[i], true);
  if (acked) spx_mcast_await_gone(e->r);
}

/* Is proc one of the first n of `members`? */
static bool is_member(uint32_t proc, uint32_t n)
{
  uint32_t k = 0;
  while (k < n && spx_mcast_members[k].proc != proc) k++;
  return k < n;
}

void spx_mcast_send_split(uint32_t member)
{
  if (!spx_mcast_out) return;
  for (spx_mcast_entry *e = spx_mcast_kept; e; e = e->next) {
    spx_mcast_head h;
    if (!e->split || e->all) continue;
    uint32_t n = set_of(e, &h);
    if (member == SPX_NO_PEER || is_member(member, n)) send_again(e, &h, n);
  }
}

void spx_mcast_acked(uint32_t peer, const spx_rec *rec)
{
  uint32_t number = rec->as.acked.number;
  if (!spx_mcast_out || spx_mcast_out[peer].life != spx_life_of(peer)) return;
  if (is_before(spx_mcast_out[peer].number, number)) {
    spx_refuse(peer, "word of a multicast that it was not sent");
    return;
  }
  if (is_before(spx_mcast_out[peer].acked, number)) spx_mcast_out[peer].acked = number;
  uint64_t matched;
  memcpy(&matched, rec->data, sizeof matched);
  spx_mcast_out[peer].matched =
      matched < spx_mcast_out[peer].sent ? matched : spx_mcast_out[peer].sent;
  if (rec->as.acked.word == SPX_MCAST_LAST_WORD) spx_mcast_send_split(peer);
  spx_mcast_release_kept();
}

/* Puts all that a member may lack into its own channel, up to `last`, the message that was kept
 * last. */
static void catch_up(uint32_t member, spx_mcast_entry *last)
{
  spx_mcast_to *to = &spx_mcast_out[member];
  uint32_t had = is_before(to->acked, to->direct) ? to->direct : to->acked;
  for (spx_mcast_entry *e = after(had) == to->number ? last : spx_mcast_kept; e; e = e->next) {
    spx_mcast_head h;
    uint32_t n = set_of(e, &h);
    for (uint32_t i = 0; i < n; i++) {
      if (spx_mcast_members[i].proc != member || !is_before(had, spx_mcast_members[i].number))
        continue;
      if (is_there(e, &h, spx_mcast_members[i])) {
        put_order(h, spx_mcast_members[i]);
        continue;
      }
      e->split = e->split || e->tree;
      put_again(e, h, spx_mcast_members[i], e->tree);
    }
  }
  to->direct = to->number;
}

void spx_mcast_in_order(op *o, spx_mcast_entry *e)
{
  o->direct = true;
  for (uint32_t i = 0; i < o->set->n; i++)
    if (o->set->procs[i] != spx_me && !spx_proc_left(o->set->procs[i]))
      catch_up(o->set->procs[i], e);
}

void spx_mcast_ask_all(spx_request *r)
{
  op *o = r->priv;
  if (!spx_mcast_wants_acks(r) || o->lossy) return;
  for (spx_mcast_entry *e = spx_mcast_kept; e; e = e->next) {
    spx_mcast_head h;
    if (e->r != r) continue;
    uint32_t n = set_of(e, &h);
    send_again(e, &h, n);
    break;
  }
}

static void died(uint32_t peer)
{
  spx_staging_peer_failed(peer);
  spx_mcast_relay_peer_failed(peer);
  spx_mcast_forget(peer);
  spx_acks_peer_failed(peer);
  if (!spx_mcast_out) return;
  for (spx_mcast_entry *e = spx_mcast_kept, *next; e; e = next) {
    next = e->next;
    spx_mcast_head h;
    uint32_t n = set_of(e, &h);
    if (is_member(peer, n)) send_again(e, &h, n);
    if (!e->r) continue;
    op *o = e->r->priv;
    if (!spx_mcast_strike(o, peer)) continue;
    o->failed = true;
    spx_mcast_settle(e->r);
  }
  spx_mcast_release_kept();
}

static void revoked(const spx_comm *c)
{
  spx_mcast_relay_revoked(c->ctx);
  spx_acks_revoked(c->ctx);
}

const spx_failure_observer spx_mcast_failures = {.died = died, .revoked = revoked};
