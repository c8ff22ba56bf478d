/* copies_core.c - see copies_core.h. */
#include "copies_core.h"
#include <stdlib.h>
#include <string.h>

static uint32_t area_of(uint64_t commits) { return commits ? 1 + (uint32_t)(commits % 2) : 0; }
static uint64_t area_at(uint64_t area_bytes, uint64_t area)
{
  return SPX_MSGLOG_HEAD + area * area_bytes;
}

/* ---- the owner of the log ---- */

void spx_copying_begin(spx_copying *c, const spx_msglog *v, spx_copy_key key)
{
  *c = (spx_copying){.log = v, .key = key};
}

/* Bytes of an area that have not been sent yet. */
static uint64_t left_of(spx_copying *c, uint32_t area)
{
  const spx_msglog *v = c->log;
  if (area && c->commits[area] != v->commits) {
    c->commits[area] = v->commits;
    c->sent[area] = 0;
  }
  return v->area[area].end - c->sent[area];
}

bool spx_copying_next(spx_copying *c, uint64_t version, uint64_t most, spx_copy_piece *p,
                      const uint8_t **data)
{
  const spx_msglog *v = c->log;
  if (!v || c->version == version) return false;
  uint32_t now = area_of(v->commits), area = left_of(c, 0) ? 0 : now;
  uint64_t left = left_of(c, area), at = c->sent[area], n = left < most ? left : most;
  *p = (spx_copy_piece){.key = c->key,
                        .area = area,
                        .at = at,
                        .bytes = n,
                        .area_bytes = v->area_bytes,
                        .life = v->life,
                        .commits = v->commits};
  *data = (const uint8_t *)v + area_at(v->area_bytes, area) + at;
  c->sent[area] += n;
  if (left_of(c, 0) || left_of(c, now)) return true;
  p->version = version;
  c->version = version;
  for (uint32_t a = 0; a < SPX_MSGLOG_AREAS; a++) {
    p->of[a].image = v->area[a].image;
    p->of[a].end = v->area[a].end;
    p->of[a].reached = v->area[a].reached;
  }
  return true;
}

bool spx_copying_has(spx_copying *c, const spx_copy_key *key, uint64_t version)
{
  if (key->term != c->key.term || key->life != c->key.life || version <= c->there) return false;
  c->there = version;
  return true;
}

/* ---- the keeper of the copy ---- */

int spx_copy_order(const spx_copy_key *a, uint64_t version_a, const spx_copy_key *b,
                   uint64_t version_b)
{
  if (!version_a != !version_b) return version_a ? 1 : -1;
  if (a->term != b->term) return a->term > b->term ? 1 : -1;
  if (version_a != version_b) return version_a > version_b ? 1 : -1;
  return 0;
}

spx_log_copy *spx_copies_find(const spx_copies *s, const spx_copy_key *key)
{
  spx_log_copy *c = s->first;
  while (c && (c->key.rank != key->rank || c->key.term != key->term || c->key.life != key->life))
    c = c->next;
  return c;
}

spx_log_copy *spx_copies_best(const spx_copies *s, uint32_t rank)
{
  spx_log_copy *best = NULL;
  for (spx_log_copy *c = s->first; c; c = c->next)
    if (c->key.rank == rank && c->version &&
        (!best || spx_copy_order(&c->key, c->version, &best->key, best->version) > 0))
      best = c;
  return best;
}

uint64_t spx_copies_term(const spx_copies *s, uint32_t rank)
{
  uint64_t term = 0;
  for (const spx_log_copy *c = s->first; c; c = c->next)
    if (c->key.rank == rank && c->key.term > term) term = c->key.term;
  return term;
}

void spx_copies_release(spx_copies *s, spx_log_copy *c)
{
  spx_log_copy **at = &s->first;
  while (*at != c) at = &(*at)->next;
  *at = c->next;
  free(c);
}

static void drop(spx_copies *s, spx_log_copy *c)
{
  s->drop(s->arg, c->log, c->memory);
  spx_copies_release(s, c);
}

void spx_copies_forget(spx_copies *s, uint32_t rank, uint64_t below)
{
  for (spx_log_copy *c = s->first, *next; c; c = next) {
    next = c->next;
    if (c->key.rank == rank && c->key.term < below) drop(s, c);
  }
}

