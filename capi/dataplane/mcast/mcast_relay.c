/* mcast_relay.c - one copy of a long multicast for each host, and chains of hosts.
 *
 * The member that is to forward an announced message to other members of its host, or to further
 * hosts, gets the data itself, into its staging buffer (mcast_staging.c), and forwards the message
 * to its host when all of them are there: their readers need neither the network nor the master.
 * Each member gets its own record. Where it is the only member of its host, and a receive waits,
 * the data go straight into that (mcast_relay_direct.c).
 *
 * From spx_set.mcast_chain bytes on, hosts form a chain: the first member of each, the relay,
 * requests the data from the process named in the announcement, the master or the previous relay,
 * forwards the announcement to the next host at once, and sends what it has got to the processes
 * that request it, as it arrives (mcast_source.c): all hosts have the message after about the time
 * of one transfer. Each piece waits in a staging buffer: so a host that accepts nothing costs the
 * previous one the memory of one message, and delays only those after it; a relay without room
 * leaves the chain, and all hosts after it get the message without one. Where a chain would be long
 * for the message (spx_set.mcast_fork), each host has two successors, which serve half of the rest
 * each: every byte leaves a host twice, and a piece is everywhere after log2(hosts) steps. Each
 * relay fetches shorter messages from the master.
 *
 * Completion. When all data are there, the record of each member of the host is in its channel (a
 * death now costs no member the message), and the report of the next relay about the hosts after it
 * has arrived, a relay reports to the previous one which members have the data now or find them on
 * their host; the first reports to the master. One record a host and link, and only the first host
 * sends one to the master. A reported member is not sent the message again (mcast.c, put_again): it
 * might take that one first, and request data that are no longer kept.
 *
 * Deaths. The master keeps the data until all members are reported. A relay whose predecessor dies
 * requests the rest from the master. The report of the next relay is lost with it: the master
 * resends the message to its members (mcast.c), which answer the master themselves. Members of a
 * host whose relay died before the data were there have not seen the message, and get it in the
 * same way. What a dead relay has stored in full stays.
 */
#include "mcast_relay.h"
#include <stdlib.h>
#include "dp.h"
#include "plan_run.h"

uint32_t spx_mcast_relaying;
static relay *all;

static uint32_t host_of(uint32_t i) { return spx_proc_of(i)->host; }

relay *spx_mcast_relay_find(uint32_t master, uint32_t index, uint32_t gen)
{
  relay *x = all;
  while (x && !(x->h.master == master && x->where.rts.index == index && x->where.rts.gen == gen))
    x = x->next;
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

/* ---- getting the data ---- */

static bool is_over(const share *s) { return !s->r || spx_is_done(s->r); }
static bool has_failed(const share *s)
{
  return s->r && spx_is_done(s->r) && s->r->error != MPI_SUCCESS;
}

void spx_mcast_relay_cancel(const share *s, int error)
{
  if (is_over(s)) return;
  spx_id_drop(s->r);
  s->r->state = SPX_S_NONE;
  spx_complete(s->r, error);
}

static void cancel_all(const relay *x, int error)
{
  for (uint32_t i = 0; i < parts_of(x); i++) spx_mcast_relay_cancel(&x->shares[i], error);
}

static void retire_all(relay *x)
{
  for (uint32_t i = 0; i < parts_of(x); i++)
    if (x->shares[i].r) spx_retire(SPX_K_REQ, &x->shares[i].r->o);
}

/* A receive of the data of part i that are not there yet. */
static spx_request *receive(relay *x, uint32_t i)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  share *s = &x->shares[i];
  if (!r) return NULL;
  s->base = x->span[i].there;
  r->kind = SPX_R_RECV;
  r->flags = SPX_RF_INTERNAL | SPX_RF_ACTIVE;
  r->src = r->want_src = MPI_ANY_SOURCE;
  r->tag = r->want_tag = MPI_ANY_TAG;
  r->buf = spx_mcast_relay_room(x) + s->base;
  r->count = r->bytes = (int64_t)(x->span[i].end - s->base);
  r->full = (uint64_t)r->bytes;
  r->type = spx_byte_type();
  r->peer = s->from;
  return r;
}

