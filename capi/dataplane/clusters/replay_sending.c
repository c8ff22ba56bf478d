/* replay_sending.c - see replay_core.h: what is kept for each participant, and sent. */
#include "replay_core.h"
#include "replay_inside.h"
#include <stdlib.h>
#include <string.h>

enum { DONE_EVERY = 16 };

/* All messages of this participant's own stream up to this one have been accepted by their
 * receivers. Those that went by another IOP first are behind others. */
static uint64_t done_with(const spx_core *c)
{
  uint64_t least = c->leaving;
  for (uint32_t p = 0; p < c->participants; p++)
    for (const spx_kept *m = c->first[p]; m; m = m->next) {
      if (m->head.stream != (c->me | SPX_LEAVES)) continue;
      if (m->head.n <= least) least = m->head.n - 1;
      if (!c->unsettled) break; /* in their order */
    }
  return least;
}

uint64_t spx_core_in_cost(const spx_kept *m) { return m->head.bytes + sizeof *m; }

void spx_core_in_append(spx_core *c, spx_kept *m)
{
  m->next = NULL;
  if (c->last[m->to])
    c->last[m->to]->next = m;
  else
    c->first[m->to] = m;
  c->last[m->to] = m;
  c->kept_bytes += spx_core_in_cost(m);
}

/* What was made of it was not accepted, and the program has not learnt that yet: it may send it to
 * another participant, for which it may be the first, too. */
static void fails(spx_core *c, spx_passed *p, uint32_t to)
{
  uint32_t *went = spx_core_in_went_to(p, to);
  if (went && *went) --*went;
  p->failed = c->call + 1;
  c->failing = true;
  if (!p->over) return;
  p->over = false;
  spx_core_in_take_out(c, p);
  spx_core_in_join(c->passed_last, p);
  c->passed_last = &p->next;
}

/* m is kept no more. */
void spx_core_in_release(spx_core *c, spx_kept *m, bool accepted)
{
  c->kept_bytes -= spx_core_in_cost(m);
  if (!accepted) {
    c->lost++;
    c->lost_bytes += m->head.bytes;
  }
  if (m->of) {
    m->of->left--;
    if (accepted)
      spx_core_in_let_go(c, m->of);
    else
      fails(c, m->of, m->to);
    m->of = NULL;
  }
  if (m->waits) c->io.settled(c->io.arg, m->waits, accepted);
  m->waits = NULL;
  if (m->busy)
    m->gone = true;
  else
    free(m);
}

void spx_core_in_transmit(spx_core *c, spx_kept *m)
{
  if (m->head.announced && !m->of) m->head.turn++;
  m->out = true;
  c->io.transmit(c->io.arg, m);
}

/* Its source message is claimed; or an earlier message of its stream in the list has not left. */
static bool has_to_wait(const spx_core *c, const spx_kept *m)
{
  if (m->of && m->of->claims) return true;
  for (const spx_kept *e = c->first[m->to]; e != m; e = e->next)
    if (!e->out && e->head.stream == m->head.stream && e->head.life == m->head.life) return true;
  return false;
}

/* Messages for a participant leave, if they need not wait any more. */
void spx_core_in_go(spx_core *c, uint32_t to)
{
  for (spx_kept *m = c->first[to]; m; m = m->next)
    if (!m->out && !has_to_wait(c, m)) spx_core_in_transmit(c, m);
}

/* The link to the one that `waits` belongs to; NULL: there is none. before: the one before it in
 * its list. */
static spx_kept **find_waiting(spx_core *c, const void *waits, spx_kept **before)
{
  for (uint32_t p = 0; p < c->participants; p++) {
    *before = NULL;
    for (spx_kept **at = &c->first[p]; *at; at = &(*at)->next) {
      if ((*at)->waits == waits) return at;
      *before = *at;
    }
  }
  return NULL;
}

void spx_core_withdraw(spx_core *c, const void *waits)
{
  spx_kept *before, **at = find_waiting(c, waits, &before);
  if (!at) return;
  spx_kept *m = *at;
  *at = m->next;
  if (c->last[m->to] == m) c->last[m->to] = before;
  m->waits = NULL;
  uint32_t to = m->to;
  bool waiting = c->claiming > 0; /* others for it, behind this one */
  spx_core_in_release(c, m, true);
  if (waiting) spx_core_in_go(c, to);
}

