/* init.c - beginning and end of MPI (MPI-5.0, 12.2 and 12.3): MPI_Init and MPI_Finalize,
 * MPI_Session_init and _finalize.
 *
 * The engine starts with the first of the World Model and the sessions, and goes on until
 * MPI_Finalize with no session alive. Sessions that come and go before keep it; while none is there
 * the process counts as finalized, and may exit. */
#define _GNU_SOURCE
#include "init.h"
#include "bsend.h"
#include "check_coll.h"
#include "dp.h"
#include "error.h"
#include "mcast.h"
#include "runtime.h"
#include "settings.h"
#include "shim.h"
#include "system.h"
#include "trace.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

pthread_t spx_main_thread;
int spx_thread_level = MPI_THREAD_SINGLE;
_Atomic int spx_world_model = SPX_BEFORE_INIT;

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static int started, stopped, sessions;

/* ---- entering ---- */

static void set_level(int required)
{
  int level = required < MPI_THREAD_SINGLE ? MPI_THREAD_SINGLE : required;
  if (level > MPI_THREAD_MULTIPLE) level = MPI_THREAD_MULTIPLE;
  if (level < spx_thread_level) return; /* a session wanted more */
  spx_thread_level = level;
  spx_mt = level == MPI_THREAD_MULTIPLE || spx_set.progress;
  spx_proc_of(spx_me)->thread_level = (uint32_t)level;
}

/* Starts the engine. */
static int start(int required)
{
  uint64_t began = spx_now_ns();
  int err = spx_join();
  if (err) return err;
  set_level(required);
  spx_check_start();
  if (spx_checking) spx_check_made();
  spx_guard_faults();
  spx_frame f = {.fn = SPX_IN_START};
  f.a[0].u = spx_me;
  f.a[1].i = spx_thread_level;
  err = spx_go_internal(&f);
  started = err == MPI_SUCCESS;
  if (started) spx_note_returning(spx_world);
  if (started && spx_background_start() != 0) {
    spx_detail("SPX_PROGRESS=1: there can be no further thread (ulimit -u)");
    err = MPI_ERR_OTHER;
  }
  if (err == MPI_SUCCESS) spx_trace_start(began);
  return err;
}

/* Makes MPI usable for the World Model or another session: an error code with its detail text. */
static int enter(int required, int is_session)
{
  int err = MPI_SUCCESS, begins = 0;
  if (spx_forked) {
    spx_detail("called in a process that was forked after libspx had been loaded; such a process "
               "may only exec");
    return MPI_ERR_OTHER;
  }
  pthread_mutex_lock(&life);
  if (stopped || (!is_session && spx_world_model != SPX_BEFORE_INIT)) {
    spx_detail(stopped || spx_world_model == SPX_FINALIZED
                   ? "called after MPI_Finalize: MPI cannot begin a second time"
                   : "called a second time; MPI_Initialized tells whether it was called");
    err = MPI_ERR_OTHER;
  } else if (!started) {
    begins = 1;
    err = start(required);
  } else {
    set_level(required);
    spx_publish_owner(SPX_OWNER_INIT);
  }
  if (err == MPI_SUCCESS) {
    if (is_session)
      sessions++;
    else
      spx_world_model = SPX_INITIALIZED;
    spx_state = SPX_INITIALIZED;
  }
  pthread_mutex_unlock(&life);
  if (err == MPI_SUCCESS && begins) err = spx_go_internal(&(spx_frame){.fn = SPX_IN_ARRIVE});
  return err;
}

static int init(const char *function, int required, int *provided)
{
  int err = enter(required, 0);
  if (err) return spx_raise(0, NULL, err, function, "%s", spx_detail_text());
  spx_main_thread = pthread_self();
  if (provided) *provided = spx_thread_level;
  return MPI_SUCCESS;
}

int spx_c_Init(int *argc, char ***argv)
{
  (void)argc; /* nothing is taken from the command line */
  (void)argv;
  return init("MPI_Init", MPI_THREAD_SINGLE, NULL);
}

/* Every level is given as required. */
int spx_c_Init_thread(int *argc, char ***argv, int required, int *provided)
{
  (void)argc;
  (void)argv;
  return init("MPI_Init_thread", required, provided);
}

/* info may hold "thread_level". errhandler is the session's, and that of errors in this call. */
int spx_c_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
  spx_frame f = {.fn = SPX_IN_SESSION_LEVEL};
  f.a[0].p = info;
  int err = spx_forked ? MPI_SUCCESS : spx_go_internal(&f);
  if (err == MPI_SUCCESS) err = enter((int)f.a[1].i, 1);
  spx_plain *s = err ? NULL : (spx_plain *)spx_new(SPX_K_SESSION);
  if (!err && !s) {
    spx_detail("there is no room for another session (at most %u exist): finalize those that are "
               "not used any more",
               1u << SPX_H_INDEX_BITS);
    err = MPI_ERR_NO_MEM;
  }
  if (err) return spx_raise_by(errhandler, err, "MPI_Session_init", spx_detail_text());
  s->errh = spx_errh_ref(errhandler);
  s->o.go = (uint32_t)f.a[2].u;
  *session = (MPI_Session)(uintptr_t)s->o.handle;
  return MPI_SUCCESS;
}