/* May be complete at once, with an error. */
static bool fetch(relay *x, uint32_t i)
{
  share *s = &x->shares[i];
  spx_rec_ask a = {.master = x->h.master,
                   .index = x->where.rts.index,
                   .gen = x->where.rts.gen,
                   .from = x->span[i].there};
  if (!(s->r = receive(x, i))) return false;
  if (s->lead != NO_LEAD) a.number = x->lead_of[s->lead].number;
  if (!x->chain)
    spx_fetch_now(s->r, s->from, &x->where.rts);
  else if (spx_proc_left(s->from))
    spx_complete(s->r, MPIX_ERR_PROC_FAILED);
  else if (!spx_id_new(s->r, &a.rx_index, &a.rx_gen))
    spx_complete(s->r, MPI_ERR_NO_MEM);
  else {
    s->r->state = SPX_S_DATA;
    spx_tx_put(s->from, SPX_REC_MCAST_ASK, (spx_rec_words){.ask = {x->span[i].end, SPX_ASK_FOR, 0}},
               &a, sizeof a);
  }
  return true;
}

static bool waits_for_those_behind(const relay *x)
{
  return x->behind[0] != SPX_NO_PEER || x->behind[1] != SPX_NO_PEER;
}

/* ---- going on ---- */

/* From now on it looks again soon, whether anything happens or not. */
static void watch(relay *x, bool on)
{
  if (x->watches == on) return;
  x->watches = on;
  if (on) x->began = x->moved = spx_now_ns();
  spx_restless += on ? 1 : -1;
}

static void end(relay *x, int error)
{
  relay **p = &all;
  while (*p != x) p = &(*p)->next;
  *p = x->next;
  watch(x, false);
  spx_poller_del(&x->poller);
  spx_source_end(&x->source);
  cancel_all(x, error);
  spx_mcast_relay_received(x, error);
  if (error == MPI_SUCCESS || x->direct)
    spx_staging_close(x->block, !x->direct);
  else
    spx_staging_lost(x->block, error);
  if (!x->revoked && !(x->h.flags & SPX_MCAST_ACKED))
    spx_mcast_relay_notify(x); /* else they will speak themselves */
  retire_all(x);
  free(x);
  spx_mcast_relaying--;
}

/* More has come: for the next hosts, and for this process itself, which may read already. */
static bool took_more(relay *x)
{
  bool moved = false;
  for (uint32_t i = 0; i < parts_of(x); i++) {
    const share *s = &x->shares[i];
    if (!s->r) continue;
    uint64_t there = s->base + (x->chain ? s->r->in.at : 0);
    if (spx_is_done(s->r) && s->r->error == MPI_SUCCESS) there = x->span[i].end;
    moved = moved || there != x->span[i].there;
    x->span[i].there = there;
  }
  uint32_t i = 0;
  while (i + 1 < parts_of(x) && x->span[i].there == x->span[i].end) i++;
  if (x->span[i].there == x->source.there) return moved;
  x->source.there = x->span[i].there;
  spx_staging_came(x->block, x->source.there);
  return true;
}

static bool is_all_there(const relay *x)
{
  for (uint32_t i = 0; i < parts_of(x); i++)
    if (x->span[i].there < x->span[i].end || !is_over(&x->shares[i])) return false;
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
  if (x->again && !spx_proc_left(h.master))
    spx_tx_put(h.master, SPX_REC_DONE, SPX_REC_PLAIN, &done, sizeof done);
}

/* Does a record for a member of this host wait for room? It would be lost with this process: until
 * it is written, the member is not reported as having it. */
static bool waits_for_room(const relay *x)
{
  for (uint32_t i = 0; i < x->mine; i++)
    if (spx_txs[x->members[i].proc].pend && !spx_proc_left(x->members[i].proc)) return true;
  return false;
}

/* Part i does not come from where it should: from the master then, if it came from another process.
 * False: it does not come. */
static bool turn_to_master(relay *x, uint32_t i)
{
  share *s = &x->shares[i];
  if (!x->chain || x->revoked || s->from == x->h.master || spx_proc_left(x->h.master)) return false;
  spx_retire(SPX_K_REQ, &s->r->o);
  if (s->from == x->up && x->leads == 0) x->up = x->h.master;
  s->from = x->h.master;
  s->lead = NO_LEAD;
  if (!fetch(x, i))
    spx_fatal(MPI_ERR_NO_MEM, "no memory to fetch a multicast of process %u", x->h.master);
  return true;
}

