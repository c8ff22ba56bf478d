/* mcast_relay.c - one copy of a long multicast for each host, and chains of hosts.
 *
 * The member that is to hand an announced message on to others of its host, or to further hosts, gets the data itself, onto its shelf (mcast_shelf.c), and
 * hands the message on to its host when all of them are there: who reads them needs neither the network nor the master. Each member gets its own record.
 *
 * From spx_set.mcast_chain bytes on, hosts form a chain: the first one of each, the relay, asks for the data where the announcement says, the master or the
 * relay before, hands the announcement on to the next host at once, and sends what it has got to who asks for it, as it comes (mcast_source.c): all hosts have
 * the message after about the time that one transfer takes. Each piece waits on a shelf: so a host that takes nothing costs the one before it
 * the memory of one message, and holds up nobody but those behind it; who finds no room there leaves the chain, and all behind it get the message without one.
 * Where a chain would be long for the message (spx_set.mcast_fork), each host has two behind it, which look after half of the rest each: every byte leaves a host twice, and a piece is everywhere after log2(hosts) steps.
 * Shorter messages each relay fetches from the master.
 *
 * Who has them. When all data are there, the record of each member of the host is in its channel (who may die now loses nobody the message), and what the next relay has said of the hosts behind has come, a relay
 * tells the one before which members have the data now or find them on their host; the first tells the master. One record a host and link, and nobody but the first
 * host sends the master one. Who has been told of is not sent the message again (mcast.c, put_again): it might take that one first, and come for data that nobody keeps.
 *
 * Deaths. The master keeps the data until all have been told of. A relay whose predecessor dies asks the master for the rest. What the next relay had to say is lost
 * with it: its members answer the master themselves, to whom he sends the message again (mcast.c). Nobody knows of a message whose data were not there when
 * the relay of its host died, and gets it in the same way. What a dead relay has put down in full stays.
 */
#include "mcast.h"
#include <stdlib.h>
#include "dp.h"
#include "plan_run.h"

#define ITEMS                                                                                                          \
  6u /* of a set in one record; through memory one, which fits into a line: two lines may never fit into the smallest channel */

typedef struct relay {
  struct relay *next;
  spx_poller poller;
  spx_request *r; /* the data come by it: those from byte `base` on */
  uint64_t base;
  spx_block *block;
  spx_source source; /* of the next host */
  spx_mcast_head h;
  spx_mcast_rts where;
  uint32_t from; /* whose data they are */
  uint32_t behind
      [2]; /* who have been handed the message next and have yet to say who has it; SPX_NO_PEER: nobody, or it has */
  bool chain, whole, again, revoked; /* again: the message has come again */
  uint32_t n, mine,
      room; /* members that have the data, or can get them here; the first `mine` are those of this host */
  spx_member members[];
} relay;

uint32_t spx_mcast_relaying;
static relay *all;

static uint32_t host_of(uint32_t i) { return spx_proc_of(i)->host; }

static relay *find(uint32_t master, uint32_t index, uint32_t gen)
{
  relay *x = all;
  while (x && !(x->h.master == master && x->where.rts.index == index && x->where.rts.gen == gen)) x = x->next;
  return x;
}

bool spx_mcast_relays(uint32_t master, uint32_t number)
{
  relay *x = all;
  while (x && !(x->h.master == master && x->h.number == number)) x = x->next;
  if (!x || x->whole) return false;
  x->again = true;
  return true;
}

/* ---- getting the data ------------------------------------------------------------------------------------------------ */

/* A receive of the data that are not there yet. */
static spx_request *receive(relay *x)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  if (!r) return NULL;
  x->base = x->source.there;
  r->kind = SPX_R_RECV;
  r->flags = SPX_RF_INTERNAL | SPX_RF_ACTIVE;
  r->src = r->want_src = MPI_ANY_SOURCE;
  r->tag = r->want_tag = MPI_ANY_TAG;
  r->buf = (char *)spx_shelf_room(x->block) + x->base;
  r->count = r->bytes = (int64_t)(x->source.bytes - x->base);
  r->full = (uint64_t)r->bytes;
  r->type = spx_byte_type();
  r->peer = x->from;
  return r;
}

