/* replay_claims.c - see replay_core.h: the participant that a message is given to. */
#include <stdlib.h>
#include "replay_inside.h"

static void claim(spx_core *c, const spx_passed *p)
{
  spx_frame_claim a = {.id = p->id, .token = p->token, .before = p->before, .to = p->given};
  if (!spx_core_in_owe_claim(c, p->from, &a)) c->io.failed(c->io.arg, "no memory for a claim");
}

void spx_core_give(spx_core *c, uint32_t token, uint32_t participant)
{
  spx_passed *p = spx_core_in_find_passed(c, token);
  if (!p) return;
  p->due = true;
  if (p->given == participant + 1) return;
  p->before = p->given;
  p->given = participant + 1;
  c->claiming += p->claims++ == 0;
  claim(c, p);
}

uint64_t spx_core_number(const spx_core *c, uint32_t token, uint32_t *given)
{
  const spx_passed *p = spx_core_in_find_passed(c, token);
  *given = p ? p->given : 0;
  return p ? p->id.n : 0;
}

/* Messages made of p that have not left count as accepted. */
void spx_core_in_drop(spx_core *c, const spx_passed *p)
{
  for (uint32_t to = 0; to < c->participants; to++) {
    spx_kept *before = NULL;
    for (spx_kept *m = c->first[to], *next; m; m = next) {
      next = m->next;
      if (m->of != p || m->out) {
        before = m;
        continue;
      }
      *(before ? &before->next : &c->first[to]) = next;
      if (c->last[to] == m) c->last[to] = before;
      bool last = p->left == 1; /* p may be gone then */
      spx_core_in_release(c, m, true);
      if (last) {
        spx_core_in_go(c, to);
        return;
      }
    }
    spx_core_in_go(c, to);
  }
}

/* Before what follows it in its stream and waits as well, if that is so; else behind all. */
static void insert(spx_core *c, spx_kept *m)
{
  spx_kept *before = NULL, *e = c->first[m->to];
  while (e && (e->out || e->head.stream != m->head.stream || e->head.life != m->head.life ||
               e->head.n < m->head.n)) {
    before = e;
    e = e->next;
  }
  if (!e) {
    spx_core_in_append(c, m);
    return;
  }
  m->next = e;
  *(before ? &before->next : &c->first[m->to]) = m;
  c->kept_bytes += spx_core_in_cost(m);
}

/* Messages made of p that have not left are for another participant. */
static void redirect(spx_core *c, const spx_passed *p, uint32_t to)
{
  for (uint32_t was = 0; was < c->participants; was++) {
    spx_kept *before = NULL;
    for (spx_kept *m = c->first[was], *next; m; m = next) {
      next = m->next;
      if (m->of != p || m->out || was == to) {
        before = m;
        continue;
      }
      *(before ? &before->next : &c->first[was]) = next;
      if (c->last[was] == m) c->last[was] = before;
      c->kept_bytes -= spx_core_in_cost(m);
      uint32_t *from = spx_core_in_went_to(m->of, was), *went = spx_core_in_went_to(m->of, to);
      if (!from || !went)
        c->io.failed(c->io.arg, "no memory for a message that is given to another one");
      --*from;
      m->head.sub = (*went)++;
      m->to = to;
      insert(c, m);
    }
    spx_core_in_go(c, was);
  }
}

static void answered(spx_core *c, uint32_t from, const spx_frame_claim *a)
{
  spx_passed *p = spx_core_in_find_passed(c, a->token);
  spx_frame_head h = {.n = a->id.n, .stream = a->id.stream, .sub = a->id.sub, .life = a->id.life};
  if (!p || !p->claims || p->from != from || !spx_core_in_is_of(&h, &p->id)) return;
  if (p->claims > 1) { /* a later one counts */
    p->claims--;
    return;
  }
  p->unknown = a->to > c->participants && a->to != SPX_DONE;
  if (p->unknown) return; /* it is claimed anew when that participant is known */
  p->claims = 0;
  c->claiming--;
  uint32_t was = p->given;
  if (a->to == SPX_DONE) {
    p->done = true;
    spx_core_in_drop(c, p);
    return;
  }
  p->given = a->to;
  if (a->to != was) redirect(c, p, a->to - 1);
  spx_core_in_go(c, a->to - 1);
}

enum { REPLACED, SIHANDED, GROWN };
/* Those of a participant are claimed anew: another process is that participant; or there are more,
 * and the answer was one of those. Or that need not be, since it does not send them again. */
