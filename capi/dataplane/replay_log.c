/* replay_log.c - see replay_parts.h: which messages have come, what is noted of those that are kept, and the message log with both. */
#include "replay_parts.h"
#include <stdlib.h>
#include <string.h>

typedef struct {  /* of a message log: in which call a message came; its bytes follow */
  uint64_t bytes; /* with this, a multiple of 8 */
  uint64_t call;
  spx_frame_head head;
} record;

/* ---- streams ---------------------------------------------------------------------------------------------------- */

static uint32_t place(const spx_seen *s, uint64_t n, uint32_t sub)
{
  uint32_t i = s->count;
  while (i > 0 && (s->list[i - 1].n > n || (s->list[i - 1].n == n && s->list[i - 1].sub >= sub))) i--;
  return i;
}

bool spx_core_is_seen(const spx_seen *s, uint64_t n, uint32_t sub)
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
spx_seen *spx_core_seen_of(spx_core *c, uint32_t stream, uint32_t life)
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

void spx_core_free_seen(spx_seen *s)
{
  for (spx_seen *o = s->others, *next; o; o = next) {
    next = o->others;
    free(o->list);
    free(o);
  }
  free(s->list);
}

bool spx_core_note_seen(spx_core *c, const spx_frame_head *h)
{
  spx_seen *s = spx_core_seen_of(c, h->stream, h->life);
  if (!s) return false;
  if (!leaves(h->stream)) {
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

/* ---- the message log -------------------------------------------------------------------------------------------- */

void spx_vault_format(spx_vault *v, uint64_t area_bytes, uint32_t life)
{
  memset(v, 0, sizeof *v);
  v->area_bytes = area_bytes;
  v->life = life;
  __atomic_store_n(&v->magic, SPX_VAULT_MAGIC, __ATOMIC_RELEASE);
}

uint32_t spx_core_area_now(const spx_vault *v) { return v->commits ? 1 + (uint32_t)(v->commits % 2) : 0; }
static uint64_t area_at(const spx_vault *v, uint32_t area) { return SPX_VAULT_HEAD + area * v->area_bytes; }
uint8_t *spx_core_bytes_at(const spx_vault *v, uint32_t area, uint64_t at)
{
  return (uint8_t *)(uintptr_t)v + area_at(v, area) + at;
}

bool spx_core_has_room(spx_core *c, uint32_t area, uint64_t at, uint64_t n)
{
  return at + n <= c->vault->area_bytes && c->io.room(c->io.arg, area_at(c->vault, area) + at, n);
}

/* Appends to what came since the last commit. It counts from the last store on. */
void spx_core_log(spx_core *c, const spx_frame_head *head, const uint8_t *data)
{
  if (!c->vault) return;
  record r = {.bytes = sizeof r + round8(head->bytes), .call = c->call, .head = *head};
  uint32_t area = spx_core_area_now(c->vault);
  uint64_t at = c->vault->area[area].end;
  if (!spx_core_has_room(c, area, at, r.bytes))
    c->io.failed(c->io.arg, "what was received since the last MPISP_Commit is more than SPX_REPLAY_MAX allows, or than "
                            "there is memory for");
  uint8_t *to = spx_core_bytes_at(c->vault, area, at);
  memcpy(to, &r, sizeof r);
  if (head->bytes) memcpy(to + sizeof r, data, head->bytes);
  __atomic_store_n(&c->vault->area[area].end, at + r.bytes, __ATOMIC_RELEASE);
  c->version++;
}

void spx_core_note(spx_core *c, const void *data, uint64_t bytes)
{
  spx_frame_head h = {.stream = NOTE, .bytes = bytes};
  if (c->vault && !c->vault->commits) spx_core_log(c, &h, data);
}

spx_came *spx_core_new_came(const spx_frame_head *head, const uint8_t *data, bool copy)
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
bool spx_core_read_area(spx_core *c, uint32_t area, bool seen)
{
  const spx_vault *v = c->vault;
  uint64_t at = v->area[area].image;
  while (at < v->area[area].end) {
    record r;
    memcpy(&r, spx_core_bytes_at(v, area, at), sizeof r);
    at += r.bytes;
    if (r.head.stream == GIVEN) {
      if (!spx_core_note_given(c, r.head.n, r.head.given)) return false;
      continue;
    }
    spx_came *m = spx_core_new_came(&r.head, spx_core_bytes_at(v, area, at - r.bytes) + sizeof r, false);
    if (!m) return false;
    m->call = (uint32_t)r.call;
    spx_came ***last = r.head.stream == NOTE ? &c->notes_last : &c->logged_last;
    **last = m;
    *last = &m->next;
    if (seen && r.head.stream != NOTE && !spx_core_note_seen(c, &r.head)) return false;
  }
  return true;
}

bool spx_core_again(const spx_core *c)
{
  return c->logged || (c->vault && c->call < c->vault->area[spx_core_area_now(c->vault)].reached);
}

/* ---- to whom messages are given ------------------------------------------------------------------------------------- */

spx_kept *spx_core_find_kept(const spx_core *c, uint32_t first, const spx_frame_ack *id)
{
  for (uint32_t i = 0; i <= c->parties; i++) {
    uint32_t p = i ? i - 1 : first; /* where it is mostly */
    for (spx_kept *m = c->first[p]; m; m = m->next)
      if (leaves(m->head.stream) && is_of(&m->head, id)) return m;
  }
  return NULL;
}

/* Message n is given so, and about to be sent again, or kept. false: no memory. */
bool spx_core_note_given(spx_core *c, uint64_t n, uint32_t given)
{
  spx_frame_ack id = {.n = n, .stream = c->me | SPX_LEAVES, .life = c->life};
  spx_kept *m = spx_core_find_kept(c, c->me, &id);
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

uint32_t spx_core_noted(const spx_core *c, uint64_t n)
{
  const spx_noted *o = c->noted;
  while (o && o->n != n) o = o->next;
  return o ? o->given : 0;
}

uint32_t spx_core_take_noted(spx_core *c, uint64_t n)
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

void spx_core_free_noted(spx_core *c)
{
  for (spx_noted *n; (n = c->noted);) {
    c->noted = n->next;
    free(n);
  }
}