/* Nothing has arrived for as long as it took until the last piece arrived. The peers compute, or
 * have much to do: the master sends the data sooner. */
static bool stands_still(const relay *x)
{
  enum { LEAST_NS = 20000000 };
  uint64_t took = x->moved - x->began;
  return spx_now_ns() - x->moved > (took > LEAST_NS ? took : LEAST_NS);
}

/* The parts that a host would send are asked for at the master. */
static void do_without(relay *x, uint32_t lead)
{
  for (uint32_t i = 0; i < parts_of(x); i++)
    if (x->shares[i].lead == lead) spx_mcast_relay_cancel(&x->shares[i], MPIX_ERR_PROC_FAILED);
}

/* A host that has left answers no more; and one that has not reported to have the message may get
 * it late, or stop in the middle of it, and all would wait for its parts. So when nothing else is
 * expected, one part of such a host is requested from the master, then the next, until the host
 * reports; and when the reporting hosts send nothing, all that is expected from one of them. */
static bool do_without_the_silent(relay *x)
{
  uint32_t silent = NO_LEAD, slow = NO_LEAD;
  bool comes = false;
  for (uint32_t i = 0; i < parts_of(x); i++) {
    const share *s = &x->shares[i];
    if (is_over(s)) continue;
    if (s->lead == NO_LEAD)
      comes = true;
    else if (spx_proc_left(s->from))
      spx_mcast_relay_cancel(s, MPIX_ERR_PROC_FAILED);
    else if (x->word[s->lead] & HERE)
      slow = s->lead;
    else if (silent == NO_LEAD)
      silent = i;
  }
  if (comes || x->revoked || spx_proc_left(x->h.master)) return false;
  if (slow != NO_LEAD && !stands_still(x)) return false;
  if (silent != NO_LEAD)
    spx_mcast_relay_cancel(&x->shares[silent], MPIX_ERR_PROC_FAILED);
  else if (slow != NO_LEAD) {
    uint64_t now = spx_now_ns();
    do_without(x, slow);
    x->began += now - x->moved; /* it does not count as time that it took */
    x->moved = now;
  } else
    return false;
  return true;
}

/* The error of a part that will never come; MPI_SUCCESS: there is none. */
static int failure(relay *x, bool *moved)
{
  for (uint32_t i = 0; i < parts_of(x); i++) {
    if (!has_failed(&x->shares[i])) continue;
    if (!turn_to_master(x, i)) return x->shares[i].r->error;
    *moved = true;
  }
  return MPI_SUCCESS;
}

/* The data will never be here: transfers of them that have begun are completed, and the requesting
 * processes are notified. False: that takes time. */
static bool given_up(relay *x, int error)
{
  if (x->source.hops && !x->revoked) return false;
  for (int k = 0; k < 2; k++)
    if (x->behind[k] != SPX_NO_PEER && !x->revoked && x->leads == 0)
      spx_mcast_relay_answer(x->behind[k], SPX_ASK_NONE, x->h.master, &x->where);
  for (uint32_t k = 0; k < x->leads && !x->revoked; k++)
    if (k != x->lead && spx_mcast_part_from(is_doubling(x), k, x->lead, x->leads) == x->lead)
      spx_mcast_relay_answer(x->lead_of[k].proc, SPX_ASK_NONE, x->h.master, &x->where);
  /* those of the hosts behind that have them all the same */
  x->n = x->mine < x->n ? x->n - x->mine : 0;
  memmove(x->members, x->members + x->mine, x->n * sizeof *x->members);
  end(x, error);
  return true;
}