spx_refusals spx_refused;

/* ---- leaving ---- */

/* A send that will not be waited for any more (freed, or buffered), and that its receiver has yet
 * to fetch. */
static void count_detached(spx_request *r, void *n)
{
  if (r->kind == SPX_R_MCAST)
    *(int *)n += (r->flags & SPX_RF_FREED) && spx_mcast_wanted(r);
  else if (((r->flags & SPX_RF_FREED) || r->mode == SPX_M_BUFFERED) && !spx_proc_left(r->peer))
    ++*(int *)n;
}

static int undelivered(void)
{
  int n = 0;
  spx_each_id(count_detached, &n);
  for (uint32_t i = 0; spx_tx_waiting() && i < spx_segment->nprocs; i++)
    n += (spx_txs[i].pend || spx_txs[i].stream) && !spx_proc_left(i);
  return n + (spx_net_unsent() > 0) + (int)spx_mcast_relaying + (int)spx_acks_leave();
}

/* Waits until all that was sent and detached has been taken over. A receiver that leaves rings no
 * bell: look again now and then. */
static void drain(void)
{
  for (;;) {
    struct timespec now;
    uint32_t ticket = spx_ticket();
    spx_progress();
    spx_lock();
    spx_mcast_leave();
    int n = undelivered();
    spx_unlock();
    spx_frame f = {.fn = SPX_IN_UNSETTLED};
    if (n == 0 && (!spx_net_sealed || spx_go_internal(&f) != MPI_SUCCESS || f.a[0].i == 0)) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    spx_wait_event(ticket, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 10000000u);
  }
}

/* While neither the World Model nor a session is there, the process may exit. The lock is held. */
static void leave(void)
{
  if (sessions || spx_world_model == SPX_INITIALIZED) return;
  spx_state = SPX_FINALIZED;
  spx_trace_stop();
  spx_publish_owner(SPX_OWNER_FINALIZED);
  spx_system_leave();
}

/* First the attributes of MPI_COMM_SELF are deleted, last set first, while MPI still works
 * (12.2.4). Then detached sends are delivered. There is no barrier: all data that a peer could
 * still need are in the job's memory file, and processes that leave a job that shrinks must not
 * wait for those that stay. */
int spx_c_Finalize(void)
{
  if (spx_world_model != SPX_INITIALIZED)
    return spx_raise(0, NULL, MPI_ERR_OTHER, "MPI_Finalize",
                     spx_world_model
                         ? "called a second time; MPI_Finalized tells whether it was called"
                         : "MPI_Init was not called, so there is nothing to finalize");
  spx_frame f = {.fn = SPX_IN_STOP};
  int err = spx_go_internal(&f);
  if (err) return spx_raise(0, NULL, err, "MPI_Finalize", "%s", spx_detail_text());
  spx_check_leaks();
  drain();
  pthread_mutex_lock(&life);
  if (sessions == 0) {
    spx_background_stop();
    f = (spx_frame){.fn = SPX_IN_STOPPED};
    err = spx_go_internal(&f);
    stopped = 1;
  }
  spx_world_model = SPX_FINALIZED;
  leave();
  pthread_mutex_unlock(&life);
  return err ? spx_raise(0, NULL, err, "MPI_Finalize", "%s", spx_detail_text()) : MPI_SUCCESS;
}

int spx_c_Session_finalize(MPI_Session *session)
{
  spx_plain *s = (spx_plain *)spx_get(SPX_K_SESSION, *session);
  if (!s)
    return spx_raise(0, NULL, MPI_ERR_SESSION, "MPI_Session_finalize",
                     "session is %p, which is no session, or was finalized", (void *)*session);
  void *buf;
  int64_t size;
  spx_buffer_detach(&s->o, &buf, &size); /* if there is one */
  drain();
  if (s->errh) spx_unref(SPX_K_ERRH, &s->errh->o);
  s->errh = NULL;
  spx_retire(SPX_K_SESSION, &s->o);
  *session = MPI_SESSION_NULL;
  pthread_mutex_lock(&life);
  sessions--;
  if (sessions == 0 && spx_world_model != SPX_INITIALIZED) spx_check_leaks();
  leave();
  pthread_mutex_unlock(&life);
  return MPI_SUCCESS;
}
