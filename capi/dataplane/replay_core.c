/* replay_core.c - see replay_core.h: what is kept, what is accepted, what is sent again. */
#include "replay_parts.h"
#include <stdlib.h>
#include <string.h>

enum { DONE_EVERY = 16 };

/* ---- beginning and end -------------------------------------------------------------------------------------------- */

bool spx_core_begin(spx_core *c, const spx_core_io *io, uint32_t parties, uint32_t me, uint32_t life, bool relay,
                    spx_vault *vault)
{
  *c = (spx_core){.io = *io, .parties = parties, .me = me, .relay = relay, .vault = vault, .version = 1};
  c->life = vault ? (uint32_t)vault->life : life;
  c->passed_last = &c->passed;
  c->seen[0] = calloc(parties, sizeof *c->seen[0]);
  c->seen[1] = calloc(parties, sizeof *c->seen[1]);
  c->next = calloc(parties, sizeof *c->next);
  c->first = calloc(parties, sizeof *c->first);
  c->last = calloc(parties, sizeof *c->last);
  c->acks = calloc(parties, sizeof *c->acks);
  c->ready_last = &c->ready;
  c->logged_last = &c->logged;
  c->notes_last = &c->notes;
  if (!c->seen[0] || !c->seen[1] || !c->next || !c->first || !c->last || !c->acks) return false;
  if (!vault) return true;
  bool begun = vault->commits || vault->area[0].end || vault->area[0].reached;
  if (begun) c->mode = vault->commits ? SPX_CORE_PRELUDE : SPX_CORE_REPLAY;
  return spx_core_read_area(c, 0, !vault->commits);
}

/* An array of the size that it is to have, of n elements at present; NULL: no memory. */
static void *grown(void *from, uint32_t n, uint32_t more, size_t each)
{
  uint8_t *to = calloc(more, each);
  if (to && n) memcpy(to, from, n * each);
  return to;
}

static void claim_unknown(spx_core *c, uint32_t party);
void spx_core_unsettle(spx_core *c) { c->unsettled = c->leaving; }

bool spx_core_grow(spx_core *c, uint32_t parties)
{
  uint32_t n = c->parties;
  if (parties <= n) return true;
  spx_seen *seen = grown(c->seen[0], n, parties, sizeof *seen), *left = grown(c->seen[1], n, parties, sizeof *left);
  uint64_t *next = grown(c->next, n, parties, sizeof *next);
  spx_kept **first = (spx_kept **)grown((void *)c->first, n, parties, sizeof *first);
  spx_kept **last = (spx_kept **)grown((void *)c->last, n, parties, sizeof *last);
  void *acks = grown(c->acks, n, parties, sizeof *c->acks);
  bool all = seen && left && next && first && last && acks;
  free(all ? c->seen[0] : seen);
  free(all ? c->seen[1] : left);
  free(all ? c->next : next);
  free(all ? (void *)c->first : (void *)first);
  free(all ? (void *)c->last : (void *)last);
  free(all ? (void *)c->acks : acks);
  if (!all) return false;
  c->seen[0] = seen;
  c->seen[1] = left;
  c->next = next;
  c->first = first;
  c->last = last;
  c->acks = acks;
  c->parties = parties;
  spx_core_unsettle(c);
  for (uint32_t p = 0; p < n && c->claiming; p++) claim_unknown(c, p);
  return true;
}

static void free_list(spx_came *m)
{
  for (spx_came *next; m; m = next) {
    next = m->next;
    free(m);
  }
}

static void free_one(spx_passed *p)
{
  for (spx_went *w = p->went.next, *next; w; w = next) {
    next = w->next;
    free(w);
  }
  free(p);
}

static void free_passed(spx_passed *p)
{
  for (spx_passed *next; p; p = next) {
    next = p->next;
    free_one(p);
  }
}

