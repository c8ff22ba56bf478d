/* tool_event.c - events and their source. MPI-5.0, 16.3.8.
 *
 * The data plane puts an event into a queue where it happens, with the time; callbacks are called out of the next MPI call that
 * makes progress, with no lock held and no Go frame below: they may do what any program may (MPI_T_CB_REQUIRE_NONE), so the
 * callback of the lowest level that is registered is taken. An event that finds the queue full is dropped and counted. */
#include <stdlib.h>
#include <string.h>
#include "dp.h"
#include "tool.h"

#define ELEMENTS 4
typedef struct {
  MPI_Datatype type;
  MPI_Aint at; /* displacement in the event's data */
} element;
typedef struct {
  spx_tool_entry e;
  int level, n;
  element el[ELEMENTS];
} event_type;

static const event_type types[SPX_EVENTS] = {
    [SPX_EV_UNEXPECTED] =
        {{"spx_unexpected_message", "matching",
          "a message has come before its receive: rank of the source, tag, bytes, context of the communicator"},
         MPI_T_VERBOSITY_TUNER_DETAIL,
         4,
         {{MPI_INT, 0}, {MPI_INT, 4}, {MPI_UNSIGNED_LONG_LONG, 8}, {MPI_UNSIGNED_LONG_LONG, 16}}},
    [SPX_EV_FAILURE] = {{"spx_failure_seen", "failures",
                         "the failure of another process was noticed: its number in the job, its rank in its world"},
                        MPI_T_VERBOSITY_USER_BASIC,
                        2,
                        {{MPI_INT, 0}, {MPI_INT, 4}}},
    [SPX_EV_GET] = {{"spx_get_done", "transfer",
                     "a message was read out of its sender's memory: the sender's number in the job, bytes"},
                    MPI_T_VERBOSITY_TUNER_DETAIL,
                    2,
                    {{MPI_INT, 0}, {MPI_UNSIGNED_LONG_LONG, 8}}},
};

const spx_tool_entry *spx_tool_event(int i) { return i >= 0 && i < SPX_EVENTS ? &types[i].e : NULL; }