static void claim_again(spx_core *c, uint32_t participant, int why)
{
  for (int list = 0; list < 2 && c->claiming; list++)
    for (spx_passed *p = list ? c->over : c->passed; p; p = p->next) {
      if (p->from != participant || !p->claims || (why == GROWN && !p->unknown)) continue;
      p->unknown = false;
      p->claims = why != SIHANDED;
      if (p->claims) {
        claim(c, p);
        continue;
      }
      c->claiming--;
      spx_core_in_go(c, p->given - 1);
    }
}

void spx_core_in_claim_unknown(spx_core *c, uint32_t participant)
{
  claim_again(c, participant, GROWN);
}

void spx_core_in_claim_replaced(spx_core *c, uint32_t participant)
{
  claim_again(c, participant, REPLACED);
}

void spx_core_silent(spx_core *c, uint32_t participant) { claim_again(c, participant, SIHANDED); }

static spx_kept *find_kept(const spx_core *c, uint32_t first, const spx_frame_ack *id)
{
  for (uint32_t i = 0; i <= c->participants; i++) {
    uint32_t p = i ? i - 1 : first; /* where it is mostly */
    for (spx_kept *m = c->first[p]; m; m = m->next)
      if (spx_core_in_leaves(m->head.stream) && spx_core_in_is_of(&m->head, id)) return m;
  }
  return NULL;
}

/* Message n is given so, and about to be sent again, or kept. false: no memory. */
bool spx_core_in_note_given(spx_core *c, uint64_t n, uint32_t given)
{
  spx_frame_ack id = {.n = n, .stream = c->me | SPX_LEAVES, .life = c->life};
  spx_kept *m = find_kept(c, c->me, &id);
  if (m) m->head.given = given;
  if (m || n <= c->leaving) return true; /* it was accepted */
  spx_noted *o = c->noted;
  while (o && o->n != n) o = o->next;
  if (!o) {
    if (!(o = malloc(sizeof *o))) return false;
    *o = (spx_noted){.next = c->noted, .n = n};
    c->noted = o;
  }
  o->given = given;
  return true;
}

static uint32_t noted(const spx_core *c, uint64_t n)
{
  const spx_noted *o = c->noted;
  while (o && o->n != n) o = o->next;
  return o ? o->given : 0;
}

uint32_t spx_core_in_take_noted(spx_core *c, uint64_t n)
{
  for (spx_noted **at = &c->noted, *o; (o = *at); at = &o->next) {
    if (o->n != n) continue;
    uint32_t given = o->given;
    *at = o->next;
    free(o);
    return given;
  }
  return 0;
}

/* The first claim wins; an IOP that has seen it may give the message to another one. */
void spx_core_in_answer(spx_core *c, uint32_t from, spx_frame_claim a)
{
  bool own = a.id.stream == (c->me | SPX_LEAVES) && a.id.life == c->life;
  const spx_kept *m = own ? find_kept(c, from, &a.id) : NULL;
  /* A message that this process's predecessor has sent is not sent again: then the claim counts. */
  if (own && !m && a.id.n <= c->leaving) {
    a.to = SPX_DONE;
  } else if (own) {
    uint32_t given = m ? m->head.given : noted(c, a.id.n);
    if ((given && given != a.before) || given == a.to) {
      a.to = given;
    } else {
      spx_frame_head h = {.stream = GIVEN, .n = a.id.n, .given = a.to};
      spx_core_in_note(c, &h, NULL);
      if (!spx_core_in_note_given(c, a.id.n, a.to))
        c->io.failed(c->io.arg, "no memory for a claim");
    }
  }
  if (!spx_core_in_owe_claim(c, from, &a))
    c->io.failed(c->io.arg, "no memory for the answer to a claim");
}

void spx_core_claimed(spx_core *c, uint32_t from, const spx_frame_claim *claims, uint32_t n)
{
  if (from >= c->participants) return;
  for (uint32_t i = 0; i < n; i++) {
    if (c->relay) {
      answered(c, from, &claims[i]);
    } else if (c->mode == SPX_CORE_PRELUDE) { /* unknown so far */
      spx_asked_early *e = malloc(sizeof *e);
      if (!e) c->io.failed(c->io.arg, "no memory for a claim");
      *e = (spx_asked_early){c->early, from, claims[i]};
      c->early = e;
    } else
      spx_core_in_answer(c, from, claims[i]);
  }
}
