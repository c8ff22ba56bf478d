/* tool.c - callbacks of events. MPI-5.0, 16.3.8.
 *
 * The data plane puts an event into a queue where it happens, with the time; callbacks are called out of the next MPI call that
 * makes progress, with no lock held and no Go frame below. An event that finds the queue full is dropped and counted. */
#include "tool.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The engine is not asked here: its list may change while callbacks are called, even by one of them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static spx_listener *listeners; /* by order */
static uint32_t used, room;

/* The event whose callback this thread is in, and the handle of its instance: a number that no other has had. */
static SPX_TLS spx_event current;
static SPX_TLS uintptr_t current_handle;

const spx_event *spx_tool_instance(uintptr_t handle) { return handle && handle == current_handle ? &current : NULL; }

/* The order of the last one, 0: there is none. Those that come while an event is delivered have a higher one. */
static uint64_t last_order(void)
{
  pthread_mutex_lock(&lock);
  uint64_t last = used ? listeners[used - 1].order : 0;
  pthread_mutex_unlock(&lock);
  return last;
}

/* Makes *l the listener to a kind that comes after it, as it is now; false: there is none up to last. */
static bool next_one(spx_event_kind kind, uint64_t last, spx_listener *l)
{
  pthread_mutex_lock(&lock);
  uint32_t i = 0;
  while (i < used && (listeners[i].order <= l->order || listeners[i].kind != (int64_t)kind)) i++;
  bool any = i < used && listeners[i].order <= last;
  if (any) *l = listeners[i];
  pthread_mutex_unlock(&lock);
  return any;
}

static void deliver_dropped(spx_event_kind kind)
{
  uint64_t lost = spx_event_lost(kind), last = lost ? last_order() : 0;
  for (spx_listener l = {0}; next_one(kind, last, &l);)
    if (l.dropped)
      ((MPI_T_event_dropped_cb_function *)l.dropped)((MPI_Count)lost, (MPI_T_event_registration)l.key, 0,
                                                     MPI_T_CB_REQUIRE_NONE, (void *)l.data);
}

static void deliver_event(const spx_event *e)
{
  static _Atomic uintptr_t instances;
  const spx_event outer = current;
  const uintptr_t outer_handle = current_handle, handle = atomic_fetch_add(&instances, 1) + 1;
  uint64_t last = last_order();
  for (spx_listener l = {0}; next_one(e->kind, last, &l);) {
    current = *e;
    current_handle = handle;
    ((MPI_T_event_cb_function *)l.fn)((MPI_T_event_instance)handle, (MPI_T_event_registration)l.key,
                                      MPI_T_CB_REQUIRE_NONE, (void *)l.data);
    current = outer;
    current_handle = outer_handle;
  }
}

static void deliver(void)
{
  spx_event e;
  for (int k = 0; k < SPX_EVENTS; k++) deliver_dropped((spx_event_kind)k);
  while (spx_event_take(&e)) deliver_event(&e);
}

bool spx_tool_listen(const spx_listener *list, uint32_t n, uint32_t wanted)
{
  pthread_mutex_lock(&lock);
  spx_listener *larger = n > room ? realloc(listeners, n * sizeof *list) : listeners;
  bool fits = n <= room || larger;
  if (fits) {
    if (n > room) room = n;
    if (n) memcpy(larger, list, n * sizeof *list);
    listeners = larger;
    used = n;
  }
  pthread_mutex_unlock(&lock);
  if (!fits) return false;
  spx_lock();
  spx_events_due = deliver;
  spx_events_wanted = wanted;
  spx_unlock();
  return true;
}

void spx_tool_drop_events(void)
{
  spx_event e;
  while (spx_event_take(&e)) {}
  for (int k = 0; k < SPX_EVENTS; k++) spx_event_lost((spx_event_kind)k);
}

int64_t spx_tool_freed(spx_word *a)
{
  ((MPI_T_event_free_cb_function *)a[0].p)((MPI_T_event_registration)a[1].p, MPI_T_CB_REQUIRE_NONE, a[2].p);
  return 0;
}