bool spx_copies_fence(spx_copies *s, uint32_t rank, uint32_t life)
{
  if (rank >= s->nlives) {
    uint32_t *lives = realloc(s->lives, (rank + 1ul) * sizeof *lives);
    if (!lives) return false;
    memset(lives + s->nlives, 0, (rank + 1ul - s->nlives) * sizeof *lives);
    s->lives = lives;
    s->nlives = rank + 1;
  }
  s->lives[rank] = life;
  return true;
}

bool spx_copies_bars(const spx_copies *s, const spx_copy_key *key)
{
  return key->rank < s->nlives && s->lives[key->rank] && s->lives[key->rank] != key->life;
}

void spx_copies_end(spx_copies *s)
{
  while (s->first) drop(s, s->first);
  free(s->lives);
  s->lives = NULL;
  s->nlives = 0;
}

static bool is_sound(const spx_copy_piece *p)
{
  if (p->area >= SPX_MSGLOG_AREAS || p->area_bytes > 1ull << 48 || p->at > p->area_bytes ||
      p->bytes > p->area_bytes - p->at)
    return false;
  for (uint32_t a = 0; a < SPX_MSGLOG_AREAS; a++)
    if (p->of[a].end > p->area_bytes || p->of[a].image > p->of[a].end) return false;
  return true;
}

static spx_log_copy *begin(spx_copies *s, const spx_copy_piece *p)
{
  spx_log_copy *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->key = p->key;
  if (!(c->log = s->make(s->arg, p->area_bytes, &c->memory))) {
    free(c);
    return NULL;
  }
  spx_msglog_format(c->log, p->area_bytes, (uint32_t)p->life);
  c->next = s->first;
  s->first = c;
  return c;
}

/* A piece after pieces that were not accepted is useless: the copy has been given away since. */
static bool follows(spx_log_copy *c, const spx_copy_piece *p)
{
  uint64_t a = p->area, now = area_of(p->commits);
  if (a != 0 && a != now) return false;
  if (a && c->of[a] != p->commits) {
    c->of[a] = p->commits;
    c->got[a] = 0;
  }
  if (p->at != c->got[a]) return false;
  if (!p->version) return true;
  uint64_t rest = p->at + p->bytes; /* with it all of both is there */
  return p->of[a].end == rest &&
         (a == 0 ? now == 0 || (c->of[now] == p->commits && c->got[now] == p->of[now].end)
                 : c->got[0] == p->of[0].end);
}

spx_copy_result spx_copies_take(spx_copies *s, const spx_copy_piece *p, const uint8_t *data,
                                spx_log_copy **of)
{
  if (!is_sound(p)) return SPX_COPY_WRONG;
  const spx_log_copy *best = spx_copies_best(s, p->key.rank);
  if (best && best->key.term > p->key.term) return SPX_COPY_LATE;
  spx_log_copy *c = spx_copies_find(s, &p->key);
  if (!c && p->at) return SPX_COPY_LATE;
  if (!c && !(c = begin(s, p))) return SPX_COPY_NO_MEMORY;
  spx_msglog *v = c->log;
  if (v->area_bytes != p->area_bytes) return SPX_COPY_WRONG;
  if (!follows(c, p)) return SPX_COPY_LATE;
  uint64_t to = area_at(p->area_bytes, p->area) + p->at;
  if (p->bytes && !s->room(s->arg, c->memory, to, p->bytes)) return SPX_COPY_NO_MEMORY;
  if (p->bytes) memcpy((uint8_t *)v + to, data, p->bytes);
  c->got[p->area] += p->bytes;
  *of = c;
  if (!p->version) return SPX_COPY_TAKEN;
  for (uint32_t a = 0; a < SPX_MSGLOG_AREAS; a++) {
    v->area[a].image = p->of[a].image;
    v->area[a].end = p->of[a].end;
    v->area[a].reached = p->of[a].reached;
  }
  v->commits = p->commits;
  bool first = c->version == 0;
  c->version = p->version;
  if (first) spx_copies_forget(s, p->key.rank, p->key.term);
  return SPX_COPY_TAKEN;
}