spx_kept *spx_core_copied(spx_core *c, const void *waits, uint64_t bytes)
{
  spx_kept *before, **at = find_waiting(c, waits, &before);
  spx_kept *n = at ? malloc(sizeof *n + bytes) : NULL;
  if (!n) return NULL;
  spx_kept *m = *at;
  *n = *m;
  n->busy = 0;
  n->waits = NULL;
  n->head.announced = 0;
  n->head.bytes = bytes;
  *at = n;
  if (c->last[m->to] == m) c->last[m->to] = n;
  c->kept_bytes += spx_core_in_cost(n) - spx_core_in_cost(m);
  if (m->busy)
    m->gone = true;
  else
    free(m);
  return n;
}

void spx_core_unbusy(spx_core *c, spx_kept *m)
{
  (void)c;
  if (--m->busy == 0 && m->gone) free(m);
}

/* A message behind another of its lane goes to the IOP where that is kept. If none is kept, or no
 * IOP has joined or left since: to the IOP chosen. */
static uint32_t follow(spx_core *c, uint32_t lane, uint32_t chosen)
{
  uint64_t last = 0;
  uint32_t to = chosen;
  bool settled = true;
  for (uint32_t p = 0; p < c->participants && c->unsettled; p++)
    for (const spx_kept *m = c->first[p]; m; m = m->next) {
      if (!spx_core_in_leaves(m->head.stream)) continue;
      settled &= m->head.n > c->unsettled;
      if (m->lane != lane || m->head.n < last) continue;
      last = m->head.n;
      to = m->to;
    }
  if (settled) c->unsettled = 0;
  if (to != chosen) c->unsettled = c->leaving + 1;
  return to;
}

spx_kept *spx_core_message(spx_core *c, uint32_t to, bool leaving, uint32_t lane, uint64_t ctx,
                           int32_t tag, int32_t src, uint64_t bytes, uint32_t of)
{
  spx_kept *m = malloc(sizeof *m + bytes);
  if (!m) return NULL;
  if (leaving && !c->relay) to = follow(c, lane, to);
  *m = (spx_kept){.to = to,
                  .lane = lane,
                  .head = {.ctx = ctx, .bytes = bytes, .tag = tag, .src = src, .from = c->me}};
  m->head.life = c->life;
  if (c->relay && (m->of = spx_core_in_find_passed(c, of))) {
    const uint32_t *went = spx_core_in_went_to(m->of, to);
    if (!went) {
      free(m);
      return NULL;
    }
    const spx_frame_ack *id = &m->of->id;
    m->head.stream = id->stream;
    m->head.life = id->life;
    m->head.n = id->n;
    m->head.sub = *went;
    m->head.turn = m->of->turn;
    const spx_seen *s = spx_core_in_seen_of(c, id->stream, id->life);
    if (s) m->head.done = s->low;
  } else if (leaving || c->relay) {
    m->head.stream = c->me | SPX_LEAVES;
    if (c->leaving % DONE_EVERY == 0) c->done = done_with(c);
    m->head.done = c->done;
    m->head.n = ++c->leaving;
    m->head.given = spx_core_in_take_noted(c, m->head.n);
  } else {
    m->head.stream = c->me;
    m->head.n = ++c->next[to];
  }
  return m;
}

/* Something is sent in this call. Messages that arrive in calls after that one, and were not seen
 * before, may arrive at other moments next time. So all calls that poll for messages have to be
 * noted, and a copied log is spared those that do not. */
static void note_reached(spx_core *c)
{
  uint32_t area = spx_core_in_area_now(c->msglog);
  if (spx_core_in_reached_in(c, area) >= c->call || (c->sparing && !c->looked)) return;
  uint64_t reached = (uint64_t)c->calls << SPX_CALLS | c->call;
  __atomic_store_n(&c->msglog->area[area].reached, reached, __ATOMIC_RELEASE);
  c->looked = false;
  c->version++;
}

void spx_core_send(spx_core *c, spx_kept *m)
{
  if (c->mode == SPX_CORE_PRELUDE) { /* it has been accepted, or is in the image */
    free(m);
    return;
  }
  if (m->of) {
    m->of->sends++;
    m->of->left++;
    m->of->due = false;
    uint32_t *went = spx_core_in_went_to(m->of, m->to);
    if (went) ++*went;
  }
  if (c->msglog) note_reached(c);
  spx_core_in_append(c, m);
  if (m->of && m->of->done)
    spx_core_in_drop(c, m->of);
  else if (!c->claiming || !has_to_wait(c, m))
    spx_core_in_transmit(c, m);
}