void spx_core_end(spx_core *c)
{
  for (uint32_t p = 0; p < c->parties && c->first; p++) {
    for (spx_kept *m = c->first[p], *next; m; m = next) {
      next = m->next;
      if (!m->busy) free(m);
    }
    free(c->acks[p].list);
    free(c->acks[p].claims);
  }
  for (uint32_t s = 0; s < 2 * c->parties; s++)
    if (c->seen[s & 1]) spx_core_free_seen(&c->seen[s & 1][s >> 1]);
  free_list(c->ready);
  free_list(c->logged);
  free_list(c->notes);
  free_passed(c->passed);
  free_passed(c->over);
  spx_core_free_noted(c);
  for (spx_asked_early *e; (e = c->early);) {
    c->early = e->next;
    free(e);
  }
  free(c->seen[0]);
  free(c->seen[1]);
  free(c->next);
  free(c->first);
  free(c->last);
  free(c->acks);
  *c = (spx_core){0};
}

/* ---- accepting ------------------------------------------------------------------------------------------------------ */

static bool owes(const spx_core *c, uint32_t party) { return c->acks[party].count || c->acks[party].nclaims; }

static void acknowledge(spx_core *c, uint32_t party, spx_frame_ack id)
{
  if (c->acks[party].count == c->acks[party].room) {
    uint32_t room = c->acks[party].room ? 2 * c->acks[party].room : 16;
    spx_frame_ack *list = realloc(c->acks[party].list, room * sizeof *list);
    if (!list) return; /* the message will come again, or is kept for nothing */
    c->acks[party].list = list;
    c->acks[party].room = room;
  }
  c->owed += !owes(c, party);
  c->acks[party].list[c->acks[party].count++] = id;
}

static spx_frame_ack id_of(const spx_frame_head *h) { return (spx_frame_ack){h->n, h->stream, h->sub, h->life, 0}; }

void spx_core_tell(spx_core *c)
{
  for (uint32_t p = 0; p < c->parties && c->owed; p++)
    if (owes(c, p)) {
      c->owed--;
      uint32_t n = c->acks[p].count, claims = c->acks[p].nclaims;
      c->acks[p].count = c->acks[p].nclaims = 0;
      if (n) c->io.acknowledge(c->io.arg, p, c->acks[p].list, n);
      if (claims) c->io.claim(c->io.arg, p, c->acks[p].claims, claims);
    }
}

/* A claim, or an answer, is to be told. false: no memory. */
static bool owe_claim(spx_core *c, uint32_t party, const spx_frame_claim *claim)
{
  if (c->acks[party].nclaims == c->acks[party].claims_room) {
    uint32_t room = c->acks[party].claims_room ? 2 * c->acks[party].claims_room : 16;
    spx_frame_claim *list = realloc(c->acks[party].claims, room * sizeof *list);
    if (!list) return false;
    c->acks[party].claims = list;
    c->acks[party].claims_room = room;
  }
  c->owed += !owes(c, party);
  c->acks[party].claims[c->acks[party].nclaims++] = *claim;
  return true;
}

void spx_core_enter(spx_core *c, bool sends)
{
  c->call++;
  c->looked |= !sends;
  while (c->logged && c->logged->call <= c->call) {
    spx_came *m = c->logged;
    if (!c->io.deliver(c->io.arg, &m->head, (uint32_t)m->head.n, 0, m->data))
      c->io.failed(c->io.arg, "no memory for a message that is received again");
    c->logged = m->next;
    if (!c->logged) c->logged_last = &c->logged;
    free(m);
  }
  if (c->mode == SPX_CORE_REPLAY && !spx_core_again(c)) c->mode = SPX_CORE_LIVE;
}

/* In the last call that is made again nothing may come before what was sent in it; it was sent by now, if that call waits. */
bool spx_core_may_accept(const spx_core *c, bool inside)
{
  if (c->mode == SPX_CORE_PRELUDE) return false;
  if (!c->vault || c->call > c->vault->area[spx_core_area_now(c->vault)].reached) return c->mode == SPX_CORE_LIVE;
  return inside && c->mode == SPX_CORE_LIVE;
}

/* ---- of an IOP: what it has received, until those have it that it goes to ------------------------------------------- */

static void join(spx_passed **at, spx_passed *p)
{
  p->at = at;
  p->next = *at;
  if (p->next) p->next->at = &p->next;
  *at = p;
}

