/* replay_core.c - see replay_core.h: streams, what is accepted, the beginning and the end. */
#include "replay_core.h"
#include "replay_inside.h"
#include <stdlib.h>
#include <string.h>

uint64_t spx_core_in_round8(uint64_t n) { return (n + 7) & ~7ull; }

/* ---- streams ---- */

bool spx_core_in_leaves(uint32_t stream) { return (stream & SPX_LEAVES) != 0; }
static spx_seen *seen_in(const spx_core *c, uint32_t stream)
{
  return &c->seen[spx_core_in_leaves(stream)][stream & ~SPX_LEAVES];
}

static uint32_t place(const spx_seen *s, uint64_t n, uint32_t sub)
{
  uint32_t i = s->count;
  while (i > 0 && (s->list[i - 1].n > n || (s->list[i - 1].n == n && s->list[i - 1].sub >= sub)))
    i--;
  return i;
}

static bool is_seen(const spx_seen *s, uint64_t n, uint32_t sub)
{
  if (n <= s->low) return true;
  uint32_t i = place(s, n, sub);
  return i < s->count && s->list[i].n == n && s->list[i].sub == sub;
}

static void forget_to(spx_seen *s, uint64_t low)
{
  if (low <= s->low) return;
  s->low = low;
  uint32_t i = 0;
  while (i < s->count && s->list[i].n <= low) i++;
  memmove(s->list, s->list + i, (s->count - i) * sizeof *s->list);
  s->count -= i;
}

/* The numbers that have arrived of a stream's life; NULL: no memory. */
spx_seen *spx_core_in_seen_of(spx_core *c, uint32_t stream, uint32_t life)
{
  spx_seen *first = seen_in(c, stream), *s = first;
  if (!first->life) first->life = life;
  while (s && s->life != life) s = s->others;
  if (s) return s;
  s = malloc(sizeof *s);
  if (!s) return NULL;
  *s = *first; /* the newest is used most often */
  *first = (spx_seen){.others = s, .life = life};
  return first;
}

static void free_seen(spx_seen *s)
{
  for (spx_seen *o = s->others, *next; o; o = next) {
    next = o->others;
    free(o->list);
    free(o);
  }
  free(s->list);
}

bool spx_core_in_note_seen(spx_core *c, const spx_frame_head *h)
{
  spx_seen *s = spx_core_in_seen_of(c, h->stream, h->life);
  if (!s) return false;
  if (!spx_core_in_leaves(h->stream)) {
    if (h->n != s->low + 1) c->io.failed(c->io.arg, "a message is missing between two ranks");
    s->low = h->n;
    return true;
  }
  if (s->count == s->room) {
    uint32_t room = s->room ? 2 * s->room : 16;
    struct spx_number *list = realloc(s->list, room * sizeof *list);
    if (!list) return false;
    s->list = list;
    s->room = room;
  }
  uint32_t i = place(s, h->n, h->sub);
  memmove(s->list + i + 1, s->list + i, (s->count - i) * sizeof *s->list);
  s->list[i] = (struct spx_number){h->n, h->sub};
  s->count++;
  if (h->done < h->n) forget_to(s, h->done);
  return true;
}

/* ---- beginning and end ---- */

bool spx_core_begin(spx_core *c, const spx_core_io *io, uint32_t participants, uint32_t me,
                    uint32_t life, bool relay, spx_msglog *msglog)
{
  *c = (spx_core){.io = *io,
                  .participants = participants,
                  .me = me,
                  .lost = c->lost,
                  .lost_bytes = c->lost_bytes};
  c->relay = relay, c->msglog = msglog, c->version = 1;
  c->life = msglog ? (uint32_t)msglog->life : life;
  c->passed_last = &c->passed;
  c->seen[0] = calloc(participants, sizeof *c->seen[0]);
  c->seen[1] = calloc(participants, sizeof *c->seen[1]);
  c->next = calloc(participants, sizeof *c->next);
  c->first = calloc(participants, sizeof *c->first);
  c->last = calloc(participants, sizeof *c->last);
  c->acks = calloc(participants, sizeof *c->acks);
  c->ready_last = &c->ready;
  c->logged_last = &c->logged;
  c->notes_last = &c->notes;
  if (!c->seen[0] || !c->seen[1] || !c->next || !c->first || !c->last || !c->acks) return false;
  if (!msglog) return true;
  bool begun = msglog->commits || msglog->area[0].end || msglog->area[0].reached;
  if (begun) c->mode = msglog->commits ? SPX_CORE_PRELUDE : SPX_CORE_REPLAY;
  return spx_core_in_read_area(c, 0, !msglog->commits);
}

/* An array of the size that it is to have, of n elements at present; NULL: no memory. */
static void *grown(void *from, uint32_t n, uint32_t more, size_t each)
{
  uint8_t *to = calloc(more, each);
  if (to && n) memcpy(to, from, n * each);
  return to;
}