int spx_c_T_event_get_num(int *num_events)
{
  SPX_TOOL_ENTER;
  spx_tool_int(num_events, SPX_EVENTS);
  return spx_tool_leave(num_events ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

/* No hint has a meaning, but a handle that is none is a mistake. */
static int check_info(MPI_Info info)
{
  return info == MPI_INFO_NULL || spx_get(SPX_K_INFO, info) ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

/* An info object without hints. */
static int no_hints(MPI_Info *info)
{
  if (!info) return MPI_SUCCESS;
  return PMPI_Info_create(info) == MPI_SUCCESS ? MPI_SUCCESS : MPI_T_ERR_MEMORY;
}

int spx_c_T_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
                           MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[], int *num_elements,
                           MPI_T_enum *enumtype, MPI_Info *info, char *desc, int *desc_len, int *bind)
{
  SPX_TOOL_ENTER;
  if (event_index < 0 || event_index >= SPX_EVENTS) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  const event_type *t = &types[event_index];
  spx_tool_string(t->e.name, name, name_len);
  spx_tool_string(t->e.description, desc, desc_len);
  spx_tool_int(verbosity, t->level);
  int room = num_elements ? *num_elements : 0;
  for (int i = 0; i < t->n && i < room; i++) {
    if (array_of_datatypes) array_of_datatypes[i] = t->el[i].type;
    if (array_of_displacements) array_of_displacements[i] = t->el[i].at;
  }
  spx_tool_int(num_elements, t->n);
  if (enumtype) *enumtype = MPI_T_ENUM_NULL;
  spx_tool_int(bind, MPI_T_BIND_NO_OBJECT);
  spx_tool_leave(MPI_SUCCESS);
  return no_hints(info);
}

int spx_c_T_event_get_index(const char *name, int *event_index)
{
  SPX_TOOL_ENTER;
  if (!name || !event_index) return spx_tool_leave(MPI_T_ERR_INVALID);
  for (int i = 0; i < SPX_EVENTS; i++)
    if (strcmp(types[i].e.name, name) == 0) {
      *event_index = i;
      return spx_tool_leave(MPI_SUCCESS);
    }
  return spx_tool_leave(MPI_T_ERR_INVALID_NAME);
}

/* ---- registrations ----------------------------------------------------------------------------------------------- */

static const MPI_T_cb_safety levels[] = {MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                         MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};
#define LEVELS ((int)(sizeof levels / sizeof *levels))

typedef struct {
  MPI_T_event_cb_function *fn;
  void *user_data;
} callback;
typedef struct {
  spx_event_kind kind;
  callback cb[LEVELS];
  MPI_T_event_dropped_cb_function *dropped;
} registration;

static int level_of(MPI_T_cb_safety s)
{
  int i = 0;
  while (i < LEVELS && levels[i] != s) i++;
  return i;
}

static const callback *chosen(const registration *r)
{
  for (int i = 0; i < LEVELS; i++)
    if (r->cb[i].fn) return &r->cb[i];
  return NULL;
}

static void want(void *key, void *object, void *mask)
{
  const registration *r = object;
  (void)key;
  if (chosen(r)) *(uint32_t *)mask |= 1u << r->kind;
}

static void deliver(void);

/* Tells the data plane which events are wanted. */
static void update_wanted(void)
{
  uint32_t mask = 0;
  spx_tool_each(SPX_TH_EVENT, want, &mask);
  spx_lock();
  spx_events_due = deliver;
  spx_events_wanted = mask;
  spx_unlock();
}

int spx_c_T_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info, MPI_T_event_registration *out)
{
  (void)obj_handle; /* none is bound to an object */
  SPX_TOOL_ENTER;
  if (event_index < 0 || event_index >= SPX_EVENTS) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  if (!out) return spx_tool_leave(MPI_T_ERR_INVALID);
  int err = check_info(info);
  if (err != MPI_SUCCESS) return spx_tool_leave(err);
  registration *r = calloc(1, sizeof *r);
  if (!r) return spx_tool_leave(MPI_T_ERR_MEMORY);
  r->kind = (spx_event_kind)event_index;
  MPI_T_event_registration key = spx_tool_handle(SPX_TH_EVENT, r);
  if (!key) {
    free(r);
    return spx_tool_leave(MPI_T_ERR_OUT_OF_HANDLES);
  }
  *out = key;
  return spx_tool_leave(MPI_SUCCESS);
}

static int check_registration(MPI_T_event_registration key)
{
  return spx_tool_find(SPX_TH_EVENT, key) ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

/* Hints are taken and have no effect. */
int spx_c_T_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
  SPX_TOOL_ENTER;
  int err = check_registration(event_registration);
  return spx_tool_leave(err == MPI_SUCCESS ? check_info(info) : err);
}

int spx_c_T_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
  SPX_TOOL_ENTER;
  int err = check_registration(event_registration);
  spx_tool_leave(err);
  if (err == MPI_SUCCESS && !info_used) err = MPI_T_ERR_INVALID;
  return err == MPI_SUCCESS ? no_hints(info_used) : err;
}

int spx_c_T_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                    MPI_Info info, void *user_data, MPI_T_event_cb_function event_cb_function)
{
  SPX_TOOL_ENTER;
  registration *r = spx_tool_find(SPX_TH_EVENT, event_registration);
  if (!r) return spx_tool_leave(MPI_T_ERR_INVALID_HANDLE);
  int i = level_of(cb_safety);
  if (i == LEVELS) return spx_tool_leave(MPI_T_ERR_INVALID);
  int err = check_info(info);
  if (err != MPI_SUCCESS) return spx_tool_leave(err);
  r->cb[i] = (callback){event_cb_function, user_data}; /* NULL takes one away */
  update_wanted();
  return spx_tool_leave(MPI_SUCCESS);
}