static void take_out(spx_core *c, spx_passed *p)
{
  if (c->passed_last == &p->next) c->passed_last = p->at;
  *p->at = p->next;
  if (p->next) p->next->at = p->at;
}

static spx_passed *pass(spx_core *c, const spx_frame_head *h)
{
  spx_passed *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->id = id_of(h);
  p->from = h->from;
  p->turn = h->turn;
  p->given = h->given;
  p->went.to = UINT32_MAX;
  if (++c->tokens == 0) c->tokens = 1;
  p->token = c->tokens;
  p->chain = c->by_token[p->token % SPX_TOKENS];
  c->by_token[p->token % SPX_TOKENS] = p;
  join(c->passed_last, p);
  c->passed_last = &p->next;
  return p;
}

static spx_passed *find_passed(const spx_core *c, uint32_t token)
{
  spx_passed *p = token ? c->by_token[token % SPX_TOKENS] : NULL;
  while (p && p->token != token) p = p->chain;
  return p;
}

/* Its sender need not keep it any more, if that is so. */
static void let_go(spx_core *c, spx_passed *p)
{
  if (!p->over || !p->sends || p->left || p->due) return;
  c->claiming -= p->claims != 0;
  acknowledge(c, p->from, p->id);
  spx_passed **at = &c->by_token[p->token % SPX_TOKENS];
  while (*at != p) at = &(*at)->chain;
  *at = p->chain;
  take_out(c, p);
  free_one(p);
}

/* How many of what was made of it have gone to a party; NULL: no memory. */
static uint32_t *went_to(spx_passed *p, uint32_t to)
{
  spx_went *w = &p->went;
  while (w->to != to && w->next) w = w->next;
  if (w->to != to && w->to != UINT32_MAX) {
    if (!(w->next = calloc(1, sizeof *w))) return NULL;
    w = w->next;
  }
  w->to = to;
  return &w->count;
}

static spx_passed *find_open(const spx_core *c, const spx_frame_head *h)
{
  for (int list = 0; list < 2; list++)
    for (spx_passed *p = list ? c->over : c->passed; p; p = p->next)
      if (is_of(h, &p->id)) return p;
  return NULL;
}

void spx_core_received(spx_core *c, uint32_t token, bool sent)
{
  spx_passed *p = find_passed(c, token);
  if (!p || (c->relay && sent)) return; /* an IOP accepts when those have it that it goes to */
  p->over = true;
  p->due = false;
  if (!p->sends) p->sends = 1;
  let_go(c, p);
}

bool spx_core_accept(spx_core *c)
{
  spx_came *m = c->ready;
  if (!m || (m->head.stream & ~SPX_LEAVES) >= c->parties) return false; /* of one that is about to be known */
  const spx_seen *s = spx_core_seen_of(c, m->head.stream, m->head.life);
  if (!s) return false;
  bool again_here = spx_core_is_seen(s, m->head.n, m->head.sub);
  spx_passed *open = NULL;
  if (!again_here) {
    /* What cannot be delivered for want of memory was not accepted: but the vault must come first. */
    spx_core_log(c, &m->head, m->data);
    uint32_t number = (uint32_t)m->head.n, token = 0;
    bool ok = spx_core_note_seen(c, &m->head);
    if (ok && (c->relay || m->head.announced)) {
      const spx_passed *p = pass(c, &m->head);
      ok = p != NULL;
      if (p) token = p->token;
      if (c->relay) number = token;
    }
    if (!ok || !c->io.deliver(c->io.arg, &m->head, number, token, m->data))
      c->io.failed(c->io.arg, "no memory for a message");
  } else if ((open = find_open(c, &m->head)) && !c->relay && m->head.announced && m->head.turn >= open->turn) {
    open->from = m->head.from;
    open->turn = m->head.turn;
    c->io.again(c->io.arg, &m->head, open->token, m->data);
    open = find_open(c, &m->head); /* it may be received by now */
  }
  if (open && c->relay && !open->sends && !open->claims) open->given = m->head.given;
  /* One that comes again and was done with: its sender does not know. */
  if (again_here ? !open : !c->relay && !m->head.announced) acknowledge(c, m->head.from, id_of(&m->head));
  c->ready = m->next;
  if (!c->ready) c->ready_last = &c->ready;
  c->waiting--;
  c->waiting_bytes -= m->head.bytes;
  free(m);
  return true;
}