void spx_core_unsettle(spx_core *c) { c->unsettled = c->leaving; }

bool spx_core_grow(spx_core *c, uint32_t participants)
{
  uint32_t n = c->participants;
  if (participants <= n) return true;
  spx_seen *seen = grown(c->seen[0], n, participants, sizeof *seen),
           *left = grown(c->seen[1], n, participants, sizeof *left);
  uint64_t *next = grown(c->next, n, participants, sizeof *next);
  spx_kept **first = (spx_kept **)grown((void *)c->first, n, participants, sizeof *first);
  spx_kept **last = (spx_kept **)grown((void *)c->last, n, participants, sizeof *last);
  void *acks = grown(c->acks, n, participants, sizeof *c->acks);
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
  c->participants = participants;
  spx_core_unsettle(c);
  for (uint32_t p = 0; p < n && c->claiming; p++) spx_core_in_claim_unknown(c, p);
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

void spx_core_in_free_noted(spx_core *c)
{
  for (spx_noted *n; (n = c->noted);) {
    c->noted = n->next;
    free(n);
  }
}

void spx_core_end(spx_core *c)
{
  for (uint32_t p = 0; p < c->participants && c->first; p++) {
    for (spx_kept *m = c->first[p], *next; m; m = next) {
      next = m->next;
      if (!m->busy) free(m);
    }
    free(c->acks[p].list);
    free(c->acks[p].claims);
  }
  for (uint32_t s = 0; s < 2 * c->participants; s++)
    if (c->seen[s & 1]) free_seen(&c->seen[s & 1][s >> 1]);
  free_list(c->ready);
  free_list(c->logged);
  free_list(c->notes);
  free_passed(c->passed);
  free_passed(c->over);
  spx_core_in_free_noted(c);
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
  *c = (spx_core){.lost = c->lost,
                  .lost_bytes = c->lost_bytes}; /* MPI_T gives them behind MPI_Finalize, too */
}

/* ---- accepting ---- */

static bool owes(const spx_core *c, uint32_t participant)
{
  return c->acks[participant].count || c->acks[participant].nclaims;
}

static void acknowledge(spx_core *c, uint32_t participant, spx_frame_ack id)
{
  if (c->acks[participant].count == c->acks[participant].room) {
    uint32_t room = c->acks[participant].room ? 2 * c->acks[participant].room : 16;
    spx_frame_ack *list = realloc(c->acks[participant].list, room * sizeof *list);
    if (!list) return; /* the message will arrive again, or is kept in vain */
    c->acks[participant].list = list;
    c->acks[participant].room = room;
  }
  c->owed += !owes(c, participant);
  c->acks[participant].list[c->acks[participant].count++] = id;
}

static spx_frame_ack id_of(const spx_frame_head *h)
{
  return (spx_frame_ack){h->n, h->stream, h->sub, h->life, 0};
}

bool spx_core_in_is_of(const spx_frame_head *h, const spx_frame_ack *a)
{
  return h->n == a->n && h->stream == a->stream && h->sub == a->sub && h->life == a->life;
}

void spx_core_tell(spx_core *c)
{
  for (uint32_t p = 0; p < c->participants && c->owed; p++)
    if (owes(c, p)) {
      c->owed--;
      uint32_t n = c->acks[p].count, claims = c->acks[p].nclaims;
      c->acks[p].count = c->acks[p].nclaims = 0;
      if (n) c->io.acknowledge(c->io.arg, p, c->acks[p].list, n);
      if (claims) c->io.claim(c->io.arg, p, c->acks[p].claims, claims);
    }
}

/* Queues a claim, or an answer, to be sent. false: no memory. */
bool spx_core_in_owe_claim(spx_core *c, uint32_t participant, const spx_frame_claim *claim)
{
  if (c->acks[participant].nclaims == c->acks[participant].claims_room) {
    uint32_t room = c->acks[participant].claims_room ? 2 * c->acks[participant].claims_room : 16;
    spx_frame_claim *list = realloc(c->acks[participant].claims, room * sizeof *list);
    if (!list) return false;
    c->acks[participant].claims = list;
    c->acks[participant].claims_room = room;
  }
  c->owed += !owes(c, participant);
  c->acks[participant].claims[c->acks[participant].nclaims++] = *claim;
  return true;
}

/* The process that had the rank has made other calls, up to the last one in which it has sent
 * something. */
static bool has_strayed(const spx_core *c)
{
  if (!c->msglog || c->mode == SPX_CORE_LIVE) return false;
  uint32_t area = c->mode == SPX_CORE_PRELUDE ? 0 : spx_core_in_area_now(c->msglog);
  return c->call == spx_core_in_reached_in(c, area) &&
         c->calls != c->msglog->area[area].reached >> SPX_CALLS;
}

void spx_core_enter(spx_core *c, uint32_t fn, bool sends)
{
  c->call++;
  c->calls = (c->calls ^ (fn + 1)) * 16777619u;
  if (has_strayed(c))
    c->io.failed(
        c->io.arg,
        c->mode == SPX_CORE_PRELUDE
            ? "this process makes other calls before its first MPISP_Commit than the one whose "
              "rank it has"
            : "this process makes other calls since the last MPISP_Commit than the one whose rank "
              "it has: what "
              "is registered must tell where it was, and what they receive decide what they do");
  c->looked |= !sends;
  while (c->logged && c->logged->call <= c->call) {
    spx_came *m = c->logged;
    if (!c->io.deliver(c->io.arg, &m->head, (uint32_t)m->head.n, 0, m->data))
      c->io.failed(c->io.arg, "no memory for a message that is received again");
    c->logged = m->next;
    if (!c->logged) c->logged_last = &c->logged;
    free(m);
  }
  if (c->mode == SPX_CORE_REPLAY && !spx_core_in_again(c)) c->mode = SPX_CORE_LIVE;
}

/* In the last call that is made again nothing may come before what was sent in it; it was sent by
 * now, if that call waits. */
bool spx_core_may_accept(const spx_core *c, bool inside)
{
  if (c->mode == SPX_CORE_PRELUDE) return false;
  if (!c->msglog || c->call > spx_core_in_reached_in(c, spx_core_in_area_now(c->msglog)))
    return c->mode == SPX_CORE_LIVE;
  return inside && c->mode == SPX_CORE_LIVE;
}

/* ---- of an IOP: what it has received, until those have it that it goes to ---- */

void spx_core_in_join(spx_passed **at, spx_passed *p)
{
  p->at = at;
  p->next = *at;
  if (p->next) p->next->at = &p->next;
  *at = p;
}

void spx_core_in_take_out(spx_core *c, spx_passed *p)
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
  spx_core_in_join(c->passed_last, p);
  c->passed_last = &p->next;
  return p;
}

