/* replay_core.c - see replay_core.h: what is kept, what is accepted, the vault. */
#include "replay_core.h"
#include "replay_inside.h"
#include <stdlib.h>
#include <string.h>

enum { DONE_EVERY = 16 };
typedef struct {  /* of a vault: in which call a message came; its bytes follow */
  uint64_t bytes; /* with this, a multiple of 8 */
  uint64_t call;
  spx_frame_head head;
} record;

uint64_t spx_core_in_round8(uint64_t n) { return (n + 7) & ~7ull; }

/* ---- streams ---------------------------------------------------------------------------------------------------- */

bool spx_core_in_leaves(uint32_t stream) { return (stream & SPX_LEAVES) != 0; }
static spx_seen *seen_in(const spx_core *c, uint32_t stream)
{
  return &c->seen[spx_core_in_leaves(stream)][stream & ~SPX_LEAVES];
}

static uint32_t place(const spx_seen *s, uint64_t n, uint32_t sub)
{
  uint32_t i = s->count;
  while (i > 0 && (s->list[i - 1].n > n || (s->list[i - 1].n == n && s->list[i - 1].sub >= sub))) i--;
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

/* What has come of a stream's life; NULL: no memory. */
static spx_seen *seen_of(spx_core *c, uint32_t stream, uint32_t life)
{
  spx_seen *first = seen_in(c, stream), *s = first;
  if (!first->life) first->life = life;
  while (s && s->life != life) s = s->others;
  if (s) return s;
  s = malloc(sizeof *s);
  if (!s) return NULL;
  *s = *first; /* the newest is asked for most often */
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

static bool note_seen(spx_core *c, const spx_frame_head *h)
{
  spx_seen *s = seen_of(c, h->stream, h->life);
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

/* ---- the vault -------------------------------------------------------------------------------------------------- */

void spx_vault_format(spx_vault *v, uint64_t area_bytes, uint32_t life)
{
  memset(v, 0, sizeof *v);
  v->area_bytes = area_bytes;
  v->life = life;
  __atomic_store_n(&v->magic, SPX_VAULT_MAGIC, __ATOMIC_RELEASE);
}

uint32_t spx_core_in_area_now(const spx_vault *v) { return v->commits ? 1 + (uint32_t)(v->commits % 2) : 0; }
static uint64_t area_at(const spx_vault *v, uint32_t area) { return SPX_VAULT_HEAD + area * v->area_bytes; }
uint8_t *spx_core_in_bytes_at(const spx_vault *v, uint32_t area, uint64_t at)
{
  return (uint8_t *)(uintptr_t)v + area_at(v, area) + at;
}

bool spx_core_in_has_room(spx_core *c, uint32_t area, uint64_t at, uint64_t n)
{
  return at + n <= c->vault->area_bytes && c->io.room(c->io.arg, area_at(c->vault, area) + at, n);
}

/* Appends to what came since the last commit. It counts from the last store on. */
void spx_core_in_note(spx_core *c, const spx_frame_head *head, const uint8_t *data)
{
  if (!c->vault) return;
  record r = {.bytes = sizeof r + spx_core_in_round8(head->bytes), .call = c->call, .head = *head};
  uint32_t area = spx_core_in_area_now(c->vault);
  uint64_t at = c->vault->area[area].end;
  if (!spx_core_in_has_room(c, area, at, r.bytes))
    c->io.failed(c->io.arg, "what was received since the last MPISP_Commit is more than SPX_REPLAY_MAX allows, or than "
                            "there is memory for");
  uint8_t *to = spx_core_in_bytes_at(c->vault, area, at);
  memcpy(to, &r, sizeof r);
  if (head->bytes) memcpy(to + sizeof r, data, head->bytes);
  __atomic_store_n(&c->vault->area[area].end, at + r.bytes, __ATOMIC_RELEASE);
  c->version++;
}

void spx_core_note(spx_core *c, const void *data, uint64_t bytes)
{
  spx_frame_head h = {.stream = NOTE, .bytes = bytes};
  if (c->vault && !c->vault->commits) spx_core_in_note(c, &h, data);
}

static spx_came *new_came(const spx_frame_head *head, const uint8_t *data, bool copy)
{
  spx_came *m = malloc(sizeof *m + (copy ? head->bytes : 0));
  if (!m) return NULL;
  m->next = NULL;
  m->call = 0;
  m->head = *head;
  m->data = data;
  if (copy) {
    m->data = (uint8_t *)(m + 1);
    if (head->bytes) memcpy(m + 1, data, head->bytes);
  }
  return m;
}

/* Reads what came since an image: it will be delivered again. seen: it counts as accepted. */
bool spx_core_in_read_area(spx_core *c, uint32_t area, bool seen)
{
  const spx_vault *v = c->vault;
  uint64_t at = v->area[area].image;
  while (at < v->area[area].end) {
    record r;
    memcpy(&r, spx_core_in_bytes_at(v, area, at), sizeof r);
    at += r.bytes;
    if (r.head.stream == GIVEN) {
      if (!spx_core_in_note_given(c, r.head.n, r.head.given)) return false;
      continue;
    }
    spx_came *m = new_came(&r.head, spx_core_in_bytes_at(v, area, at - r.bytes) + sizeof r, false);
    if (!m) return false;
    m->call = (uint32_t)r.call;
    spx_came ***last = r.head.stream == NOTE ? &c->notes_last : &c->logged_last;
    **last = m;
    *last = &m->next;
    if (seen && r.head.stream != NOTE && !note_seen(c, &r.head)) return false;
  }
  return true;
}

/* The last call in which something was sent. */
static uint32_t reached_in(const spx_core *c, uint32_t area) { return (uint32_t)c->vault->area[area].reached; }

bool spx_core_in_again(const spx_core *c)
{
  return c->logged || (c->vault && c->call < reached_in(c, spx_core_in_area_now(c->vault)));
}

bool spx_core_in_prelude_over(const spx_core *c) { return !c->logged && c->call >= reached_in(c, 0); }

/* ---- beginning and end -------------------------------------------------------------------------------------------- */

bool spx_core_begin(spx_core *c, const spx_core_io *io, uint32_t parties, uint32_t me, uint32_t life, bool relay,
                    spx_vault *vault)
{
  *c = (spx_core){.io = *io, .parties = parties, .me = me, .lost = c->lost, .lost_bytes = c->lost_bytes};
  c->relay = relay, c->vault = vault, c->version = 1;
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
  return spx_core_in_read_area(c, 0, !vault->commits);
}

/* An array of the size that it is to have, of n elements at present; NULL: no memory. */
static void *grown(void *from, uint32_t n, uint32_t more, size_t each)
{
  uint8_t *to = calloc(more, each);
  if (to && n) memcpy(to, from, n * each);
  return to;
}

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
  for (uint32_t p = 0; p < c->parties && c->first; p++) {
    for (spx_kept *m = c->first[p], *next; m; m = next) {
      next = m->next;
      if (!m->busy) free(m);
    }
    free(c->acks[p].list);
    free(c->acks[p].claims);
  }
  for (uint32_t s = 0; s < 2 * c->parties; s++)
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
  *c = (spx_core){.lost = c->lost, .lost_bytes = c->lost_bytes}; /* MPI_T gives them behind MPI_Finalize, too */
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

bool spx_core_in_is_of(const spx_frame_head *h, const spx_frame_ack *a)
{
  return h->n == a->n && h->stream == a->stream && h->sub == a->sub && h->life == a->life;
}

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
bool spx_core_in_owe_claim(spx_core *c, uint32_t party, const spx_frame_claim *claim)
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

/* The process that had the rank has made other calls, up to the last one in which it has sent something. */
static bool has_strayed(const spx_core *c)
{
  if (!c->vault || c->mode == SPX_CORE_LIVE) return false;
  uint32_t area = c->mode == SPX_CORE_PRELUDE ? 0 : spx_core_in_area_now(c->vault);
  return c->call == reached_in(c, area) && c->calls != c->vault->area[area].reached >> SPX_CALLS;
}

void spx_core_enter(spx_core *c, uint32_t fn, bool sends)
{
  c->call++;
  c->calls = (c->calls ^ (fn + 1)) * 16777619u;
  if (has_strayed(c))
    c->io.failed(
        c->io.arg,
        c->mode == SPX_CORE_PRELUDE
            ? "this process makes other calls before its first MPISP_Commit than the one whose rank it has"
            : "this process makes other calls since the last MPISP_Commit than the one whose rank it has: what "
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

/* In the last call that is made again nothing may come before what was sent in it; it was sent by now, if that call waits. */
bool spx_core_may_accept(const spx_core *c, bool inside)
{
  if (c->mode == SPX_CORE_PRELUDE) return false;
  if (!c->vault || c->call > reached_in(c, spx_core_in_area_now(c->vault))) return c->mode == SPX_CORE_LIVE;
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

spx_passed *spx_core_in_find_passed(const spx_core *c, uint32_t token)
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
  let_go(c, p);
}

bool spx_core_accept(spx_core *c)
{
  spx_came *m = c->ready;
  if (!m || (m->head.stream & ~SPX_LEAVES) >= c->parties) return false; /* of one that is about to be known */
  const spx_seen *s = seen_of(c, m->head.stream, m->head.life);
  if (!s) return false;
  bool again_here = is_seen(s, m->head.n, m->head.sub);
  spx_passed *open = NULL;
  if (!again_here) {
    /* What cannot be delivered for want of memory was not accepted: but the vault must come first. */
    spx_core_in_note(c, &m->head, m->data);
    uint32_t number = (uint32_t)m->head.n, token = 0;
    bool ok = note_seen(c, &m->head);
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
  spx_came *m = new_came(head, data, true);
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

/* What was made of it was not accepted, and the program does not know yet: it may send it to another one, and of that one it may be the first, too. */
static void fails(spx_core *c, spx_passed *p, uint32_t to)
{
  uint32_t *went = spx_core_in_went_to(p, to);
  if (went && *went) --*went;
  p->failed = c->call + 1;
  c->failing = true;
  if (!p->over) return;
  p->over = false;
  take_out(c, p);
  join(c->passed_last, p);
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
void spx_core_in_go(spx_core *c, uint32_t to)
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

/* What comes behind something of its lane goes where that is kept. If nothing is, or no IOP has come or gone since: where it was to go. */
static uint32_t follow(spx_core *c, uint32_t lane, uint32_t chosen)
{
  uint64_t last = 0;
  uint32_t to = chosen;
  bool settled = true;
  for (uint32_t p = 0; p < c->parties && c->unsettled; p++)
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

spx_kept *spx_core_message(spx_core *c, uint32_t to, bool leaving, uint32_t lane, uint64_t ctx, int32_t tag,
                           int32_t src, uint64_t bytes, uint32_t of)
{
  spx_kept *m = malloc(sizeof *m + bytes);
  if (!m) return NULL;
  if (leaving && !c->relay) to = follow(c, lane, to);
  *m = (spx_kept){.to = to, .lane = lane, .head = {.ctx = ctx, .bytes = bytes, .tag = tag, .src = src, .from = c->me}};
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
    const spx_seen *s = seen_of(c, id->stream, id->life);
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

/* Something is sent in this call. What comes in calls after that one, and was not seen before, may come at other moments next time: so all calls that look at what has come have to be noted, and
 * a log of which others keep copies is spared those that do not. */
static void note_reached(spx_core *c)
{
  uint32_t area = spx_core_in_area_now(c->vault);
  if (reached_in(c, area) >= c->call || (c->sparing && !c->looked)) return;
  uint64_t reached = (uint64_t)c->calls << SPX_CALLS | c->call;
  __atomic_store_n(&c->vault->area[area].reached, reached, __ATOMIC_RELEASE);
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
  if (c->vault) note_reached(c);
  spx_core_in_append(c, m);
  if (m->of && m->of->done)
    spx_core_in_drop(c, m->of);
  else if (!c->claiming || !has_to_wait(c, m))
    transmit(c, m);
}

/* ---- what was accepted ------------------------------------------------------------------------------------------------ */

void spx_core_other(spx_core *c) { c->last_other = c->call; }

void spx_core_asked(spx_core *c, spx_core_needs needs)
{
  c->failing &= needs != SPX_NEEDS_ALL_BUT_FAILED;
  for (spx_passed *p = c->passed, *next; p; p = next) {
    next = p->next;
    bool open = !p->sends || p->due, unseen = p->failed && (int32_t)(c->last_other + 1 - p->failed) < 0;
    if (needs == SPX_NEEDS_UNSEEN ? open || unseen : needs == SPX_NEEDS_ALL_BUT_FAILED && (open || !p->failed))
      continue;
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
    if (!spx_core_in_is_of(&m->head, a)) continue;
    if (before)
      before->next = m->next;
    else
      c->first[party] = m->next;
    if (c->last[party] == m) c->last[party] = before;
    spx_core_in_release(c, m, true);
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
    spx_core_in_release(c, m, false);
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
  spx_core_in_claim_replaced(c, party);
}

void spx_core_reroute(spx_core *c, uint32_t party, uint32_t (*choose)(void *arg, const spx_kept *m), void *arg)
{
  c->unsettled = c->leaving;
  spx_kept *m = c->first[party], *stays = NULL;
  c->first[party] = c->last[party] = NULL;
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
    transmit(c, m);
  }
  for (spx_kept *rest = NULL; stays; stays = rest) { /* there is no other one: in the order that they had */
    rest = stays->next;
    stays->next = c->first[party];
    if (!c->first[party]) c->last[party] = stays;
    c->first[party] = stays;
    c->kept_bytes += spx_core_in_cost(stays);
  }
}

bool spx_core_idle(const spx_core *c)
{
  if (c->vault && (c->ready || c->logged)) return false;
  for (uint32_t p = 0; p < c->parties; p++)
    if (c->first[p] || owes(c, p)) return false;
  return true;
}