bool spx_core_arrived(spx_core *c, const spx_frame_head *head, const uint8_t *data)
{
  if (head->from >= c->parties) return true; /* of no party that is known here */
  spx_came *m = spx_core_new_came(head, data, true);
  if (!m) return false;
  *c->ready_last = m;
  c->ready_last = &m->next;
  c->waiting++;
  c->waiting_bytes += head->bytes;
  return true;
}

/* ---- sending -------------------------------------------------------------------------------------------------------- */

/* All messages of this party's own stream up to this one have been accepted where they went. Those that went by another IOP first stand behind others. */
static uint64_t done_with(const spx_core *c)
{
  uint64_t least = c->leaving;
  for (uint32_t p = 0; p < c->parties; p++)
    for (const spx_kept *m = c->first[p]; m; m = m->next) {
      if (m->head.stream != (c->me | SPX_LEAVES)) continue;
      if (m->head.n <= least) least = m->head.n - 1;
      if (!c->unsettled) break; /* in their order */
    }
  return least;
}

static uint64_t cost(const spx_kept *m) { return m->head.bytes + sizeof *m; }

void spx_core_append(spx_core *c, spx_kept *m)
{
  m->next = NULL;
  if (c->last[m->to])
    c->last[m->to]->next = m;
  else
    c->first[m->to] = m;
  c->last[m->to] = m;
  c->kept_bytes += cost(m);
}

/* What was made of it was not accepted, and the program does not know yet: it may send it to another one, and of that one it may be the first, too. */
static void fails(spx_core *c, spx_passed *p, uint32_t to)
{
  uint32_t *went = went_to(p, to);
  if (went && *went) --*went;
  p->failed = c->call + 1;
  if (!p->over) return;
  p->over = false;
  take_out(c, p);
  join(c->passed_last, p);
  c->passed_last = &p->next;
}