static int go_on(spx_poller *p)
{
  relay *x = (relay *)((char *)p - offsetof(relay, poller));
  bool moved = took_more(x);
  if (x->watches && moved) x->moved = spx_now_ns();
  if (x->watches) moved = do_without_the_silent(x) || moved;
  int error = x->whole ? MPI_SUCCESS : failure(x, &moved);
  if (error != MPI_SUCCESS) {
    cancel_all(x, error);
    spx_source_cut(&x->source);
    spx_source_pump(&x->source);
    return given_up(x, error);
  }
  if (!x->whole && is_all_there(x)) {
    watch(x, false);
    hand_on(x);
    spx_mcast_relay_received(x, MPI_SUCCESS);
  }
  moved = spx_source_pump(&x->source) || moved;
  for (int k = 0; k < 2; k++)
    if (x->behind[k] != SPX_NO_PEER && (x->revoked || spx_proc_left(x->behind[k])))
      x->behind[k] = SPX_NO_PEER;
  if (!x->whole || waits_for_those_behind(x) || x->source.hops || waits_for_room(x)) return moved;
  end(x, MPI_SUCCESS);
  return 1;
}

/* ---- beginning ---- */

/* The parts of the data, and from whom each comes. */
static void share_out(relay *x, const spx_mcast_leads_list *leads)
{
  uint32_t parts = parts_of(x);
  uint64_t bytes = x->source.bytes;
  x->leads = leads->n;
  memcpy(x->lead_of, leads->m, leads->n * sizeof *leads->m);
  x->lead = spx_mcast_relay_lead(x, spx_me);
  if (parts ==
      /* the other relays do not know this process: it gets all from the master, and they get
         nothing from it */
      1) {
    bool from_up = x->chain && !(x->h.flags & SPX_MCAST_PARTS);
    x->leads = 0;
    x->span[0] = (spx_span){.end = bytes};
    x->shares[0] = (share){.from = from_up ? x->up : x->h.master, .lead = NO_LEAD};
    return;
  }
  for (uint32_t i = 0; i < parts; i++) {
    uint32_t k = spx_mcast_part_from(is_doubling(x), x->lead, i, parts);
    uint64_t at = spx_mcast_cut(bytes, parts, i);
    x->span[i] = (spx_span){at, at, spx_mcast_cut(bytes, parts, i + 1)};
    x->shares[i] = (share){.from = k == x->lead ? x->h.master : x->lead_of[k].proc,
                           .lead = k == x->lead ? NO_LEAD : k};
  }
}

/* Asks for all parts, its own first; false: the message is not relayed here. */
static bool fetch_all(relay *x)
{
  uint32_t parts = parts_of(x), first = x->leads ? x->lead : 0;
  for (uint32_t k = 0; k < parts; k++) {
    uint32_t i = (first + k) % parts;
    if (x->span[i].at == x->span[i].end && x->leads) continue;
    bool asked = fetch(x, i), last = x->leads == 0 || x->shares[i].from == x->h.master;
    if (asked && !(has_failed(&x->shares[i]) && last)) continue; /* else the master has it */
    cancel_all(x, MPI_ERR_OTHER);
    return false;
  }
  return true;
}

static bool is_lead(const spx_mcast_leads_list *leads, uint32_t proc)
{
  uint32_t k = 0;
  while (k < leads->n && leads->m[k].proc != proc) k++;
  return k < leads->n;
}

static relay *begin(const spx_mcast_head *h, const spx_member *mine, uint32_t n, uint32_t room,
                    spx_mcast_rts *where, const spx_mcast_leads_list *leads)
{
  uint32_t parts =
      h->flags & SPX_MCAST_PARTS && leads->n > 1 && is_lead(leads, spx_me) ? leads->n : 1;
  size_t head = (sizeof(relay) + room * sizeof *mine + 7) / 8 * 8;
  char *memory =
      malloc(head + parts * (sizeof(share) + sizeof(spx_span)) + leads->n * (sizeof *leads->m + 1));
  relay *x = (relay *)memory;
  if (!x) return NULL;
  *x = (relay){.poller.poll = go_on,
               .h = *h,
               .where = *where,
               .n = n,
               .mine = n,
               .room = room,
               .behind = {SPX_NO_PEER, SPX_NO_PEER}};
  memcpy(x->members, mine, n * sizeof *mine);
  x->span = (spx_span *)(memory + head);
  x->shares = (share *)(x->span + parts);
  x->lead_of = (spx_member *)(x->shares + parts);
  x->word = (uint8_t *)(x->lead_of + leads->n);
  memset(x->word, 0, leads->n);
  x->chain = h->flags & SPX_MCAST_CHAIN;
  x->up = x->chain ? where->source : h->master;
  x->where.keeper = x->where.source = spx_me;
  if (!(x->block = spx_staging_take(where->rts.bytes, mine, n, true, &x->where))) {
    free(x);
    return NULL;
  }
  x->source = (spx_source){.data = spx_staging_room(x->block),
                           .bytes = where->rts.bytes,
                           .spans = x->span,
                           .parts = parts};
  share_out(x, leads);
  spx_mcast_relaying++;
  if (fetch_all(x)) {
    *where = x->where;
    watch(x, x->leads > 0);
    spx_poller_add(&x->poller);
    x->next = all;
    return all = x;
  }
  spx_staging_drop(x->block);
  spx_mcast_relaying--;
  retire_all(x);
  free(x);
  return NULL;
}

