/* replay_log.c - see replay_core.h: the message log. */
#include "replay_core.h"
#include "replay_inside.h"
#include <stdlib.h>
#include <string.h>

typedef struct {  /* of a message log: in which call a message came; its bytes follow */
  uint64_t bytes; /* with this, a multiple of 8 */
  uint64_t call;
  spx_frame_head head;
} record;

void spx_msglog_format(spx_msglog *v, uint64_t area_bytes, uint32_t life)
{
  memset(v, 0, sizeof *v);
  v->area_bytes = area_bytes;
  v->life = life;
  __atomic_store_n(&v->magic, SPX_MSGLOG_MAGIC, __ATOMIC_RELEASE);
}

uint32_t spx_core_in_area_now(const spx_msglog *v)
{
  return v->commits ? 1 + (uint32_t)(v->commits % 2) : 0;
}
static uint64_t area_at(const spx_msglog *v, uint32_t area)
{
  return SPX_MSGLOG_HEAD + area * v->area_bytes;
}
uint8_t *spx_core_in_bytes_at(const spx_msglog *v, uint32_t area, uint64_t at)
{
  return (uint8_t *)(uintptr_t)v + area_at(v, area) + at;
}

bool spx_core_in_has_room(spx_core *c, uint32_t area, uint64_t at, uint64_t n)
{
  return at + n <= c->msglog->area_bytes && c->io.room(c->io.arg, area_at(c->msglog, area) + at, n);
}

/* Appends to what came since the last commit. It counts from the last store on. */
void spx_core_in_note(spx_core *c, const spx_frame_head *head, const uint8_t *data)
{
  if (!c->msglog) return;
  record r = {.bytes = sizeof r + spx_core_in_round8(head->bytes), .call = c->call, .head = *head};
  uint32_t area = spx_core_in_area_now(c->msglog);
  uint64_t at = c->msglog->area[area].end;
  if (!spx_core_in_has_room(c, area, at, r.bytes))
    c->io.failed(
        c->io.arg,
        "what was received since the last MPISP_Commit is more than SPX_REPLAY_MAX allows, or than "
        "there is memory for");
  uint8_t *to = spx_core_in_bytes_at(c->msglog, area, at);
  memcpy(to, &r, sizeof r);
  if (head->bytes) memcpy(to + sizeof r, data, head->bytes);
  __atomic_store_n(&c->msglog->area[area].end, at + r.bytes, __ATOMIC_RELEASE);
  c->version++;
}

void spx_core_note(spx_core *c, const void *data, uint64_t bytes)
{
  spx_frame_head h = {.stream = NOTE, .bytes = bytes};
  if (c->msglog && !c->msglog->commits) spx_core_in_note(c, &h, data);
}

spx_came *spx_core_in_new_came(const spx_frame_head *head, const uint8_t *data, bool copy)
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
  const spx_msglog *v = c->msglog;
  uint64_t at = v->area[area].image;
  while (at < v->area[area].end) {
    record r;
    memcpy(&r, spx_core_in_bytes_at(v, area, at), sizeof r);
    at += r.bytes;
    if (r.head.stream == GIVEN) {
      if (!spx_core_in_note_given(c, r.head.n, r.head.given)) return false;
      continue;
    }
    spx_came *m = spx_core_in_new_came(
        &r.head, spx_core_in_bytes_at(v, area, at - r.bytes) + sizeof r, false);
    if (!m) return false;
    m->call = (uint32_t)r.call;
    spx_came ***last = r.head.stream == NOTE ? &c->notes_last : &c->logged_last;
    **last = m;
    *last = &m->next;
    if (seen && r.head.stream != NOTE && !spx_core_in_note_seen(c, &r.head)) return false;
  }
  return true;
}

/* The last call in which something was sent. */
uint32_t spx_core_in_reached_in(const spx_core *c, uint32_t area)
{
  return (uint32_t)c->msglog->area[area].reached;
}

bool spx_core_in_again(const spx_core *c)
{
  return c->logged ||
         (c->msglog && c->call < spx_core_in_reached_in(c, spx_core_in_area_now(c->msglog)));
}

bool spx_core_in_prelude_over(const spx_core *c)
{
  return !c->logged && c->call >= spx_core_in_reached_in(c, 0);
}