static int check_callback(MPI_T_event_registration key, MPI_T_cb_safety cb_safety)
{
  const registration *r = spx_tool_find(SPX_TH_EVENT, key);
  if (!r) return MPI_T_ERR_INVALID_HANDLE;
  int i = level_of(cb_safety);
  return i < LEVELS && r->cb[i].fn ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

int spx_c_T_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                    MPI_Info info)
{
  SPX_TOOL_ENTER;
  int err = check_callback(event_registration, cb_safety);
  return spx_tool_leave(err == MPI_SUCCESS ? check_info(info) : err);
}

int spx_c_T_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                    MPI_Info *info_used)
{
  SPX_TOOL_ENTER;
  int err = check_callback(event_registration, cb_safety);
  spx_tool_leave(err);
  if (err == MPI_SUCCESS && !info_used) err = MPI_T_ERR_INVALID;
  return err == MPI_SUCCESS ? no_hints(info_used) : err;
}

int spx_c_T_event_set_dropped_handler(MPI_T_event_registration event_registration,
                                      MPI_T_event_dropped_cb_function dropped_cb_function)
{
  SPX_TOOL_ENTER;
  registration *r = spx_tool_find(SPX_TH_EVENT, event_registration);
  if (!r) return spx_tool_leave(MPI_T_ERR_INVALID_HANDLE);
  r->dropped = dropped_cb_function;
  return spx_tool_leave(MPI_SUCCESS);
}

/* Nothing is called for the registration any more, but free_cb, last. */
int spx_c_T_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
                              MPI_T_event_free_cb_function free_cb_function)
{
  SPX_TOOL_ENTER;
  registration *r = spx_tool_find(SPX_TH_EVENT, event_registration);
  if (!r) return spx_tool_leave(MPI_T_ERR_INVALID_HANDLE);
  spx_tool_forget(SPX_TH_EVENT, event_registration);
  free(r);
  update_wanted();
  spx_tool_leave(MPI_SUCCESS);
  if (free_cb_function) free_cb_function(event_registration, MPI_T_CB_REQUIRE_NONE, user_data);
  return MPI_SUCCESS;
}

static void free_registration(void *key, void *object, void *arg)
{
  (void)arg;
  spx_tool_forget(SPX_TH_EVENT, key);
  free(object);
}

void spx_tool_events_end(void)
{
  spx_event e;
  spx_tool_each(SPX_TH_EVENT, free_registration, NULL);
  update_wanted();
  while (spx_event_take(&e)) {}
}

/* ---- calling back ------------------------------------------------------------------------------------------------ */

/* The event whose callback this thread is in, and the handle of its instance: a number that no other has had. */
static SPX_TLS const spx_event *current;
static SPX_TLS uintptr_t current_handle;

#define MOST 64
typedef struct {
  MPI_T_event_registration key[MOST];
  int kind, n;
} listeners;

static void listen(void *key, void *object, void *arg)
{
  listeners *l = arg;
  if ((int)((registration *)object)->kind == l->kind && l->n < MOST) l->key[l->n++] = key;
}

static listeners listeners_of(spx_event_kind kind)
{
  listeners l = {.kind = (int)kind};
  if (spx_tool_enter() == MPI_SUCCESS) {
    spx_tool_each(SPX_TH_EVENT, listen, &l);
    spx_tool_leave(MPI_SUCCESS);
  }
  return l;
}

/* A copy of the registration as it is now; it may be freed by another callback. */
static bool look_up(MPI_T_event_registration key, registration *r)
{
  if (spx_tool_enter() != MPI_SUCCESS) return false;
  const registration *is = spx_tool_find(SPX_TH_EVENT, key);
  if (is) *r = *is;
  spx_tool_leave(MPI_SUCCESS);
  return is != NULL;
}

