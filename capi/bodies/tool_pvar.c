/* tool_pvar.c - performance variables and their sessions. MPI-5.0, 16.3.7.
 *
 * The data plane counts all the time. A handle of a counter remembers what the counter was when it was started, and has what
 * it saw in the times when it ran. The data plane keeps one high-water mark: whenever a handle is looked at, all running ones
 * take it in and it begins again, so that each has the highest level since its own start. */
#include <stdlib.h>
#include <string.h>
#include "dp.h"
#include "replay.h"
#include "runtime.h"
#include "tool.h"

typedef struct {
  spx_tool_entry e;
  int class, level, bind;
  uint64_t *at;                        /* the counter, or */
  uint64_t (*read)(const spx_comm *c); /* what reads it */
} variable;

/* ---- what there is ---------------------------------------------------------------------------------------------- */

/* What the process counts; the lock: its counters move when MPI begins and ends. */
#define COUNTED(field)                                                                                                 \
  static uint64_t counted_##field(const spx_comm *c)                                                                   \
  {                                                                                                                    \
    (void)c;                                                                                                           \
    spx_lock();                                                                                                        \
    uint64_t n = spx_stat.field;                                                                                       \
    spx_unlock();                                                                                                      \
    return n;                                                                                                          \
  }
#define COUNTED_OF(field)                                                                                              \
  COUNTED(field)                                                                                                       \
  static uint64_t field(const spx_comm *c) { return c ? c->counts.field : counted_##field(c); }
COUNTED_OF(sent)
COUNTED_OF(sent_bytes)
COUNTED_OF(received)
COUNTED_OF(received_bytes)
COUNTED(unexpected)
COUNTED(unexpected_bytes)
COUNTED(announced)
COUNTED(gets)
COUNTED(got_bytes)
COUNTED(streams)
COUNTED(streamed_bytes)
COUNTED(connections)
COUNTED(net_open)
COUNTED(net_opened)
COUNTED(net_evicted)
COUNTED(net_relayed)
COUNTED(net_again)
COUNTED(net_forwarded)
COUNTED(net_forwarded_bytes)
COUNTED(net_direct)
COUNTED(net_zerocopy)
COUNTED(net_zerocopy_copied)
COUNTED(net_streams)
COUNTED(net_further)
COUNTED(net_bursts)
COUNTED(rings)
COUNTED(yields)
COUNTED(sleeps)
COUNTED(sleep_ns)
COUNTED(wakeups)
static uint64_t failures(const spx_comm *c) { return c ? (uint64_t)spx_comm_failures(c) : spx_ndead; }
static uint64_t entries(const spx_comm *c)
{
  (void)c;
  return atomic_load_explicit(&spx_go_entries, memory_order_relaxed);
}

#define COUNTER   MPI_T_PVAR_CLASS_COUNTER
#define AGGREGATE MPI_T_PVAR_CLASS_AGGREGATE
#define LEVEL     MPI_T_PVAR_CLASS_LEVEL
#define HIGH      MPI_T_PVAR_CLASS_HIGHWATERMARK
#define TIMER     MPI_T_PVAR_CLASS_TIMER
#define BASIC     MPI_T_VERBOSITY_USER_BASIC
#define DETAIL    MPI_T_VERBOSITY_TUNER_DETAIL
#define NONE      MPI_T_BIND_NO_OBJECT
#define COMM      MPI_T_BIND_MPI_COMM

static const variable variables[] = {
    {{"spx_messages_sent", "messages", "messages sent by this process, those of collectives included"},
     COUNTER,
     BASIC,
     NONE,
     NULL,
     sent},
    {{"spx_bytes_sent", "messages", "bytes in the messages sent"}, AGGREGATE, BASIC, NONE, NULL, sent_bytes},
    {{"spx_messages_received", "messages", "messages received by this process"}, COUNTER, BASIC, NONE, NULL, received},
    {{"spx_bytes_received", "messages", "bytes in the messages received"},
     AGGREGATE,
     BASIC,
     NONE,
     NULL,
     received_bytes},
    {{"spx_comm_messages_sent", "messages", "messages sent on a communicator"}, COUNTER, BASIC, COMM, NULL, sent},
    {{"spx_comm_bytes_sent", "messages", "bytes in the messages sent on a communicator"},
     AGGREGATE,
     BASIC,
     COMM,
     NULL,
     sent_bytes},
    {{"spx_comm_messages_received", "messages", "messages received on a communicator"},
     COUNTER,
     BASIC,
     COMM,
     NULL,
     received},
    {{"spx_comm_bytes_received", "messages", "bytes in the messages received on a communicator"},
     AGGREGATE,
     BASIC,
     COMM,
     NULL,
     received_bytes},
    {{"spx_unexpected_messages", "matching", "messages that came before their receive"},
     COUNTER,
     BASIC,
     NONE,
     NULL,
     counted_unexpected},
    {{"spx_unexpected_bytes", "matching", "bytes copied aside because their receive had not been posted"},
     AGGREGATE,
     BASIC,
     NONE,
     NULL,
     counted_unexpected_bytes},
    {{"spx_unexpected_length", "matching", "messages that wait for their receive now"},
     LEVEL,
     BASIC,
     NONE,
     &spx_unex_count,
     NULL},
    {{"spx_unexpected_length_high", "matching", "the most messages that have waited for their receive at once"},
     HIGH,
     BASIC,
     NONE,
     &spx_unex_count,
     NULL},
    {{"spx_posted_length", "matching", "receives that wait for their message now"},
     LEVEL,
     BASIC,
     NONE,
     &spx_posted_count,
     NULL},
    {{"spx_messages_announced", "transfer", "messages sent that were announced first, being large or without credit"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_announced},
    {{"spx_gets", "transfer", "messages that this process has read out of their sender's memory"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_gets},
    {{"spx_bytes_got", "transfer", "bytes read out of senders' memory"},
     AGGREGATE,
     DETAIL,
     NONE,
     NULL,
     counted_got_bytes},
    {{"spx_streams", "transfer", "messages sent as a stream of pieces, copied twice"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_streams},
    {{"spx_bytes_streamed", "transfer", "bytes in streamed messages"},
     AGGREGATE,
     DETAIL,
     NONE,
     NULL,
     counted_streamed_bytes},
    {{"spx_connections", "transfer", "processes that this one has sent to"},
     COUNTER,
     BASIC,
     NONE,
     NULL,
     counted_connections},
    {{"spx_connections_open", "transfer", "connections over the network that are open now"},
     LEVEL,
     BASIC,
     NONE,
     NULL,
     counted_net_open},
    {{"spx_connections_opened", "transfer", "connections over the network that were made"},
     COUNTER,
     BASIC,
     NONE,
     NULL,
     counted_net_opened},
    {{"spx_connections_evicted", "transfer", "connections that were closed because others were wanted"},
     COUNTER,
     BASIC,
     NONE,
     NULL,
     counted_net_evicted},
    {{"spx_frames_relayed", "transfer", "frames of messages of this process that others have sent on"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_net_relayed},
    {{"spx_frames_again", "transfer", "times that what others were to send on was sent again"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_net_again},
    {{"spx_frames_forwarded", "transfer", "frames of other processes that this one has sent on"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_net_forwarded},
    {{"spx_bytes_forwarded", "transfer", "bytes of other processes that this one has sent on"},
     AGGREGATE,
     DETAIL,
     NONE,
     NULL,
     counted_net_forwarded_bytes},
    {{"spx_bytes_direct", "transfer", "bytes written to sockets straight from the buffers of messages"},
     AGGREGATE,
     DETAIL,
     NONE,
     NULL,
     counted_net_direct},
    {{"spx_bytes_zerocopy", "transfer",
      "of these, bytes that the kernel was told to send out of the buffers (SPX_ZEROCOPY)"},
     AGGREGATE,
     DETAIL,
     NONE,
     NULL,
     counted_net_zerocopy},
    {{"spx_bytes_zerocopy_copied", "transfer", "of these, bytes that the kernel has copied all the same"},
     AGGREGATE,
     DETAIL,
     NONE,
     NULL,
     counted_net_zerocopy_copied},
    {{"spx_streams_opened", "transfer",
      "further streams that this process has made for its long messages (SPX_STREAMS)"},
     COUNTER,
     BASIC,
     NONE,
     NULL,
     counted_net_streams},
    {{"spx_bytes_further", "transfer", "bytes of messages that this process has written to further streams"},
     COUNTER,
     BASIC,
     NONE,
     NULL,
     counted_net_further},
    {{"spx_bursts", "transfer",
      "times that short messages in a row to a process of the same host began to go by fewer segments (TCP)"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_net_bursts},
    {{"spx_messages_lost", "transfer",
      "messages to other clusters that were kept, and that no process was left to take"},
     COUNTER,
     DETAIL,
     NONE,
     &spx_replay_core.lost,
     NULL},
    {{"spx_bytes_lost", "transfer", "the same in bytes"}, COUNTER, DETAIL, NONE, &spx_replay_core.lost_bytes, NULL},
    {{"spx_refused_strangers", "transfer",
      "calls over the network that were refused: not of this job, or not of this protocol"},
     COUNTER,
     DETAIL,
     NONE,
     &spx_refused.strangers,
     NULL},
    {{"spx_refused_version", "transfer",
      "calls over the network that were refused: of another version of the handshake"},
     COUNTER,
     DETAIL,
     NONE,
     &spx_refused.version,
     NULL},
    {{"spx_refused_old", "transfer",
      "calls over the network that were refused: of or for an earlier or later process of that number"},
     COUNTER,
     DETAIL,
     NONE,
     &spx_refused.old,
     NULL},
    {{"spx_refused_keyless", "transfer", "calls over the network that were refused: without the key of the job"},
     COUNTER,
     DETAIL,
     NONE,
     &spx_refused.keyless,
     NULL},
    {{"spx_refused_slow", "transfer", "calls over the network that were given up: too slow, or too many at a time"},
     COUNTER,
     DETAIL,
     NONE,
     &spx_refused.slow,
     NULL},
    {{"spx_rings_opened", "transfer", "rings that this process has opened to send through"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_rings},
    {{"spx_yields", "waiting", "times that this process gave its processor to others while it waited"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_yields},
    {{"spx_sleeps", "waiting", "times that this process slept while it waited"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_sleeps},
    {{"spx_sleep_time", "waiting", "seconds that this process has slept while it waited"},
     TIMER,
     BASIC,
     NONE,
     NULL,
     counted_sleep_ns},
    {{"spx_wakeups", "waiting", "times that this process has woken another, or a thread of its own"},
     COUNTER,
     DETAIL,
     NONE,
     NULL,
     counted_wakeups},
    {{"spx_engine_entries", "engine", "calls from C into the engine"},
     COUNTER,
     MPI_T_VERBOSITY_MPIDEV_BASIC,
     NONE,
     NULL,
     entries},
    {{"spx_failures", "failures", "processes whose failure this process has noticed"},
     LEVEL,
     BASIC,
     NONE,
     NULL,
     failures},
    {{"spx_comm_failures", "failures", "processes of a communicator whose failure this process has noticed"},
     LEVEL,
     BASIC,
     COMM,
     NULL,
     failures},
};
#define VARIABLES ((int)(sizeof variables / sizeof *variables))

const spx_tool_entry *spx_tool_pvar(int i) { return i >= 0 && i < VARIABLES ? &variables[i].e : NULL; }

static int is_level(const variable *v) { return v->class == LEVEL; }

int spx_c_T_pvar_get_num(int *num_pvar)
{
  SPX_TOOL_ENTER;
  spx_tool_int(num_pvar, VARIABLES);
  return spx_tool_leave(num_pvar ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int spx_c_T_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
                          MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind,
                          int *readonly, int *continuous, int *atomic)
{
  SPX_TOOL_ENTER;
  if (pvar_index < 0 || pvar_index >= VARIABLES) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  const variable *v = &variables[pvar_index];
  spx_tool_string(v->e.name, name, name_len);
  spx_tool_string(v->e.description, desc, desc_len);
  spx_tool_int(verbosity, v->level);
  spx_tool_int(var_class, v->class);
  if (datatype) *datatype = v->class == TIMER ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG;
  if (enumtype) *enumtype = MPI_T_ENUM_NULL;
  spx_tool_int(bind, v->bind);
  spx_tool_int(readonly, is_level(v));
  spx_tool_int(continuous, is_level(v));
  spx_tool_int(atomic, !is_level(v)); /* MPI_T_pvar_readreset is for all that can be reset */
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
  SPX_TOOL_ENTER;
  if (!name || !pvar_index) return spx_tool_leave(MPI_T_ERR_INVALID);
  for (int i = 0; i < VARIABLES; i++)
    if (strcmp(variables[i].e.name, name) == 0 && variables[i].class == var_class) {
      *pvar_index = i;
      return spx_tool_leave(MPI_SUCCESS);
    }
  return spx_tool_leave(MPI_T_ERR_INVALID_NAME);
}

/* ---- sessions and handles ---------------------------------------------------------------------------------------- */

typedef struct {
  MPI_T_pvar_session session;
  const variable *v;
  spx_comm *c; /* referenced; NULL: not bound */
  int running;
  uint64_t base; /* the counter when it was started */
  uint64_t seen; /* what was counted in earlier runs; the high-water mark */
} handle;

int spx_c_T_pvar_session_create(MPI_T_pvar_session *session)
{
  static int some; /* what a session stands for is its handles */
  SPX_TOOL_ENTER;
  if (!session) return spx_tool_leave(MPI_T_ERR_INVALID);
  MPI_T_pvar_session s = spx_tool_handle(SPX_TH_SESSION, &some);
  if (!s) return spx_tool_leave(MPI_T_ERR_OUT_OF_SESSIONS);
  *session = s;
  return spx_tool_leave(MPI_SUCCESS);
}

static void free_handle(void *key, handle *h)
{
  spx_tool_forget(SPX_TH_PVAR, key);
  if (h->c) spx_unref(SPX_K_COMM, &h->c->o);
  free(h);
}

/* arg: the session, or NULL for all. */
static void free_of(void *key, void *object, void *arg)
{
  if (!arg || ((handle *)object)->session == arg) free_handle(key, object);
}

int spx_c_T_pvar_session_free(MPI_T_pvar_session *session)
{
  SPX_TOOL_ENTER;
  if (!session || !spx_tool_find(SPX_TH_SESSION, *session)) return spx_tool_leave(MPI_T_ERR_INVALID_SESSION);
  spx_tool_each(SPX_TH_PVAR, free_of, *session);
  spx_tool_forget(SPX_TH_SESSION, *session);
  *session = MPI_T_PVAR_SESSION_NULL;
  return spx_tool_leave(MPI_SUCCESS);
}

static void forget_session(void *key, void *object, void *arg)
{
  (void)object;
  (void)arg;
  spx_tool_forget(SPX_TH_SESSION, key);
}

void spx_tool_pvars_end(void)
{
  spx_tool_each(SPX_TH_PVAR, free_of, NULL);
  spx_tool_each(SPX_TH_SESSION, forget_session, NULL);
}

/* The communicator that a variable is to be bound to. */
static int bound(const variable *v, const void *obj_handle, spx_comm **c)
{
  *c = NULL;
  if (v->bind == NONE) return MPI_SUCCESS;
  if (!obj_handle) return MPI_T_ERR_INVALID;
  *c = (spx_comm *)spx_get(SPX_K_COMM, *(const MPI_Comm *)obj_handle);
  return *c ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

int spx_c_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle, MPI_T_pvar_handle *out,
                              int *count)
{
  SPX_TOOL_ENTER;
  if (!spx_tool_find(SPX_TH_SESSION, session)) return spx_tool_leave(MPI_T_ERR_INVALID_SESSION);
  if (pvar_index < 0 || pvar_index >= VARIABLES) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  if (!out || !count) return spx_tool_leave(MPI_T_ERR_INVALID);
  const variable *v = &variables[pvar_index];
  spx_comm *c;
  int err = bound(v, obj_handle, &c);
  if (err != MPI_SUCCESS) return spx_tool_leave(err);
  handle *h = calloc(1, sizeof *h);
  if (!h) return spx_tool_leave(MPI_T_ERR_MEMORY);
  MPI_T_pvar_handle key = spx_tool_handle(SPX_TH_PVAR, h);
  if (!key) {
    free(h);
    return spx_tool_leave(MPI_T_ERR_OUT_OF_HANDLES);
  }
  *h = (handle){.session = session, .v = v, .c = c};
  if (c) spx_ref(&c->o);
  *out = key;
  *count = 1;
  return spx_tool_leave(MPI_SUCCESS);
}

/* The handle of a session: NULL, and the error in *err. */
static handle *find(MPI_T_pvar_session session, MPI_T_pvar_handle key, int *err)
{
  handle *h = NULL;
  *err = MPI_T_ERR_INVALID_SESSION;
  if (spx_tool_find(SPX_TH_SESSION, session)) {
    h = spx_tool_find(SPX_TH_PVAR, key);
    if (h && h->session != session) h = NULL;
    *err = MPI_T_ERR_INVALID_HANDLE;
  }
  return h;
}

int spx_c_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *key)
{
  int err;
  SPX_TOOL_ENTER;
  handle *h = find(session, key ? *key : NULL, &err);
  if (!h) return spx_tool_leave(err);
  free_handle(*key, h);
  *key = MPI_T_PVAR_HANDLE_NULL;
  return spx_tool_leave(MPI_SUCCESS);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint64_t now(const handle *h)
{
  spx_lock();
  uint64_t v = h->v->at ? __atomic_load_n(h->v->at, __ATOMIC_RELAXED) : h->v->read(h->c);
  spx_unlock();
  return v;
}

static void take_high(void *key, void *object, void *high)
{
  handle *h = object;
  (void)key;
  if (h->running && h->v->class == HIGH && h->seen < *(uint64_t *)high) h->seen = *(uint64_t *)high;
}

/* All running high-water marks take in what has been; the data plane's begins again at the level of now. */
static void spread_high(void)
{
  spx_lock();
  uint64_t high = spx_stat.unexpected_high;
  spx_stat.unexpected_high = spx_unex_count;
  spx_unlock();
  spx_tool_each(SPX_TH_PVAR, take_high, &high);
}

static uint64_t value(handle *h)
{
  if (is_level(h->v)) return now(h);
  if (h->v->class == HIGH) {
    spread_high();
    return h->seen;
  }
  return h->running ? h->seen + now(h) - h->base : h->seen;
}

static void store(const handle *h, uint64_t v, void *buf)
{
  if (h->v->class == TIMER)
    *(double *)buf = (double)v / 1e9;
  else
    *(unsigned long long *)buf = v;
}

/* From v on. */
static void set(handle *h, uint64_t v)
{
  if (h->v->class == HIGH) spread_high();
  h->seen = v;
  h->base = now(h);
}

/* What counts as the beginning: nothing, or the level of now. */
static uint64_t origin(const handle *h) { return h->v->class == HIGH ? now(h) : 0; }

static int start(handle *h)
{
  if (is_level(h->v)) return MPI_T_ERR_PVAR_NO_STARTSTOP;
  if (h->running) return MPI_SUCCESS;
  if (h->v->class == HIGH) {
    spread_high();
    if (h->seen < now(h)) h->seen = now(h);
  }
  h->base = now(h);
  h->running = 1;
  return MPI_SUCCESS;
}

static int stop(handle *h)
{
  if (is_level(h->v)) return MPI_T_ERR_PVAR_NO_STARTSTOP;
  h->seen = value(h);
  h->running = 0;
  return MPI_SUCCESS;
}

static int reset(handle *h)
{
  if (is_level(h->v)) return MPI_T_ERR_PVAR_NO_WRITE;
  set(h, origin(h));
  return MPI_SUCCESS;
}

typedef struct {
  MPI_T_pvar_session session;
  int (*act)(handle *);
} for_all;

static void act_on(void *key, void *object, void *arg)
{
  const for_all *f = arg;
  (void)key;
  if (((handle *)object)->session == f->session) f->act(object); /* those that can not are left out (16.3.7) */
}

/* One handle, or all of the session. */
static int act(MPI_T_pvar_session session, MPI_T_pvar_handle key, int (*what)(handle *))
{
  int err;
  SPX_TOOL_ENTER;
  handle *h = find(session, key, &err);
  if (key == MPI_T_PVAR_ALL_HANDLES && err != MPI_T_ERR_INVALID_SESSION) {
    for_all f = {session, what};
    spx_tool_each(SPX_TH_PVAR, act_on, &f);
    return spx_tool_leave(MPI_SUCCESS);
  }
  return spx_tool_leave(h ? what(h) : err);
}

int spx_c_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle key) { return act(session, key, start); }
int spx_c_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle key) { return act(session, key, stop); }
int spx_c_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle key) { return act(session, key, reset); }

int spx_c_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle key, void *buf)
{
  int err;
  SPX_TOOL_ENTER;
  handle *h = find(session, key, &err);
  if (!h) return spx_tool_leave(err);
  if (!buf) return spx_tool_leave(MPI_T_ERR_INVALID);
  store(h, value(h), buf);
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle key, const void *buf)
{
  int err;
  SPX_TOOL_ENTER;
  handle *h = find(session, key, &err);
  if (!h) return spx_tool_leave(err);
  if (is_level(h->v)) return spx_tool_leave(MPI_T_ERR_PVAR_NO_WRITE);
  if (!buf) return spx_tool_leave(MPI_T_ERR_INVALID);
  set(h, h->v->class == TIMER ? (uint64_t)(*(const double *)buf * 1e9) : *(const unsigned long long *)buf);
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle key, void *buf)
{
  int err;
  SPX_TOOL_ENTER;
  handle *h = find(session, key, &err);
  if (!h) return spx_tool_leave(err);
  if (is_level(h->v)) return spx_tool_leave(MPI_T_ERR_PVAR_NO_ATOMIC);
  if (!buf) return spx_tool_leave(MPI_T_ERR_INVALID);
  if (h->v->class == HIGH || !h->running) {
    store(h, value(h), buf);
    reset(h);
  } else { /* the counter is looked at once */
    uint64_t v = now(h);
    store(h, h->seen + v - h->base, buf);
    h->seen = 0;
    h->base = v;
  }
  return spx_tool_leave(MPI_SUCCESS);
}
