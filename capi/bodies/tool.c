/* tool.c - callbacks of events, and reading in them (MPI-5.0, 16.3.8); reading of performance
 * variables (16.3.7).
 *
 * The data plane puts an event into a queue where it happens, with the time; callbacks are called
 * out of the next MPI call that makes progress, with no lock held and no Go frame below. An event
 * that finds the queue full is dropped and counted.
 *
 * How the value of a performance variable comes out of its counter is decided in core/tool,
 * whenever the handle is started, stopped or set; a table has it, so that reading does not enter
 * the engine. */
#include "tool.h"
#include "shim.h"
#include "zz_functions.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The engine is not called here: its list may change while callbacks are called, even by one of
 * them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static spx_listener *listeners; /* by order */
static uint32_t used, room;

/* The event whose callback this thread is in, its elements, and the handle of its instance: a
 * number that no other has had. */
typedef struct {
  spx_event event;
  uint32_t elements, ints;
  uintptr_t handle;
} instance;
static SPX_TLS instance current;

static const instance *instance_of(MPI_T_event_instance handle)
{
  return handle && (uintptr_t)handle == current.handle ? &current : NULL;
}

/* The order of the last one, 0: there is none. Those that come while an event is delivered have a
 * higher one. */
static uint64_t last_order(void)
{
  pthread_mutex_lock(&lock);
  uint64_t last = used ? listeners[used - 1].order : 0;
  pthread_mutex_unlock(&lock);
  return last;
}

/* Makes *l the listener to a kind that comes after it, as it is now; false: there is none up to
 * last. */
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
      ((MPI_T_event_dropped_cb_function *)l.dropped)((MPI_Count)lost,
                                                     (MPI_T_event_registration)l.key, 0,
                                                     MPI_T_CB_REQUIRE_NONE, (void *)l.data);
}

static void deliver_event(const spx_event *e)
{
  static _Atomic uintptr_t instances;
  const instance outer = current;
  const uintptr_t handle = atomic_fetch_add(&instances, 1) + 1;
  uint64_t last = last_order();
  for (spx_listener l = {0}; next_one(e->kind, last, &l);) {
    current = (instance){*e, l.elements, l.ints, handle};
    ((MPI_T_event_cb_function *)l.fn)((MPI_T_event_instance)handle, (MPI_T_event_registration)l.key,
                                      MPI_T_CB_REQUIRE_NONE, (void *)l.data);
    current = outer;
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
  ((MPI_T_event_free_cb_function *)a[0].p)((MPI_T_event_registration)a[1].p, MPI_T_CB_REQUIRE_NONE,
                                           a[2].p);
  return 0;
}

/* ---- reading in a callback ---- */

static size_t element_bytes(const instance *in, uint32_t i)
{
  return in->ints >> i & 1 ? sizeof(int) : sizeof(uint64_t);
}

static void put_element(const instance *in, uint32_t i, char *to)
{
  const int narrow = (int)in->event.word[i];
  memcpy(to, in->ints >> i & 1 ? (const void *)&narrow : &in->event.word[i], element_bytes(in, i));
}

int spx_c_T_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
  const instance *in = instance_of(event_instance);
  if (!in) return MPI_T_ERR_INVALID_HANDLE;
  if (element_index < 0 || (uint32_t)element_index >= in->elements) return MPI_T_ERR_INVALID_INDEX;
  if (!buffer) return MPI_T_ERR_INVALID;
  put_element(in, (uint32_t)element_index, buffer);
  return MPI_SUCCESS;
}

/* Each element is at the next multiple of its size, as core/tool reports it. */
int spx_c_T_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
  const instance *in = instance_of(event_instance);
  if (!in) return MPI_T_ERR_INVALID_HANDLE;
  if (!buffer) return MPI_T_ERR_INVALID;
  size_t at = 0;
  for (uint32_t i = 0; i < in->elements; i++) {
    const size_t n = element_bytes(in, i);
    at = (at + n - 1) / n * n;
    put_element(in, i, (char *)buffer + at);
    at += n;
  }
  return MPI_SUCCESS;
}

int spx_c_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
  const instance *in = instance_of(event_instance);
  if (!in) return MPI_T_ERR_INVALID_HANDLE;
  if (!event_timestamp) return MPI_T_ERR_INVALID;
  *event_timestamp = (MPI_Count)in->event.at;
  return MPI_SUCCESS;
}

int spx_c_T_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
  if (!instance_of(event_instance)) return MPI_T_ERR_INVALID_HANDLE;
  if (!source_index) return MPI_T_ERR_INVALID;
  *source_index = 0;
  return MPI_SUCCESS;
}

/* ---- performance variables ---- */

static spx_tool_view *views; /* by index of a handle; guarded by lock, as listeners are */
static uint32_t views_room;

bool spx_tool_show(uint32_t index, const spx_tool_view *v)
{
  pthread_mutex_lock(&lock);
  if (index >= views_room) {
    const uint32_t larger = 2 * (index + 8);
    spx_tool_view *more = realloc(views, larger * sizeof *more);
    if (more) {
      memset(more + views_room, 0, (larger - views_room) * sizeof *more);
      views = more;
      views_room = larger;
    }
  }
  bool fits = index < views_room;
  if (fits) views[index] = *v;
  pthread_mutex_unlock(&lock);
  return fits;
}

void spx_tool_hide(uint32_t index)
{
  pthread_mutex_lock(&lock);
  if (index < views_room) views[index].key = 0;
  pthread_mutex_unlock(&lock);
}

/* Where the counters are changes when MPI begins and ends: the data plane's lock. */
static uint64_t counted(const spx_tool_view *v)
{
  if (v->offset < 0) return v->at ? __atomic_load_n(v->at, __ATOMIC_RELAXED) : 0;
  spx_lock();
  uint64_t n = *(const uint64_t *)((const char *)spx_counted + v->offset);
  spx_unlock();
  return n;
}

/* Reads a handle that the table has; false: it has not. */
static bool read_view(uintptr_t session, uintptr_t handle, void *buf)
{
  const uint32_t index = handle & (SPX_TOOL_HANDLES - 1);
  pthread_mutex_lock(&lock);
  const spx_tool_view *v = index < views_room ? &views[index] : NULL;
  bool known = v && handle && v->key == handle && v->session == session;
  if (known) {
    const uint64_t n = counted(v) + v->more;
    const double seconds = (double)n / 1e9;
    memcpy(buf, v->seconds ? (const void *)&seconds : &n, sizeof n);
  }
  pthread_mutex_unlock(&lock);
  return known;
}

/* Handles not in the table are the engine's: errors, too. In a child of fork the lock may be held
 * by a thread that does not exist there. */
int spx_c_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
  if (SPX_LIKELY(buf && !spx_forked) && read_view((uintptr_t)session, (uintptr_t)handle, buf))
    return MPI_SUCCESS;
  spx_frame frame = {.fn = SPX_FN_T_pvar_read, .a = {{.p = session}, {.p = handle}, {.p = buf}}};
  return spx_go_tool(&frame);
}