/* May be complete at once, with an error. */
static bool fetch(relay *x)
{
  spx_rec_ask a = {
      .master = x->h.master, .index = x->where.rts.index, .gen = x->where.rts.gen, .from = x->source.there};
  if (!(x->r = receive(x))) return false;
  if (!x->chain)
    spx_fetch_now(x->r, x->from, &x->where.rts);
  else if (spx_proc_left(x->from))
    spx_complete(x->r, MPIX_ERR_PROC_FAILED);
  else if (!spx_id_new(x->r, &a.rx_index, &a.rx_gen))
    spx_complete(x->r, MPI_ERR_NO_MEM);
  else {
    x->r->state = SPX_S_DATA;
    spx_tx_put(x->from, SPX_REC_MCAST_ASK, 0, 0, 0, &a, sizeof a);
  }
  return true;
}

/* There are no data for peer. */
static void refuse(uint32_t peer, const spx_rec_ask *a)
{
  if (!spx_proc_left(peer)) spx_tx_put(peer, SPX_REC_MCAST_ASK, 0, 1, 0, a, sizeof *a);
}

void spx_mcast_on_ask(uint32_t peer, const spx_rec *rec)
{
  spx_rec_ask a;
  if (rec->len != sizeof a) return;
  memcpy(&a, rec->data, sizeof a);
  if (a.master == spx_me) {
    spx_mcast_asked_from(peer, rec);
    return;
  }
  relay *x = find(a.master, a.index, a.gen);
  if (rec->tag == 0) {
    bool may = x && x->chain && !x->revoked && (x->behind[0] == peer || x->behind[1] == peer);
    if (!may || !spx_source_ask(&x->source, peer, a.rx_index, a.rx_gen, a.from, UINT64_MAX)) refuse(peer, &a);
  } else if (x && x->from == peer && !spx_is_done(x->r)) {
    spx_id_drop(x->r);
    x->r->state = SPX_S_NONE;
    spx_complete(x->r, peer == x->h.master ? MPIX_ERR_REVOKED : MPIX_ERR_PROC_FAILED);
  }
}

/* ---- telling who has them ------------------------------------------------------------------------------------------- */

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
  if (!items) spx_fatal(MPI_ERR_NO_MEM, "no memory to tell who has a multicast of process %u", have->master);
  if (n) qsort(m, n, sizeof *m, by_proc);
  for (uint32_t i = 0; i < n; i++)
    if (k == 0 || m[i].proc != m[k - 1].proc) m[k++] = (spx_member){m[i].proc, 1};
  n = spx_mcast_encode(items, m, k) / (uint32_t)sizeof *items;
  do {
    now = n - at < most ? n - at : most;
    memcpy(part.items, items + at, now * sizeof *items);
    at += now;
    if (!spx_proc_left(to))
      spx_tx_put(to, SPX_REC_MCAST_HAVE, 0, at < n, what, &part, (uint32_t)(sizeof part.have + now * sizeof *items));
  } while (at < n);
  free(items);
}

static void tell(relay *x)
{
  spx_rec_have have = {x->h.master, x->where.rts.index, x->where.rts.gen, 0};
  spx_mcast_tell(x->chain && !spx_proc_left(x->from) ? x->from : x->h.master, &have, SPX_MCAST_DATA, x->members, x->n);
}

/* Where peer stands among those behind; NULL: it is none of them, or has said who has the message. */
static uint32_t *behind_is(relay *x, uint32_t peer)
{
  for (int k = 0; k < 2; k++)
    if (x->behind[k] == peer) return &x->behind[k];
  return NULL;
}

static bool waits_for_those_behind(const relay *x)
{
  return x->behind[0] != SPX_NO_PEER || x->behind[1] != SPX_NO_PEER;
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
  relay *x = find(a.master, a.index, a.gen);
  bool got = rec->src == SPX_MCAST_GOT;
  uint32_t *behind = x ? behind_is(x, peer) : NULL;
  if (!got && !behind) { /* this process has told already */
    if (a.master < spx_segment->nprocs && !spx_proc_left(a.master))
      spx_tx_put(a.master, SPX_REC_MCAST_HAVE, 0, rec->tag, rec->src, rec->data, rec->len);
    return;
  }
  spx_member *m = malloc(spx_segment->nprocs * sizeof *m);
  int64_t n = m ? spx_mcast_decode(rec->data + sizeof a, rec->len - (uint32_t)sizeof a, spx_segment->nprocs, m) : -1;
  if (got) {
    if (!m) spx_fatal(MPI_ERR_NO_MEM, "no memory to hear who has received a multicast of process %u", a.master);
    spx_acks_got(peer, &a, m, n > 0 ? (uint32_t)n : 0, rec->tag != 0);
    free(m);
    return;
  }
  if (n > 0 && (uint64_t)n <= x->room - x->n) {
    memcpy(x->members + x->n, m, (uint64_t)n * sizeof *m);
    x->n += (uint32_t)n;
  }
  free(m);
  if (rec->tag == 0) *behind = SPX_NO_PEER;
}

