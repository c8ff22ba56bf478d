/* stat.c - where the counters of this process are, which communicators count, and the queue of
 * events for tools. MPI-5.0, 16.3. */
#include "stat.h"
#include <time.h>
#include "dp.h"

#define QUEUE 1024

static spx_counters own;
spx_counters *spx_counted = &own;
uint32_t spx_events_wanted;
void (*spx_events_due)(void);
const spx_tracer *spx_tracer_now;
static spx_event queue[QUEUE];
static uint32_t first, count;
static uint64_t lost[SPX_EVENTS];

/* ---- where they are ---- */

void spx_stat_place(spx_counters *at)
{
  spx_lock();
  if (at != spx_counted) *at = *spx_counted;
  spx_counted = at;
  spx_unlock();
}

void spx_stat_keep(void) { spx_stat_place(&own); }

/* ---- communicators ---- */

static spx_comm *counted; /* all communicators, with a handle or only in use */

void spx_stat_comm(spx_comm *c)
{
  spx_lock();
  c->counted_next = counted;
  c->counted_prev = &counted;
  if (counted) counted->counted_prev = &c->counted_next;
  counted = c;
  spx_unlock();
}

spx_comm *spx_lite_dup_with_context(uint64_t ctx)
{
  spx_lock();
  spx_comm *c = counted;
  while (c && !(c->ctx == ctx && c->flags & SPX_C_LITE_DUP && c->o.handle)) c = c->counted_next;
  spx_unlock();
  return c;
}

uint32_t spx_comms_of(uint32_t *handles, uint32_t max)
{
  uint32_t n = 0;
  spx_lock();
  for (const spx_comm *c = counted; c; c = c->counted_next) {
    if (!c->parent || !c->o.handle) continue;
    if (n < max) handles[n] = c->o.handle;
    n++;
  }
  spx_unlock();
  return n;
}

spx_comm *spx_mark_revoked(const spx_errh *handler)
{
  spx_lock();
  spx_comm *c = counted;
  while (c && !((handler ? c->errh == handler : c->parent != 0) && c->o.handle &&
                !atomic_load(&c->revoked)))
    c = c->counted_next;
  if (c) {
    atomic_store(&c->revoked, 1);
    spx_ref(&c->o);
  }
  spx_unlock();
  return c;
}

void spx_stat_gone(spx_comm *c)
{
  spx_lock();
  if (c->counted_prev) {
    *c->counted_prev = c->counted_next;
    if (c->counted_next) c->counted_next->counted_prev = c->counted_prev;
  }
  spx_unlock();
}

/* ---- events ---- */

int64_t spx_event_clock(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void spx_event_add(spx_event_kind kind, int64_t a, int64_t b, int64_t c, int64_t d)
{
  if (count == QUEUE) {
    lost[kind]++;
    return;
  }
  queue[(first + count++) % QUEUE] = (spx_event){kind, spx_event_clock(), {a, b, c, d}};
  spx_due |= SPX_DUE_EVENTS;
}

bool spx_event_take(spx_event *e)
{
  spx_lock();
  bool any = count > 0;
  if (any) {
    *e = queue[first];
    first = (first + 1) % QUEUE;
    count--;
  }
  spx_unlock();
  return any;
}

uint64_t spx_event_lost(spx_event_kind kind)
{
  spx_lock();
  uint64_t n = lost[kind];
  lost[kind] = 0;
  spx_unlock();
  return n;
}
