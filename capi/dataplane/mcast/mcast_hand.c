/* mcast_hand.c - forwarding a multicast to members. docs/multicast.md.
 *
 * The master hands a message to one member, which serves the rest: so it is free at once. But where
 * processes outnumber processors, forwarding members have to be woken up first, each by the one
 * before, and that takes longer than to wake all of them from here: a woken process waits until its
 * waker, or another processor, has time for it. So messages that a member copies in about the time
 * that it takes to wake it are handed to each member of this host by the master itself, while these
 * are few. */
#include <stdlib.h>
#include "dp.h"
#include "mcast_op.h"

#define WIDE 16u /* branches on a host whose processes outnumber its processors */

static uint8_t *wire; /* a head and a set */

static uint32_t host_of(uint32_t i) { return spx_proc_of(i)->host; }

bool spx_mcast_hand_prepare(uint32_t n)
{
  return wire || (wire = malloc(sizeof(spx_mcast_head) + n * sizeof(spx_mcast_item)));
}

void spx_mcast_hand_detach(void)
{
  free(wire);
  wire = NULL;
}

void spx_mcast_put(uint32_t to, spx_mcast_head h, const spx_member *set, uint32_t n,
                   const void *data, uint32_t len)
{
  h.set = spx_mcast_encode(wire + sizeof h, set, n);
  memcpy(wire, &h, sizeof h);
  spx_rec_words as = {.piece.ctx = h.ctx};
  spx_tx_put_two(to, SPX_REC_MCAST, as, wire, (uint32_t)sizeof h + h.set, data, len);
}

/* Drops members that take no more messages, and so would forward none. */
uint32_t spx_mcast_living(spx_member *m, uint32_t n)
{
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++)
    if (!spx_proc_left(m[i].proc)) m[k++] = m[i];
  return k;
}

static uint32_t *switches, switched; /* of the first hosts */
static uint32_t switch_of(uint32_t host)
{
  return host < switched ? switches[host] : (1u << 21) + host;
}

spx_mcast_place *spx_mcast_known_switches(void) { return switches ? switch_of : NULL; }

void spx_mcast_switches(const uint32_t *of, uint32_t n)
{
  free(switches);
  switches = n ? malloc(n * sizeof *switches) : NULL;
  switched = switches ? n : 0;
  if (switches) memcpy(switches, of, n * sizeof *switches);
}

void spx_mcast_hand_on(spx_mcast_head h, spx_member *m, uint32_t n, const void *data, uint32_t len,
                       spx_ack_aggregation *g)
{
  spx_mcast_place *known = spx_mcast_known_switches();
  spx_mcast_tree t = spx_mcast_tree_of(m, spx_mcast_living(m, n), host_of(spx_me), host_of, known,
                                       spx_crowded ? WIDE : 0);
  /* each will copy */
  if (spx_crowded && h.flags & SPX_MCAST_ANNOUNCED) spx_load_deal(t.mine < WIDE ? t.mine : WIDE);
  for (spx_member *b; (b = spx_mcast_branch(&t, &n));) {
    h.number = b[0].number;
    spx_acks_behind(g, b[0].proc);
    spx_mcast_put(b[0].proc, h, b + 1, n - 1, data, len);
  }
  spx_ring_to = SPX_RING_ANYWHERE;
}

void spx_mcast_hand_each(spx_mcast_head h, const spx_member *m, uint32_t n, const void *data,
                         uint32_t len)
{
  for (uint32_t i = 0; i < n; i++) {
    h.number = m[i].number;
    if (!spx_proc_left(m[i].proc)) spx_mcast_put(m[i].proc, h, NULL, 0, data, len);
  }
}

/* The first member on this host, or else on its switch. */
static uint32_t lead_of(const spx_member *m, uint32_t n)
{
  uint32_t first = 0, home = switch_of(host_of(spx_me));
  while (first < n && host_of(m[first].proc) != host_of(spx_me)) first++;
  for (first = first == n ? 0 : first;
       switches && first < n && switch_of(host_of(m[first].proc)) != home;)
    first++;
  return first == n ? 0 : first;
}

bool spx_mcast_whole(const spx_request *r, uint32_t readers)
{
  return spx_crowded && readers <= spx_set.mcast_each && (uint64_t)r->bytes <= SPX_STAGING_STEP;
}

/* Hands it to those of the n members that read it from the staging buffer; returns how many others
 * there are. Each gets a record in its own channel, but along no tree: other messages from this
 * process to it may arrive before or after. */
static uint32_t hand_to_near(spx_mcast_head h, spx_member *m, uint32_t n, const void *data,
                             uint32_t len)
{
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++)
    if (spx_staging_reaches(m[i].proc))
      spx_mcast_hand_each(h, &m[i], 1, data, len);
    else
      m[k++] = m[i];
  return k;
}

/* The master is free after one record: one member serves all the rest. Where processes outnumber
 * processors that one runs on another processor than the master's: as a process that was asleep it
 * would run first. */
void spx_mcast_hand_over(spx_mcast_op *o, spx_mcast_head h, spx_member *m, uint32_t n,
                         const void *data, uint32_t len)
{
  o->lead = SPX_NO_PEER;
  n = spx_mcast_living(m, n);
  if (o->whole) n = hand_to_near(h, m, n, data, len);
  if (n == 0) return;
  uint32_t first = lead_of(m, n);
  spx_member lead = m[first];
  memmove(m + first, m + first + 1, (n - first - 1) * sizeof *m);
  h.number = lead.number;
  o->lead = lead.proc;
  if (spx_crowded) spx_ring_to = SPX_RING_AWAY;
  spx_mcast_put(lead.proc, h, m, n - 1, data, len);
  spx_ring_to = SPX_RING_ANYWHERE;
}

void spx_mcast_hand_along(spx_mcast_head h, spx_member *m, uint32_t n, const void *data,
                          uint32_t len, uint32_t to[2])
{
  spx_mcast_place *known = spx_mcast_known_switches();
  spx_mcast_tree t =
      spx_mcast_tree_of(m, spx_mcast_living(m, n), host_of(spx_me), host_of, known, 0);
  spx_member *first = spx_mcast_next_host(&t, host_of(spx_me), &n);
  to[0] = to[1] = SPX_NO_PEER;
  uint32_t cut = first && h.flags & SPX_MCAST_FORK
                     ? spx_mcast_halve(first, n, host_of(spx_me), host_of, known)
                     : n;
  for (uint32_t k = 0; first && k < 2 && n > 0; k++, first += cut, n -= cut, cut = n) {
    h.number = first->number;
    spx_mcast_put(to[k] = first->proc, h, first + 1, cut - 1, data, len);
  }
}
