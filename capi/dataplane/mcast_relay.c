/* mcast_relay.c - one copy of a long multicast for each host.
 *
 * The member that hands an announced message on to others of its host fetches the data itself, onto its shelf (mcast_shelf.c), and hands
 * the message on when all of them are there: the connection of the master carries them once for each host, and who reads them on this
 * host needs neither the network nor the master. Those of other hosts get the message at once. Each member gets its own record, so that
 * it has the message when the master is told so: nobody else may die who had to hand it on.
 *
 * Nobody knows of a message whose data were not there when its relay died: the master sends it to the members itself then, as it does
 * whenever somebody dies who had to hand something on (mcast.c). It keeps the data until the relay of each host has told that they are
 * there. What a dead relay has put down stays.
 */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"
#include "plan_run.h"

typedef struct relay {
  struct relay *next;
  spx_poller poller; /* waits for the data */
  spx_request *r;
  spx_block *block;
  spx_mcast_head h;
  spx_mcast_rts where;
  uint32_t n;
  spx_member members[]; /* who gets it then */
} relay;

uint32_t spx_mcast_relaying;
static relay *all;

static uint32_t host_of(uint32_t i) { return spx_proc_of(i)->host; }

static void end(relay *x)
{
  relay **p = &all;
  while (*p != x) p = &(*p)->next;
  *p = x->next;
  spx_retire(SPX_K_REQ, &x->r->o);
  free(x);
  spx_mcast_relaying--;
}

static int go_on(spx_poller *p)
{
  relay *x = (relay *)((char *)p - offsetof(relay, poller));
  if (!spx_is_done(x->r)) return 0;
  spx_poller_del(p);
  if (x->r->error == MPI_SUCCESS) {
    spx_shelf_came(x->block, x->where.rts.bytes);
    spx_mcast_hand_each(x->h, x->members, x->n, &x->where, sizeof x->where);
    for (uint32_t i = 0; i < x->n; i++) {
      spx_rec_id done = {x->where.rts.index, x->where.rts.gen, SPX_MCAST_FOR(x->members[i].proc)};
      spx_tx_put(x->h.master, SPX_REC_DONE, 0, 0, 0, &done, sizeof done);
    }
  } else /* the master is dead, or the communicator is revoked */
    spx_shelf_lost(x->block, x->r->error);
  end(x);
  return 1;
}

/* A receive of the data into the block, from the master; it may be complete at once, with an error. */
static spx_request *fetch(uint32_t master, void *to, const spx_rec_rts *rts)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  if (!r) return NULL;
  r->kind = SPX_R_RECV;
  r->flags = SPX_RF_INTERNAL | SPX_RF_ACTIVE;
  r->src = r->want_src = MPI_ANY_SOURCE;
  r->tag = r->want_tag = MPI_ANY_TAG;
  r->buf = to;
  r->count = r->bytes = (int64_t)rts->bytes;
  r->full = rts->bytes;
  r->type = spx_byte_type();
  r->peer = master;
  spx_fetch_now(r, master, rts);
  return r;
}

static relay *begin(const spx_mcast_head *h, const spx_member *mine, uint32_t n, spx_mcast_rts *where)
{
  relay *x = malloc(sizeof *x + n * sizeof *mine);
  if (!x) return NULL;
  *x = (relay){.poller.poll = go_on, .h = *h, .where = *where, .n = n};
  memcpy(x->members, mine, n * sizeof *mine);
  x->where.keeper = spx_me;
  if (!(x->block = spx_shelf_take(where->rts.bytes, mine, n, true, &x->where))) {
    free(x);
    return NULL;
  }
  spx_mcast_relaying++;
  x->r = fetch(h->master, spx_shelf_room(x->block), &where->rts);
  if (x->r && !(spx_is_done(x->r) && x->r->error != MPI_SUCCESS)) {
    *where = x->where;
    spx_poller_add(&x->poller);
    x->next = all;
    all = x;
    return x;
  }
  spx_shelf_drop(x->block);
  spx_mcast_relaying--;
  if (x->r) spx_retire(SPX_K_REQ, &x->r->o);
  free(x);
  return NULL;
}

uint32_t spx_mcast_relay(const spx_mcast_head *h, spx_member *members, uint32_t n, spx_mcast_rts *where)
{
  uint32_t mine = 0, k = 0;
  if (h->flags & SPX_MCAST_EACH || host_of(h->master) == host_of(spx_me) || spx_peer_is_far(h->master) ||
      spx_shelf_has(h->master, where) || where->rts.bytes <= spx_set.eager_max)
    return n;
  for (uint32_t i = 0; i < n; i++) mine += spx_shelf_reaches(members[i].proc) && !spx_proc_left(members[i].proc);
  if (mine == 0) return n;
  spx_member *own = malloc(mine * sizeof *own), *rest = malloc(n * sizeof *rest);
  for (uint32_t i = 0, m = 0; own && rest && i < n; i++)
    if (spx_shelf_reaches(members[i].proc) && !spx_proc_left(members[i].proc))
      own[m++] = members[i];
    else
      rest[k++] = members[i];
  if (own && rest && begin(h, own, mine, where)) {
    memcpy(members, rest, k * sizeof *rest);
    n = k;
  }
  free(own);
  free(rest);
  return n;
}

void spx_mcast_relay_revoked(uint64_t ctx)
{
  for (relay *x = all; x; x = x->next) {
    if (x->h.ctx - ctx >= SPX_CTX_STEP || spx_is_done(x->r)) continue;
    spx_id_drop(x->r);
    x->r->state = SPX_S_NONE;
    spx_complete(x->r, MPIX_ERR_REVOKED);
  }
}
