/* replay_image.c - see replay_core.h: commits. */
#include <stdlib.h>
#include <string.h>
#include "replay_inside.h"

void spx_image_put(spx_image *w, const void *data, uint64_t n)
{
  if (w->failed ||
      !(w->failed = !spx_core_in_has_room(w->c, w->area, w->at, spx_core_in_round8(n)))) {
    if (w->failed) return;
    if (n) memcpy(spx_core_in_bytes_at(w->c->msglog, w->area, w->at), data, n);
    w->at += spx_core_in_round8(n);
  }
}

static void put_word(spx_image *w, uint64_t v) { spx_image_put(w, &v, sizeof v); }

bool spx_core_commit_begin(spx_core *c, spx_image *w)
{
  if (c->mode != SPX_CORE_LIVE) return false;
  *w = (spx_image){.c = c, .area = 1 + (uint32_t)((c->msglog->commits + 1) % 2)};
  for (uint32_t i = 0; i < 2 * c->participants; i++)
    for (const spx_seen *s = &c->seen[i & 1][i >> 1]; s; s = s->others) {
      put_word(w, s->life);
      put_word(w, s->low);
      put_word(w, s->count);
      spx_image_put(w, s->list, s->count * sizeof *s->list);
      put_word(w, s->others != NULL);
    }
  spx_image_put(w, c->next, c->participants * sizeof *c->next);
  put_word(w, c->leaving);
  uint64_t kept = 0;
  for (uint32_t p = 0; p < c->participants; p++)
    for (const spx_kept *m = c->first[p]; m; m = m->next) kept++;
  put_word(w, kept);
  for (uint32_t p = 0; p < c->participants; p++)
    for (const spx_kept *m = c->first[p]; m; m = m->next) {
      put_word(w, p);
      put_word(w, m->lane);
      spx_image_put(w, &m->head, sizeof m->head);
      spx_image_put(w, m->data, m->head.bytes);
    }
  return true;
}

bool spx_core_commit_end(spx_image *w)
{
  spx_core *c = w->c;
  spx_msglog *v = c->msglog;
  if (w->failed) return false;
  v->area[w->area].image = v->area[w->area].end = w->at;
  v->area[w->area].reached = 0;
  __atomic_store_n(&v->commits, v->commits + 1, __ATOMIC_RELEASE);
  c->version++;
  c->call = c->calls = 0;
  return true;
}

const void *spx_image_take(spx_image_reader *r, uint64_t n)
{
  const void *p = r->p;
  if (spx_core_in_round8(n) > (uint64_t)(r->end - r->p)) return NULL;
  r->p += spx_core_in_round8(n);
  return p;
}

static bool take_word(spx_image_reader *r, uint64_t *v)
{
  const void *p = spx_image_take(r, sizeof *v);
  if (p) memcpy(v, p, sizeof *v);
  return p != NULL;
}

static bool take_life(spx_image_reader *r, spx_seen *s)
{
  uint64_t life, count;
  if (!take_word(r, &life) || !take_word(r, &s->low) || !take_word(r, &count)) return false;
  s->life = (uint32_t)life;
  const void *list = spx_image_take(r, count * sizeof *s->list);
  free(s->list);
  s->list = malloc((count + 16) * sizeof *s->list);
  if (!list || !s->list) return false;
  memcpy(s->list, list, count * sizeof *s->list);
  s->count = (uint32_t)count;
  s->room = (uint32_t)count + 16;
  return true;
}

/* Of a process that has accepted nothing itself: s is empty. */
static bool take_seen(spx_image_reader *r, spx_seen *s)
{
  uint64_t others;
  for (; take_life(r, s) && take_word(r, &others); s = s->others) {
    if (!others) return true;
    if (!s->others && !(s->others = calloc(1, sizeof *s))) return false;
  }
  return false;
}

static bool take_kept(spx_core *c, spx_image_reader *r)
{
  uint64_t to, lane;
  spx_frame_head head;
  const void *h;
  if (!take_word(r, &to) || to >= c->participants || !take_word(r, &lane) ||
      !(h = spx_image_take(r, sizeof head)))
    return false;
  memcpy(&head, h, sizeof head);
  const void *data = spx_image_take(r, head.bytes);
  spx_kept *m = data ? malloc(sizeof *m + head.bytes) : NULL;
  if (!m) return false;
  *m = (spx_kept){.to = (uint32_t)to, .lane = (uint32_t)lane, .out = true, .head = head};
  memcpy(m->data, data, head.bytes);
  spx_core_in_append(c, m);
  return true;
}

bool spx_core_restore_begin(spx_core *c, spx_image_reader *r)
{
  const spx_msglog *v = c->msglog;
  uint32_t area = spx_core_in_area_now(v);
  if (c->mode != SPX_CORE_PRELUDE || !spx_core_in_prelude_over(c)) return false;
  r->p = spx_core_in_bytes_at(v, area, 0);
  r->end = r->p + v->area[area].image;
  uint64_t kept = 0;
  spx_core_in_free_noted(c);
  for (uint32_t s = 0; s < 2 * c->participants; s++)
    if (!take_seen(r, &c->seen[s & 1][s >> 1])) return false;
  const void *next = spx_image_take(r, c->participants * sizeof *c->next);
  if (!next || !take_word(r, &c->leaving) || !take_word(r, &kept)) return false;
  memcpy(c->next, next, c->participants * sizeof *c->next);
  while (kept-- > 0)
    if (!take_kept(c, r)) return false;
  c->call = c->calls = 0;
  return spx_core_in_read_area(c, area, true);
}

void spx_core_restore_end(spx_core *c)
{
  c->mode = spx_core_in_again(c) ? SPX_CORE_REPLAY : SPX_CORE_LIVE;
  for (uint32_t p = 0; p < c->participants; p++) spx_core_replaced(c, p);
  for (spx_asked_early *e; (e = c->early);) {
    c->early = e->next;
    spx_core_in_answer(c, e->from, e->claim);
    free(e);
  }
}