/* ---- going on ------------------------------------------------------------------------------------------------------- */

static void end(relay *x, int error)
{
  relay **p = &all;
  while (*p != x) p = &(*p)->next;
  *p = x->next;
  spx_poller_del(&x->poller);
  spx_source_end(&x->source);
  if (error == MPI_SUCCESS)
    spx_shelf_close(x->block, true);
  else
    spx_shelf_lost(x->block, error);
  if (!x->revoked && !(x->h.flags & SPX_MCAST_ACKED)) tell(x); /* else they will speak themselves */
  spx_retire(SPX_K_REQ, &x->r->o);
  free(x);
  spx_mcast_relaying--;
}

/* More has come: for the next host, and for this process itself, which may read already. */
static bool took_more(relay *x)
{
  uint64_t there = x->base + (x->chain ? x->r->aux[1] : 0);
  if (spx_is_done(x->r) && x->r->error == MPI_SUCCESS) there = x->source.bytes;
  if (there == x->source.there) return false;
  x->source.there = there;
  spx_shelf_came(x->block, there);
  return true;
}

static void hand_on(relay *x)
{
  spx_mcast_head h = x->h;
  h.flags &= (uint16_t)~SPX_MCAST_ALONG;
  spx_mcast_hand_each(h, x->members, x->mine, &x->where, sizeof x->where);
  x->whole = true;
  x->members[x->n++] = (spx_member){spx_me, 1};
  spx_rec_id done = {.index = x->where.rts.index, .gen = x->where.rts.gen};
  if (x->again && !spx_proc_left(h.master)) spx_tx_put(h.master, SPX_REC_DONE, 0, 0, 0, &done, sizeof done);
}

/* Does a record for a member of this host wait for room? It would go with this process: until then nobody is told that the member has it. */
static bool waits_for_room(const relay *x)
{
  for (uint32_t i = 0; i < x->mine; i++)
    if (spx_txs[x->members[i].proc].pend && !spx_proc_left(x->members[i].proc)) return true;
  return false;
}

/* The data do not come from where they should: from the master then, if they came from another process. False: they do not come. */
static bool turn_to_master(relay *x)
{
  if (!x->chain || x->revoked || x->from == x->h.master || spx_proc_left(x->h.master)) return false;
  spx_retire(SPX_K_REQ, &x->r->o);
  x->from = x->h.master;
  if (!fetch(x)) spx_fatal(MPI_ERR_NO_MEM, "no memory to fetch a multicast of process %u", x->h.master);
  return true;
}

/* The data will never be here: what is being sent of them is not cut short, and who has asked is told. False: that takes time. */
static bool given_up(relay *x)
{
  spx_rec_ask a = {.master = x->h.master, .index = x->where.rts.index, .gen = x->where.rts.gen};
  if (x->source.hops && !x->revoked) return false;
  for (int k = 0; k < 2; k++)
    if (x->behind[k] != SPX_NO_PEER && !x->revoked) refuse(x->behind[k], &a);
  x->n = x->mine < x->n ? x->n - x->mine : 0; /* those of the hosts behind that have them all the same */
  memmove(x->members, x->members + x->mine, x->n * sizeof *x->members);
  end(x, x->r->error);
  return true;
}

static int go_on(spx_poller *p)
{
  relay *x = (relay *)((char *)p - offsetof(relay, poller));
  bool moved = took_more(x);
  if (spx_is_done(x->r) && x->r->error != MPI_SUCCESS) {
    if (turn_to_master(x)) return 1;
    spx_source_cut(&x->source);
    spx_source_pump(&x->source);
    return given_up(x);
  }
  if (spx_is_done(x->r) && !x->whole) hand_on(x);
  moved = spx_source_pump(&x->source) || moved;
  for (int k = 0; k < 2; k++)
    if (x->behind[k] != SPX_NO_PEER && (x->revoked || spx_proc_left(x->behind[k]))) x->behind[k] = SPX_NO_PEER;
  if (!x->whole || waits_for_those_behind(x) || x->source.hops || waits_for_room(x)) return moved;
  end(x, MPI_SUCCESS);
  return 1;
}

/* ---- beginning ------------------------------------------------------------------------------------------------------ */