spx_passed *spx_core_in_find_passed(const spx_core *c, uint32_t token)
{
  spx_passed *p = token ? c->by_token[token % SPX_TOKENS] : NULL;
  while (p && p->token != token) p = p->chain;
  return p;
}

/* Its sender need not keep it any more, if that is so. */
void spx_core_in_let_go(spx_core *c, spx_passed *p)
{
  if (!p->over || !p->sends || p->left || p->due) return;
  c->claiming -= p->claims != 0;
  acknowledge(c, p->from, p->id);
  spx_passed **at = &c->by_token[p->token % SPX_TOKENS];
  while (*at != p) at = &(*at)->chain;
  *at = p->chain;
  spx_core_in_take_out(c, p);
  free_one(p);
}

/* How many of what was made of it have gone to a participant; NULL: no memory. */
uint32_t *spx_core_in_went_to(spx_passed *p, uint32_t to)
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
      if (spx_core_in_is_of(h, &p->id)) return p;
  return NULL;
}

void spx_core_received(spx_core *c, uint32_t token, bool sent)
{
  spx_passed *p = spx_core_in_find_passed(c, token);
  if (!p || (c->relay && sent)) return; /* an IOP accepts when those have it that it goes to */
  p->over = true;
  p->due = false;
  if (!p->sends) p->sends = 1;
  spx_core_in_let_go(c, p);
}

bool spx_core_accept(spx_core *c)
{
  spx_came *m = c->ready;
  /* of one that is about to be known */
  if (!m || (m->head.stream & ~SPX_LEAVES) >= c->participants) return false;
  const spx_seen *s = spx_core_in_seen_of(c, m->head.stream, m->head.life);
  if (!s) return false;
  bool again_here = is_seen(s, m->head.n, m->head.sub);
  spx_passed *open = NULL;
  if (!again_here) {
    /* A message that cannot be delivered for want of memory was not accepted: but the message log
     * must come first. */
    spx_core_in_note(c, &m->head, m->data);
    uint32_t number = (uint32_t)m->head.n, token = 0;
    bool ok = spx_core_in_note_seen(c, &m->head);
    if (ok && (c->relay || m->head.announced)) {
      const spx_passed *p = pass(c, &m->head);
      ok = p != NULL;
      if (p) token = p->token;
      if (c->relay) number = token;
    }
    if (!ok || !c->io.deliver(c->io.arg, &m->head, number, token, m->data))
      c->io.failed(c->io.arg, "no memory for a message");
  } else if ((open = find_open(c, &m->head)) && !c->relay && m->head.announced &&
             m->head.turn >= open->turn) {
    open->from = m->head.from;
    open->turn = m->head.turn;
    c->io.again(c->io.arg, &m->head, open->token, m->data);
    open = find_open(c, &m->head); /* it may have been received by now */
  }
  if (open && c->relay && !open->sends && !open->claims) open->given = m->head.given;
  /* One that arrives again and was done with: its sender has not learnt that. */
  if (again_here ? !open : !c->relay && !m->head.announced)
    acknowledge(c, m->head.from, id_of(&m->head));
  c->ready = m->next;
  if (!c->ready) c->ready_last = &c->ready;
  c->waiting--;
  c->waiting_bytes -= m->head.bytes;
  free(m);
  return true;
}