static void tell_dropped(void)
{
  registration r;
  for (int k = 0; k < SPX_EVENTS; k++) {
    uint64_t n = spx_event_lost((spx_event_kind)k);
    if (n == 0) continue;
    listeners l = listeners_of((spx_event_kind)k);
    for (int i = 0; i < l.n; i++) {
      const callback *cb = look_up(l.key[i], &r) && r.dropped ? chosen(&r) : NULL;
      if (cb) r.dropped((MPI_Count)n, l.key[i], 0, MPI_T_CB_REQUIRE_NONE, cb->user_data);
    }
  }
}

static void deliver(void)
{
  static _Atomic uintptr_t instances;
  spx_event e;
  registration r;
  tell_dropped();
  while (spx_event_take(&e)) {
    listeners l = listeners_of(e.kind);
    const spx_event *outer = current;
    const uintptr_t outer_handle = current_handle, handle = atomic_fetch_add(&instances, 1) + 1;
    for (int i = 0; i < l.n; i++) {
      const callback *cb = look_up(l.key[i], &r) ? chosen(&r) : NULL;
      if (!cb) continue;
      current = &e;
      current_handle = handle;
      cb->fn((MPI_T_event_instance)handle, l.key[i], MPI_T_CB_REQUIRE_NONE, cb->user_data);
      current = outer;
      current_handle = outer_handle;
    }
  }
}

/* ---- inside of a callback ------------------------------------------------------------------------------------------ */

static const spx_event *instance(MPI_T_event_instance h)
{
  return current && (uintptr_t)h == current_handle ? current : NULL;
}

static void store(const spx_event *e, int i, void *to)
{
  if (types[e->kind].el[i].type == MPI_INT)
    *(int *)to = (int)e->word[i];
  else
    *(unsigned long long *)to = (unsigned long long)e->word[i];
}

int spx_c_T_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
  const spx_event *e = instance(event_instance);
  if (!e) return MPI_T_ERR_INVALID_HANDLE;
  if (element_index < 0 || element_index >= types[e->kind].n) return MPI_T_ERR_INVALID_INDEX;
  if (!buffer) return MPI_T_ERR_INVALID;
  store(e, element_index, buffer);
  return MPI_SUCCESS;
}

int spx_c_T_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
  const spx_event *e = instance(event_instance);
  if (!e) return MPI_T_ERR_INVALID_HANDLE;
  if (!buffer) return MPI_T_ERR_INVALID;
  for (int i = 0; i < types[e->kind].n; i++) store(e, i, (char *)buffer + types[e->kind].el[i].at);
  return MPI_SUCCESS;
}

int spx_c_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
  const spx_event *e = instance(event_instance);
  if (!e) return MPI_T_ERR_INVALID_HANDLE;
  if (!event_timestamp) return MPI_T_ERR_INVALID;
  *event_timestamp = e->at;
  return MPI_SUCCESS;
}

int spx_c_T_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
  if (!instance(event_instance)) return MPI_T_ERR_INVALID_HANDLE;
  spx_tool_int(source_index, 0);
  return source_index ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

/* ---- the source: this process ---------------------------------------------------------------------------------------- */

int spx_c_T_source_get_num(int *num_sources)
{
  SPX_TOOL_ENTER;
  spx_tool_int(num_sources, 1);
  return spx_tool_leave(num_sources ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int spx_c_T_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len,
                            MPI_T_source_order *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks,
                            MPI_Info *info)
{
  SPX_TOOL_ENTER;
  if (source_index != 0) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  spx_tool_string("spx_process", name, name_len);
  spx_tool_string("what happens in this process, with the time of CLOCK_MONOTONIC", desc, desc_len);
  if (ordering) *ordering = MPI_T_SOURCE_ORDERED;
  if (ticks_per_second) *ticks_per_second = 1000000000;
  if (max_ticks) *max_ticks = INT64_MAX;
  spx_tool_leave(MPI_SUCCESS);
  return no_hints(info);
}

int spx_c_T_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
  SPX_TOOL_ENTER;
  if (source_index != 0) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  if (!timestamp) return spx_tool_leave(MPI_T_ERR_INVALID);
  *timestamp = spx_event_clock();
  return spx_tool_leave(MPI_SUCCESS);
}