static relay *begin(const spx_mcast_head *h, const spx_member *mine, uint32_t n, uint32_t room, spx_mcast_rts *where)
{
  relay *x = malloc(sizeof *x + room * sizeof *mine);
  if (!x) return NULL;
  *x = (relay){.poller.poll = go_on,
               .h = *h,
               .where = *where,
               .n = n,
               .mine = n,
               .room = room,
               .behind = {SPX_NO_PEER, SPX_NO_PEER}};
  memcpy(x->members, mine, n * sizeof *mine);
  x->chain = h->flags & SPX_MCAST_CHAIN;
  x->from = x->chain ? where->source : h->master;
  x->where.keeper = x->where.source = spx_me;
  if (!(x->block = spx_shelf_take(where->rts.bytes, mine, n, true, &x->where))) {
    free(x);
    return NULL;
  }
  x->source = (spx_source){.data = spx_shelf_room(x->block), .bytes = where->rts.bytes};
  spx_mcast_relaying++;
  if (fetch(x) && !(spx_is_done(x->r) && x->r->error != MPI_SUCCESS)) {
    *where = x->where;
    spx_poller_add(&x->poller);
    x->next = all;
    return all = x;
  }
  spx_shelf_drop(x->block);
  spx_mcast_relaying--;
  if (x->r) spx_retire(SPX_K_REQ, &x->r->o);
  free(x);
  return NULL;
}

void spx_mcast_leave_chain(spx_mcast_head *h, const spx_mcast_rts *where)
{
  spx_rec_have none = {h->master, where->rts.index, where->rts.gen, 0};
  h->flags &= (uint16_t)~SPX_MCAST_ALONG;
  if (where->source != h->master && !spx_proc_left(where->source))
    spx_tx_put(where->source, SPX_REC_MCAST_HAVE, 0, 0, 0, &none, sizeof none);
}

static bool wanted(const spx_mcast_head *h, uint32_t mine, const spx_mcast_rts *where)
{
  if (h->flags & SPX_MCAST_CHAIN) return true;
  return mine > 0 && host_of(h->master) != host_of(spx_me) && !spx_peer_is_far(h->master) &&
         !spx_shelf_has(h->master, where) && where->rts.bytes > spx_set.eager_max;
}

uint32_t spx_mcast_relay(spx_mcast_head *h, spx_member *members, uint32_t n, spx_mcast_rts *where, spx_gathering *g)
{
  uint32_t mine = 0, k = 0, m = 0;
  bool chain = h->flags & SPX_MCAST_CHAIN;
  for (uint32_t i = 0; i < n; i++) mine += spx_shelf_reaches(members[i].proc) && !spx_proc_left(members[i].proc);
  if (!wanted(h, mine, where)) return n;
  relay *x = NULL;
  spx_member *own = malloc((mine + 1) * sizeof *own), *rest = malloc((n + 1) * sizeof *rest);
  for (uint32_t i = 0; own && rest && i < n; i++)
    if (spx_shelf_reaches(members[i].proc) && !spx_proc_left(members[i].proc))
      own[m++] = members[i];
    else
      rest[k++] = members[i];
  spx_mcast_rts before = *where;
  if (own && rest && (x = begin(h, own, mine, n + 1, where))) {
    memcpy(members, rest, k * sizeof *rest);
    n = k;
    for (uint32_t i = 0; i < m; i++) spx_acks_behind(g, own[i].proc);
    if (chain) {
      before.source = spx_me;
      spx_mcast_hand_along(*h, members, n, &before, sizeof before, x->behind);
      n = 0;
    }
  }
  if (!x && chain) spx_mcast_leave_chain(h, &before);
  free(own);
  free(rest);
  return n;
}

void spx_mcast_relay_revoked(uint64_t ctx)
{
  for (relay *x = all; x; x = x->next) {
    if (x->h.ctx - ctx >= SPX_CTX_STEP) continue;
    x->revoked = true;
    if (spx_is_done(x->r)) continue;
    spx_id_drop(x->r);
    x->r->state = SPX_S_NONE;
    spx_complete(x->r, MPIX_ERR_REVOKED);
  }
}

void spx_mcast_relay_detach(void)
{
  while (all) {
    relay *x = all;
    all = x->next;
    spx_poller_del(&x->poller);
    spx_source_end(&x->source);
    if (!spx_is_done(x->r)) spx_id_drop(x->r);
    spx_retire(SPX_K_REQ, &x->r->o);
    free(x);
    spx_mcast_relaying--;
  }
}
