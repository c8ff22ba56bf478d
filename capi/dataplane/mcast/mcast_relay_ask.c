/* mcast_relay_ask.c - what relays (mcast_relay.c) are asked for: the data of a message, by relays
 * of further hosts and, in parts, by each other; and what is kept of requests that come before the
 * message.
 */
#include <stdlib.h>
#include "dp.h"
#include "mcast.h"
#include "mcast_relay.h"

/* Requests for a message that has not arrived yet. A member may request many parts, but not without
 * bound. */
typedef struct early {
  struct early *next;
  uint32_t peer;
  uint64_t to;
  spx_rec_ask ask;
} early;
#define EARLY_MOST 1024u
static early *earlies;

void spx_mcast_relay_answer(uint32_t peer, int32_t what, uint32_t master,
                            const spx_mcast_rts *where)
{
  spx_rec_ask a = {.master = master, .index = where->rts.index, .gen = where->rts.gen};
  spx_rec_words as = {.ask.what = what};
  if (!spx_proc_left(peer)) spx_tx_put(peer, SPX_REC_MCAST_ASK, as, &a, sizeof a);
}

static void refuse(uint32_t peer, const spx_rec_ask *a)
{
  spx_mcast_rts where = {.rts = {.index = a->index, .gen = a->gen}};
  spx_mcast_relay_answer(peer, SPX_ASK_NONE, a->master, &where);
}

uint32_t spx_mcast_relay_lead(const relay *x, uint32_t proc)
{
  uint32_t lo = 0, hi = x->leads;
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2;
    if (x->lead_of[mid].proc < proc)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < x->leads && x->lead_of[lo].proc == proc ? lo : NO_LEAD;
}

/* Is lead k to get these bytes from this process? */
static bool is_to_get(const relay *x, uint32_t k, uint64_t from, uint64_t to)
{
  uint32_t i = 0;
  while (i + 1 < x->leads && x->span[i].end <= from) i++;
  return k != x->lead && from >= x->span[i].at && to <= x->span[i].end &&
         spx_mcast_part_from(is_doubling(x), k, i, x->leads) == x->lead;
}

static void answer(relay *x, uint32_t peer, const spx_rec_ask *a, uint64_t to)
{
  uint32_t k = spx_mcast_relay_lead(x, peer);
  bool may = x->chain && !x->revoked && !x->partly, parts = x->leads > 0;
  may = may && (parts ? k != NO_LEAD && is_to_get(x, k, a->from, to)
                      : x->behind[0] == peer || x->behind[1] == peer);
  may = may && spx_source_may_ask(&x->source, peer);
  if (!may || !spx_source_ask(&x->source, peer, a->rx_index, a->rx_gen, a->from, to)) {
    refuse(peer, a);
    return;
  }
  if (!parts || x->word[k] & NOTIFIED) return;
  x->word[k] |= NOTIFIED;
  spx_mcast_relay_answer(peer, SPX_ASK_HERE, x->h.master, &x->where);
}

/* A part of a message that has yet to come; false: it has come, or will not. */
static bool keep_early(uint32_t peer, const spx_rec_ask *a, uint64_t to)
{
  uint32_t n = 0;
  if (a->number == 0 || a->master >= spx_segment->nprocs || spx_proc_left(a->master)) return false;
  if (!spx_mcast_awaits(a->master, a->number)) return false;
  for (const early *e = earlies; e; e = e->next) n += e->peer == peer;
  early *e = n < EARLY_MOST ? malloc(sizeof *e) : NULL;
  if (!e) return false;
  *e = (early){.next = earlies, .peer = peer, .to = to, .ask = *a};
  earlies = e;
  return true;
}

void spx_mcast_answer_early(uint32_t master, const spx_mcast_rts *where)
{
  relay *x = earlies ? spx_mcast_relay_find(master, where->rts.index, where->rts.gen) : NULL;
  for (early **p = &earlies; *p;) {
    early *e = *p;
    if (e->ask.master != master || e->ask.index != where->rts.index ||
        e->ask.gen != where->rts.gen) {
      p = &e->next;
      continue;
    }
    *p = e->next;
    if (x)
      answer(x, e->peer, &e->ask, e->to);
    else
      refuse(e->peer, &e->ask);
    free(e);
  }
}

void spx_mcast_relay_peer_failed(uint32_t peer)
{
  for (early **p = &earlies; *p;) {
    early *e = *p;
    if (e->peer != peer && e->ask.master != peer) {
      p = &e->next;
      continue;
    }
    *p = e->next;
    if (e->peer != peer) refuse(e->peer, &e->ask);
    free(e);
  }
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
  relay *x = spx_mcast_relay_find(a.master, a.index, a.gen);
  if (rec->as.ask.what == SPX_ASK_FOR) {
    if (x)
      answer(x, peer, &a, rec->as.ask.to);
    else if (!keep_early(peer, &a, rec->as.ask.to))
      refuse(peer, &a);
    return;
  }
  for (uint32_t i = 0; x && rec->as.ask.what == SPX_ASK_NONE && i < parts_of(x); i++)
    if (x->shares[i].from == peer)
      spx_mcast_relay_cancel(&x->shares[i],
                             peer == x->h.master ? MPIX_ERR_REVOKED : MPIX_ERR_PROC_FAILED);
  uint32_t k = x && rec->as.ask.what == SPX_ASK_HERE ? spx_mcast_relay_lead(x, peer) : NO_LEAD;
  if (k != NO_LEAD) x->word[k] |= HERE;
}

void spx_mcast_relay_forget_early(void)
{
  while (earlies) {
    early *e = earlies;
    earlies = e->next;
    free(e);
  }
}