void spx_mcast_leave_chain(spx_mcast_head *h, const spx_mcast_rts *where)
{
  spx_rec_have none = {h->master, where->rts.index, where->rts.gen, 0};
  h->flags &= (uint16_t)~SPX_MCAST_ALONG;
  if (where->source != h->master && !spx_proc_left(where->source))
    spx_tx_put(where->source, SPX_REC_MCAST_HAVE, SPX_REC_PLAIN, &none, sizeof none);
}

static bool wanted(const spx_mcast_head *h, uint32_t mine, const spx_mcast_rts *where)
{
  if (h->flags & SPX_MCAST_CHAIN) return true;
  return mine > 0 && host_of(h->master) != host_of(spx_me) && !spx_peer_is_far(h->master) &&
         !spx_staging_has(h->master, where) && where->rts.bytes > spx_set.eager_max;
}

uint32_t spx_mcast_relay(spx_mcast_head *h, spx_member *members, uint32_t n, spx_mcast_rts *where,
                         const spx_mcast_leads_list *leads, spx_ack_aggregation *g)
{
  uint32_t mine = 0, k = 0, m = 0;
  bool chain = h->flags & SPX_MCAST_CHAIN;
  for (uint32_t i = 0; i < n; i++)
    mine += spx_staging_reaches(members[i].proc) && !spx_proc_left(members[i].proc);
  if (!wanted(h, mine, where)) return n;
  relay *x = NULL;
  spx_member *own = malloc((mine + 1) * sizeof *own), *rest = malloc((n + 1) * sizeof *rest);
  for (uint32_t i = 0; own && rest && i < n; i++)
    if (spx_staging_reaches(members[i].proc) && !spx_proc_left(members[i].proc))
      own[m++] = members[i];
    else
      rest[k++] = members[i];
  spx_mcast_rts before = *where;
  uint8_t *further = malloc(sizeof before + leads->bytes);
  if (own && rest && further && (x = begin(h, own, mine, n + 1, where, leads))) {
    memcpy(members, rest, k * sizeof *rest);
    n = k;
    for (uint32_t i = 0; i < m; i++) spx_acks_behind(g, own[i].proc);
    if (chain) {
      before.source = spx_me;
      memcpy(further, &before, sizeof before);
      if (leads->bytes) memcpy(further + sizeof before, leads->set, leads->bytes);
      spx_mcast_hand_along(*h, members, n, further, (uint32_t)sizeof before + leads->bytes,
                           x->behind);
      for (int i = 0; i < 2; i++) x->successors += x->behind[i] != SPX_NO_PEER;
      n = 0;
    }
  }
  if (!x && chain) spx_mcast_leave_chain(h, &before);
  free(own);
  free(rest);
  free(further);
  return n;
}

void spx_mcast_relay_revoked(uint64_t ctx)
{
  for (relay *x = all; x; x = x->next) {
    if (x->h.ctx - ctx >= SPX_CTX_STEP) continue;
    x->revoked = true;
    cancel_all(x, MPIX_ERR_REVOKED);
  }
}

void spx_mcast_relay_detach(void)
{
  while (all) {
    relay *x = all;
    all = x->next;
    spx_poller_del(&x->poller);
    spx_source_end(&x->source);
    for (uint32_t i = 0; i < parts_of(x); i++)
      if (!is_over(&x->shares[i])) spx_id_drop(x->shares[i].r);
    retire_all(x);
    free(x);
    spx_mcast_relaying--;
  }
  spx_mcast_relay_forget_early();
}
