/* mcast_relay_have.c - which members have a message that is relayed (mcast_relay.c): a relay
 * notifies the one before it, or the master, when those behind it have notified it.
 */
#include <stdlib.h>
#include "dp.h"
#include "mcast.h"
#include "mcast_relay.h"

#define ITEMS                                                                                      \
  6u /* of a set in one record; through memory one, which fits into a line: two lines may never    \
        fit into the smallest channel */

static int by_proc(const void *a, const void *b)
{
  uint32_t x = ((const spx_member *)a)->proc, y = ((const spx_member *)b)->proc;
  return (x > y) - (x < y);
}

void spx_mcast_tell(uint32_t to, const spx_rec_have *have, int32_t what, spx_member *m, uint32_t n)
{
  struct {
    spx_rec_have have;
    spx_mcast_item items[ITEMS];
  } part = {*have, {{0}}};
  _Static_assert(sizeof part.have + sizeof *part.items <= SPX_REC_INLINE, "a record of one line");
  uint32_t k = 0, at = 0, now, most = spx_net_peer(to) ? ITEMS : 1;
  spx_mcast_item *items = malloc((n + 1) * sizeof *items);
  if (!items)
    spx_fatal(MPI_ERR_NO_MEM, "no memory to tell who has a multicast of process %u", have->master);
  if (n) qsort(m, n, sizeof *m, by_proc);
  for (uint32_t i = 0; i < n; i++)
    if (k == 0 || m[i].proc != m[k - 1].proc) m[k++] = (spx_member){m[i].proc, 1};
  n = spx_mcast_encode(items, m, k) / (uint32_t)sizeof *items;
  do {
    now = n - at < most ? n - at : most;
    memcpy(part.items, items + at, now * sizeof *items);
    at += now;
    spx_rec_words as = {.have = {.more = at < n, .what = what}};
    if (!spx_proc_left(to))
      spx_tx_put(to, SPX_REC_MCAST_HAVE, as, &part,
                 (uint32_t)(sizeof part.have + now * sizeof *items));
  } while (at < n);
  free(items);
}

void spx_mcast_relay_notify(relay *x)
{
  spx_rec_have have = {x->h.master, x->where.rts.index, x->where.rts.gen, 0};
  spx_mcast_tell(x->chain && !spx_proc_left(x->up) ? x->up : x->h.master, &have, SPX_MCAST_DATA,
                 x->members, x->n);
}

/* The entry of peer among the successors; NULL: it is none of them, or has sent its report. */
static uint32_t *behind_is(relay *x, uint32_t peer)
{
  for (int k = 0; k < 2; k++)
    if (x->behind[k] == peer) return &x->behind[k];
  return NULL;
}

void spx_mcast_on_have(uint32_t peer, const spx_rec *rec)
{
  spx_rec_have a;
  if (rec->len < sizeof a) return;
  memcpy(&a, rec->data, sizeof a);
  if (a.master == spx_me) {
    spx_mcast_had(peer, rec);
    return;
  }
  relay *x = spx_mcast_relay_find(a.master, a.index, a.gen);
  bool got = rec->as.have.what == SPX_MCAST_GOT;
  uint32_t *behind = x ? behind_is(x, peer) : NULL;
  if (!got && !behind) { /* this process has reported already */
    if (a.master < spx_segment->nprocs && !spx_proc_left(a.master))
      spx_tx_put(a.master, SPX_REC_MCAST_HAVE, rec->as, rec->data, rec->len);
    return;
  }
  spx_member *m = malloc(spx_segment->nprocs * sizeof *m);
  int64_t n = m ? spx_mcast_decode(rec->data + sizeof a, rec->len - (uint32_t)sizeof a,
                                   spx_segment->nprocs, m)
                : -1;
  if (got) {
    if (!m)
      spx_fatal(MPI_ERR_NO_MEM, "no memory to hear who has received a multicast of process %u",
                a.master);
    spx_acks_got(peer, &a, m, n > 0 ? (uint32_t)n : 0, rec->as.have.more != 0);
    free(m);
    return;
  }
  if (n > 0 && (uint64_t)n <= x->room - x->n) {
    memcpy(x->members + x->n, m, (uint64_t)n * sizeof *m);
    x->n += (uint32_t)n;
  }
  free(m);
  if (rec->as.have.more == 0) *behind = SPX_NO_PEER;
}