bool spx_core_arrived(spx_core *c, const spx_frame_head *head, const uint8_t *data)
{
  if (head->from >= c->participants) return true; /* of no participant that is known here */
  spx_came *m = spx_core_in_new_came(head, data, true);
  if (!m) return false;
  *c->ready_last = m;
  c->ready_last = &m->next;
  c->waiting++;
  c->waiting_bytes += head->bytes;
  return true;
}

/* ---- what was accepted ---- */

void spx_core_other(spx_core *c) { c->last_other = c->call; }

void spx_core_asked(spx_core *c, spx_core_needs needs)
{
  c->failing &= needs != SPX_NEEDS_ALL_BUT_FAILED;
  for (spx_passed *p = c->passed, *next; p; p = next) {
    next = p->next;
    bool open = !p->sends || p->due,
         unseen = p->failed && (int32_t)(c->last_other + 1 - p->failed) < 0;
    if (needs == SPX_NEEDS_UNSEEN ? open || unseen
                                  : needs == SPX_NEEDS_ALL_BUT_FAILED && (open || !p->failed))
      continue;
    p->over = true;
    p->due = false;
    p->failed = 0;
    if (!p->sends) p->sends = 1;
    spx_core_in_take_out(c, p);
    spx_core_in_join(&c->over, p);
    spx_core_in_let_go(c, p);
  }
}

static void accepted(spx_core *c, uint32_t participant, const spx_frame_ack *a)
{
  for (spx_kept *m = c->first[participant], *before = NULL; m; before = m, m = m->next) {
    if (!spx_core_in_is_of(&m->head, a)) continue;
    if (before)
      before->next = m->next;
    else
      c->first[participant] = m->next;
    if (c->last[participant] == m) c->last[participant] = before;
    spx_core_in_release(c, m, true);
    return;
  }
}

void spx_core_acked(spx_core *c, uint32_t from, const spx_frame_ack *acks, uint32_t n)
{
  if (from >= c->participants) return;
  for (uint32_t i = 0; i < n; i++) accepted(c, from, &acks[i]);
}

void spx_core_left(spx_core *c, uint32_t participant)
{
  spx_kept *m = c->first[participant];
  c->first[participant] = c->last[participant] = NULL;
  for (spx_kept *next; m; m = next) {
    next = m->next;
    spx_core_in_release(c, m, false);
  }
}

int spx_core_excuse(spx_core *c, uint32_t participant, bool (*may)(const void *waits))
{
  int n = 0;
  /* from the start after each: the notified caller may have changed the list */
  for (bool more = true; more;) {
    more = false;
    for (spx_kept *m = c->first[participant]; m && !more; m = m->next) {
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

void spx_core_replaced(spx_core *c, uint32_t participant)
{
  c->unsettled = c->leaving;
  for (spx_kept *m = c->first[participant]; m; m = m->next)
    if (m->out) spx_core_in_transmit(c, m);
  spx_core_in_claim_replaced(c, participant);
}

void spx_core_reroute(spx_core *c, uint32_t participant,
                      uint32_t (*choose)(void *arg, const spx_kept *m), void *arg)
{
  c->unsettled = c->leaving;
  spx_kept *m = c->first[participant], *stays = NULL;
  c->first[participant] = c->last[participant] = NULL;
  for (spx_kept *next; m; m = next) {
    next = m->next;
    c->kept_bytes -= spx_core_in_cost(m);
    uint32_t to = choose(arg, m);
    if (to == UINT32_MAX) {
      m->next = stays;
      stays = m;
      continue;
    }
    m->to = to;
    spx_core_in_append(c, m);
    spx_core_in_transmit(c, m);
  }
  /* there is no other one: in the order that they had */
  for (spx_kept *rest = NULL; stays; stays = rest) {
    rest = stays->next;
    stays->next = c->first[participant];
    if (!c->first[participant]) c->last[participant] = stays;
    c->first[participant] = stays;
    c->kept_bytes += spx_core_in_cost(stays);
  }
}

bool spx_core_idle(const spx_core *c)
{
  if (c->msglog && (c->ready || c->logged)) return false;
  for (uint32_t p = 0; p < c->participants; p++)
    if (c->first[p] || owes(c, p)) return false;
  return true;
}