/* m is kept no more. */
static void release(spx_core *c, spx_kept *m, bool accepted)
{
  c->kept_bytes -= cost(m);
  if (!accepted) {
    c->lost++;
    c->lost_bytes += m->head.bytes;
  }
  if (m->of) {
    m->of->left--;
    if (accepted)
      let_go(c, m->of);
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

static void transmit(spx_core *c, spx_kept *m)
{
  if (m->head.announced && !m->of) m->head.turn++;
  m->out = true;
  c->io.transmit(c->io.arg, m);
}

/* What it is made of is claimed; or something of its stream that is before it in the list has not left. */
static bool has_to_wait(const spx_core *c, const spx_kept *m)
{
  if (m->of && m->of->claims) return true;
  for (const spx_kept *e = c->first[m->to]; e != m; e = e->next)
    if (!e->out && e->head.stream == m->head.stream && e->head.life == m->head.life) return true;
  return false;
}

/* What is for a party leaves, if it need not wait any more. */
static void go(spx_core *c, uint32_t to)
{
  for (spx_kept *m = c->first[to]; m; m = m->next)
    if (!m->out && !has_to_wait(c, m)) transmit(c, m);
}

/* What points to the one that is waited for by this; NULL: there is none. before: the one before it in its list. */
static spx_kept **find_waiting(spx_core *c, const void *waits, spx_kept **before)
{
  for (uint32_t p = 0; p < c->parties; p++) {
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
  release(c, m, true);
  if (waiting) go(c, to);
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
  c->kept_bytes += cost(n) - cost(m);
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

/* What comes behind something of its lane goes where that is kept. If nothing is, or no IOP has come or gone since: where it was to go. */
static uint32_t follow(spx_core *c, uint32_t lane, uint32_t chosen)
{
  uint64_t last = 0;
  uint32_t to = chosen;
  bool settled = true;
  for (uint32_t p = 0; p < c->parties && c->unsettled; p++)
    for (const spx_kept *m = c->first[p]; m; m = m->next) {
      if (!leaves(m->head.stream)) continue;
      settled &= m->head.n > c->unsettled;
      if (m->lane != lane || m->head.n < last) continue;
      last = m->head.n;
      to = m->to;
    }
  if (settled) c->unsettled = 0;
  if (to != chosen) c->unsettled = c->leaving + 1;
  return to;
}

spx_kept *spx_core_message(spx_core *c, uint32_t to, bool leaving, uint32_t lane, uint64_t ctx, int32_t tag,
                           int32_t src, uint64_t bytes, uint32_t of)
{
  spx_kept *m = malloc(sizeof *m + bytes);
  if (!m) return NULL;
  if (leaving && !c->relay) to = follow(c, lane, to);
  *m = (spx_kept){.to = to, .lane = lane, .head = {.ctx = ctx, .bytes = bytes, .tag = tag, .src = src, .from = c->me}};
  m->head.life = c->life;
  if (c->relay && (m->of = find_passed(c, of))) {
    const uint32_t *went = went_to(m->of, to);
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
    const spx_seen *s = spx_core_seen_of(c, id->stream, id->life);
    if (s) m->head.done = s->low;
  } else if (leaving || c->relay) {
    m->head.stream = c->me | SPX_LEAVES;
    if (c->leaving % DONE_EVERY == 0) c->done = done_with(c);
    m->head.done = c->done;
    m->head.n = ++c->leaving;
    m->head.given = spx_core_take_noted(c, m->head.n);
  } else {
    m->head.stream = c->me;
    m->head.n = ++c->next[to];
  }
  return m;
}

/* Something is sent in this call. What comes in calls after that one, and was not seen before, may come at other moments next time: so all calls that look at what has come have to be noted, and
 * a log of which others keep copies is spared those that do not. */
static void note_reached(spx_core *c)
{
  uint64_t *reached = &c->vault->area[spx_core_area_now(c->vault)].reached;
  if (*reached >= c->call || (c->sparing && !c->looked)) return;
  __atomic_store_n(reached, c->call, __ATOMIC_RELEASE);
  c->looked = false;
  c->version++;
}

static void drop(spx_core *c, const spx_passed *p);
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
    uint32_t *went = went_to(m->of, m->to);
    if (went) ++*went;
  }
  if (c->vault) note_reached(c);
  spx_core_append(c, m);
  if (m->of && m->of->done)
    drop(c, m->of);
  else if (!c->claiming || !has_to_wait(c, m))
    transmit(c, m);
}

/* ---- to whom a message is given ---------------------------------------------------------------------------------------- */

static void claim(spx_core *c, const spx_passed *p)
{
  spx_frame_claim a = {.id = p->id, .token = p->token, .before = p->before, .to = p->given};
  if (!owe_claim(c, p->from, &a)) c->io.failed(c->io.arg, "no memory for a claim");
}

void spx_core_give(spx_core *c, uint32_t token, uint32_t party)
{
  spx_passed *p = find_passed(c, token);
  if (!p) return;
  p->due = true;
  if (p->given == party + 1) return;
  p->before = p->given;
  p->given = party + 1;
  c->claiming += p->claims++ == 0;
  claim(c, p);
}

uint64_t spx_core_number(const spx_core *c, uint32_t token, uint32_t *given)
{
  const spx_passed *p = find_passed(c, token);
  *given = p ? p->given : 0;
  return p ? p->id.n : 0;
}

/* What is made of p, and has not left, counts as accepted. */
static void drop(spx_core *c, const spx_passed *p)
{
  for (uint32_t to = 0; to < c->parties; to++) {
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
      release(c, m, true);
      if (last) {
        go(c, to);
        return;
      }
    }
    go(c, to);
  }
}

/* Before what follows it in its stream and waits as well, if that is so; else behind all. */
static void insert(spx_core *c, spx_kept *m)
{
  spx_kept *before = NULL, *e = c->first[m->to];
  while (e && (e->out || e->head.stream != m->head.stream || e->head.life != m->head.life || e->head.n < m->head.n)) {
    before = e;
    e = e->next;
  }
  if (!e) {
    spx_core_append(c, m);
    return;
  }
  m->next = e;
  *(before ? &before->next : &c->first[m->to]) = m;
  c->kept_bytes += cost(m);
}

/* What is made of p, and has not left, is for another party. */
static void redirect(spx_core *c, const spx_passed *p, uint32_t to)
{
  for (uint32_t was = 0; was < c->parties; was++) {
    spx_kept *before = NULL;
    for (spx_kept *m = c->first[was], *next; m; m = next) {
      next = m->next;
      if (m->of != p || m->out || was == to) {
        before = m;
        continue;
      }
      *(before ? &before->next : &c->first[was]) = next;
      if (c->last[was] == m) c->last[was] = before;
      c->kept_bytes -= cost(m);
      uint32_t *from = went_to(m->of, was), *went = went_to(m->of, to);
      if (!from || !went) c->io.failed(c->io.arg, "no memory for a message that is given to another one");
      --*from;
      m->head.sub = (*went)++;
      m->to = to;
      insert(c, m);
    }
    go(c, was);
  }
}

static void answered(spx_core *c, uint32_t from, const spx_frame_claim *a)
{
  spx_passed *p = find_passed(c, a->token);
  spx_frame_head h = {.n = a->id.n, .stream = a->id.stream, .sub = a->id.sub, .life = a->id.life};
  if (!p || !p->claims || p->from != from || !is_of(&h, &p->id)) return;
  if (p->claims > 1) { /* a later one counts */
    p->claims--;
    return;
  }
  p->unknown = a->to > c->parties && a->to != SPX_DONE;
  if (p->unknown) return; /* it is claimed anew when that one is known */
  p->claims = 0;
  c->claiming--;
  uint32_t was = p->given;
  if (a->to == SPX_DONE) {
    p->done = true;
    drop(c, p);
    return;
  }
  p->given = a->to;
  if (a->to != was) redirect(c, p, a->to - 1);
  go(c, a->to - 1);
}

enum { REPLACED, SILENT, GROWN };
/* Those of a party are claimed anew: another process is that party; or there are more, and the answer was one of those. Or that need not be, since it does not send them again. */
static void claim_again(spx_core *c, uint32_t party, int why)
{
  for (int list = 0; list < 2 && c->claiming; list++)
    for (spx_passed *p = list ? c->over : c->passed; p; p = p->next) {
      if (p->from != party || !p->claims || (why == GROWN && !p->unknown)) continue;
      p->unknown = false;
      p->claims = why != SILENT;
      if (p->claims) {
        claim(c, p);
        continue;
      }
      c->claiming--;
      go(c, p->given - 1);
    }
}

static void claim_unknown(spx_core *c, uint32_t party) { claim_again(c, party, GROWN); }

void spx_core_silent(spx_core *c, uint32_t party) { claim_again(c, party, SILENT); }

/* The first that claims it has it; who knows of that may give it to another one. */
void spx_core_answer(spx_core *c, uint32_t from, spx_frame_claim a)
{
  bool own = a.id.stream == (c->me | SPX_LEAVES) && a.id.life == c->life;
  const spx_kept *m = own ? spx_core_find_kept(c, from, &a.id) : NULL;
  /* What the process before this one has sent is not sent again: then the claim counts. */
  if (own && !m && a.id.n <= c->leaving) {
    a.to = SPX_DONE;
  } else if (own) {
    uint32_t given = m ? m->head.given : spx_core_noted(c, a.id.n);
    if ((given && given != a.before) || given == a.to) {
      a.to = given;
    } else {
      spx_frame_head h = {.stream = GIVEN, .n = a.id.n, .given = a.to};
      spx_core_log(c, &h, NULL);
      if (!spx_core_note_given(c, a.id.n, a.to)) c->io.failed(c->io.arg, "no memory for a claim");
    }
  }
  if (!owe_claim(c, from, &a)) c->io.failed(c->io.arg, "no memory for the answer to a claim");
}

void spx_core_claimed(spx_core *c, uint32_t from, const spx_frame_claim *claims, uint32_t n)
{
  if (from >= c->parties) return;
  for (uint32_t i = 0; i < n; i++) {
    if (c->relay) {
      answered(c, from, &claims[i]);
    } else if (c->mode == SPX_CORE_PRELUDE) { /* it does not know yet */
      spx_asked_early *e = malloc(sizeof *e);
      if (!e) c->io.failed(c->io.arg, "no memory for a claim");
      *e = (spx_asked_early){c->early, from, claims[i]};
      c->early = e;
    } else
      spx_core_answer(c, from, claims[i]);
  }
}

/* ---- what was accepted ------------------------------------------------------------------------------------------------ */

void spx_core_other(spx_core *c) { c->last_other = c->call; }

void spx_core_asked(spx_core *c, bool all)
{
  for (spx_passed *p = c->passed, *next; p; p = next) {
    next = p->next;
    if ((!p->sends || p->due || (p->failed && (int32_t)(c->last_other + 1 - p->failed) < 0)) && !all) continue;
    p->over = true;
    p->due = false;
    p->failed = 0;
    if (!p->sends) p->sends = 1;
    take_out(c, p);
    join(&c->over, p);
    let_go(c, p);
  }
}

static void accepted(spx_core *c, uint32_t party, const spx_frame_ack *a)
{
  for (spx_kept *m = c->first[party], *before = NULL; m; before = m, m = m->next) {
    if (!is_of(&m->head, a)) continue;
    if (before)
      before->next = m->next;
    else
      c->first[party] = m->next;
    if (c->last[party] == m) c->last[party] = before;
    release(c, m, true);
    return;
  }
}

void spx_core_acked(spx_core *c, uint32_t from, const spx_frame_ack *acks, uint32_t n)
{
  if (from >= c->parties) return;
  for (uint32_t i = 0; i < n; i++) accepted(c, from, &acks[i]);
}

void spx_core_left(spx_core *c, uint32_t party)
{
  spx_kept *m = c->first[party];
  c->first[party] = c->last[party] = NULL;
  for (spx_kept *next; m; m = next) {
    next = m->next;
    release(c, m, false);
  }
}

int spx_core_excuse(spx_core *c, uint32_t party, bool (*may)(const void *waits))
{
  int n = 0;
  for (bool more = true; more;) { /* from the start after each: who was told may have changed the list */
    more = false;
    for (spx_kept *m = c->first[party]; m && !more; m = m->next) {
      void *waits = m->waits;
      if (!waits || m->head.announced || !may(waits)) continue;
      m->waits = NULL;
      c->io.settled(c->io.arg, waits, true);
      more = true;
      n++;
    }
  }
  return n;
}

void spx_core_replaced(spx_core *c, uint32_t party)
{
  c->unsettled = c->leaving;
  for (spx_kept *m = c->first[party]; m; m = m->next)
    if (m->out) transmit(c, m);
  claim_again(c, party, REPLACED);
}

void spx_core_reroute(spx_core *c, uint32_t party, uint32_t (*choose)(void *arg, const spx_kept *m), void *arg)
{
  c->unsettled = c->leaving;
  spx_kept *m = c->first[party], *stays = NULL;
  c->first[party] = c->last[party] = NULL;
  for (spx_kept *next; m; m = next) {
    next = m->next;
    c->kept_bytes -= cost(m);
    uint32_t to = choose(arg, m);
    if (to == UINT32_MAX) {
      m->next = stays;
      stays = m;
      continue;
    }
    m->to = to;
    spx_core_append(c, m);
    transmit(c, m);
  }
  for (spx_kept *rest = NULL; stays; stays = rest) { /* there is no other one: in the order that they had */
    rest = stays->next;
    stays->next = c->first[party];
    if (!c->first[party]) c->last[party] = stays;
    c->first[party] = stays;
    c->kept_bytes += cost(stays);
  }
}

bool spx_core_idle(const spx_core *c)
{
  if (c->vault && (c->ready || c->logged)) return false;
  for (uint32_t p = 0; p < c->parties; p++)
    if (c->first[p] || owes(c, p)) return false;
  return true;
}
