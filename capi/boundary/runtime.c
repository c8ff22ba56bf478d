/* runtime.c - the door between C and Go: spx_go, call-outs, and the state of the process.
 * docs/decisions/boundary.md. */
#define _GNU_SOURCE
#include "runtime.h"
#include "shim.h"
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>

/* Exported by capi/main.go. */
extern int spxGoEnter(spx_frame *f, uint32_t *runner);
extern void spxGoCrash(spx_frame *f, uintptr_t *pcs, int n);
extern int spxGoDrop(uint32_t cont, uint32_t *runner);
extern void spxGoPrime(int threads);

_Atomic uint64_t spx_go_entries;
_Atomic int spx_state;
int spx_mt, spx_aside;
SPX_TLS uint32_t spx_fn;

/* A call-out that has not returned. The user's function may leave it by longjmp, and then Go's
 * continuation is dropped when that is certain. It may also change to another user-level thread,
 * which calls MPI meanwhile, and which may continue in another thread of the system: so the
 * call-outs of all threads are in one list. A runner's (SPX_CONT_RUNNER) continues, and is ended,
 * in the thread that it belongs to: Go requires that. */
typedef struct pending {
  struct pending *next;
  const spx_frame *frame;
  uint32_t cont;
  const void *thread;
  bool left; /* for its thread to end */
} pending;
static _Atomic(pending *) pendings; /* written with the lock */
static pthread_mutex_t pendings_lock = PTHREAD_MUTEX_INITIALIZER;
static SPX_TLS int primed; /* its address stands for the thread */
static SPX_TLS uint32_t runner;
/* the stack of the thread itself, when it was queried */
static SPX_TLS const char *thread_lo, *thread_hi;

typedef struct {
  spx_frame *f;
  uint32_t cont;
  int crashed, n;
  uintptr_t *pcs;
} entry;

static void go_enter(void *e)
{
  if (SPX_UNLIKELY(!primed)) {
    primed = 1;
    spxGoPrime(spx_go_threads);
  }
  atomic_fetch_add_explicit(&spx_go_entries, 1, memory_order_relaxed);
  ((entry *)e)->crashed = spxGoEnter(((entry *)e)->f, &runner);
}

static void go_drop(void *e) { ((entry *)e)->crashed = spxGoDrop(((entry *)e)->cont, &runner); }

static void go_crash(void *e) { spxGoCrash(((entry *)e)->f, ((entry *)e)->pcs, ((entry *)e)->n); }

/* Go has panicked, and has returned: prints both stacks and ends the job. */
static _Noreturn __attribute__((cold, noinline)) void crash(spx_frame *f)
{
  void *pcs[64];
  entry e = {.f = f, .n = backtrace(pcs, 64), .pcs = (uintptr_t *)pcs};
  spx_on_own_stack(go_crash, &e);
  spx_end_job(MPI_ERR_INTERN, "internal error, of which the report failed too; please report it");
}

static void enter(spx_frame *f)
{
  if (SPX_UNLIKELY(!spx_stack_ready())) {
    spx_detail("no memory for the stack on which the engine works for this thread");
    f->err = MPI_ERR_NO_MEM;
    f->cont = 0;
    return;
  }
  spx_sigstate s;
  entry e = {.f = f};
  spx_signals_enter(&s);
  spx_on_own_stack(go_enter, &e);
  if (SPX_UNLIKELY(e.crashed)) crash(f);
  spx_signals_leave(&s);
}

/* The stack of the thread itself, as long as there are call-outs: below it other ones cannot be
 * recognised. */
static bool on_thread_stack(const void *p)
{
  pthread_attr_t attr;
  void *lo;
  size_t n;
  if (SPX_UNLIKELY(!thread_hi)) {
    if (pthread_getattr_np(pthread_self(), &attr)) return false;
    if (pthread_attr_getstack(&attr, &lo, &n) == 0) thread_lo = lo, thread_hi = thread_lo + n;
    pthread_attr_destroy(&attr);
  }
  return (const char *)p >= thread_lo && (const char *)p < thread_hi;
}

/* A frame at f shows that p was left: f has taken its memory, or is at or above it on the stack of
 * the thread, which grows down. Other stacks are unknown; there the memory is taken sooner or
 * later. */
static bool was_left(const pending *p, const spx_frame *f, bool thread)
{
  return (p->frame < f + 1 && f < p->frame + 1) ||
         (thread && p->frame <= f && on_thread_stack(p->frame));
}

static inline bool is_runner(const pending *p) { return (p->cont & SPX_CONT_RUNNER) != 0; }

/* Ends what is after a call-out. */
static void drop(const pending *p)
{
  spx_sigstate s;
  spx_frame f = {.fn = spx_fn};
  entry e = {.f = &f, .cont = p->cont};
  spx_signals_enter(&s);
  spx_on_own_stack(go_drop, &e);
  if (SPX_UNLIKELY(e.crashed)) crash(&f);
  spx_signals_leave(&s);
}

/* Takes out of the list, and ends, those for which is_over is true. Those that belong to another
 * thread are left to that. */
static void drop_those(bool (*is_over)(const pending *, const spx_frame *, bool),
                       const spx_frame *f, bool thread)
{
  pending *over = NULL;
  pthread_mutex_lock(&pendings_lock);
  pending *first = pendings, **at = &first;
  for (pending *p; (p = *at);) {
    p->left |= is_over(p, f, thread);
    if (!p->left || (is_runner(p) && p->thread != &primed)) {
      at = &p->next;
      continue;
    }
    *at = p->next;
    p->next = over;
    over = p;
  }
  pendings = first;
  pthread_mutex_unlock(&pendings_lock);
  while (over) {
    pending *p = over;
    over = p->next;
    drop(p);
    free(p);
  }
}

/* A call-out that f itself has out is kept. */
static bool is_abandoned(const pending *p, const spx_frame *f, bool thread)
{
  return was_left(p, f, thread) && !(p->frame == f && p->cont == f->cont);
}

/* Drops the call-outs that were left by longjmp. C functions that Go calls do not: the runners of
 * this thread wait below. */
static void drop_abandoned(const spx_frame *f)
{
  if (spx_stack_ready() && !spx_in_go) drop_those(is_abandoned, f, on_thread_stack(f));
}

static bool ends_with_thread(const pending *p, const spx_frame *f, bool thread)
{
  (void)f;
  (void)thread;
  return p->thread == &primed && (is_runner(p) || on_thread_stack(p->frame));
}

void spx_runtime_thread_ends(void)
{
  spx_due_left((const void *)UINTPTR_MAX);
  if (pendings) drop_those(ends_with_thread, NULL, false);
}

uint32_t spx_runner_now(void) { return runner; }

static bool list(spx_frame *f)
{
  pending *p = malloc(sizeof *p);
  if (!p) return false;
  pthread_mutex_lock(&pendings_lock);
  *p = (pending){.next = pendings, .frame = f, .cont = f->cont, .thread = &primed};
  pendings = p;
  pthread_mutex_unlock(&pendings_lock);
  return true;
}

/* Takes the call-out of f off the list; false: it had been dropped, or it has come back in a thread
 * in which it cannot go on. */
static bool unlist(const spx_frame *f)
{
  pthread_mutex_lock(&pendings_lock);
  pending *first = pendings, **at = &first, *p;
  while ((p = *at) && (p->frame != f || p->cont != f->cont || p->left)) at = &p->next;
  bool here = p && (!is_runner(p) || p->thread == &primed);
  if (here)
    *at = p->next;
  else if (p)
    p->left = true;
  pendings = first;
  pthread_mutex_unlock(&pendings_lock);
  if (here) free(p);
  return here;
}

static int64_t call_user(spx_frame *f)
{
  spx_word *a = f->co_a;
  switch (f->co) {
  case SPX_CO_COPY_ATTR: {
    MPI_Comm_copy_attr_function *fn = (MPI_Comm_copy_attr_function *)f->co_fn;
    int flag = 0;
    a[6].p = NULL;
    int rc = fn((MPI_Comm)a[0].p, (int)a[1].i, a[2].p, a[3].p, &a[6].p, &flag);
    a[7].i = flag;
    return rc;
  }
  case SPX_CO_DELETE_ATTR:
    return ((MPI_Comm_delete_attr_function *)f->co_fn)((MPI_Comm)a[0].p, (int)a[1].i, a[2].p,
                                                       a[3].p);
  case SPX_CO_GREQ_QUERY:
    return ((MPI_Grequest_query_function *)f->co_fn)(a[0].p, (MPI_Status *)a[1].p);
  case SPX_CO_GREQ_FREE: return ((MPI_Grequest_free_function *)f->co_fn)(a[0].p);
  case SPX_CO_GREQ_CANCEL: return ((MPI_Grequest_cancel_function *)f->co_fn)(a[0].p, (int)a[1].i);
  case SPX_CO_DATAREP_EXTENT: {
    MPI_Aint extent = 0;
    int rc = ((MPI_Datarep_extent_function *)f->co_fn)((MPI_Datatype)a[0].p, &extent, a[1].p);
    a[6].i = extent;
    return rc;
  }
  case SPX_CO_DATAREP_CONVERT:
    if (a[6].i)
      return ((MPI_Datarep_conversion_function_c *)f->co_fn)(a[0].p, (MPI_Datatype)a[1].p, a[2].i,
                                                             a[3].p, a[4].i, a[5].p);
    return ((MPI_Datarep_conversion_function *)f->co_fn)(a[0].p, (MPI_Datatype)a[1].p, (int)a[2].i,
                                                         a[3].p, a[4].i, a[5].p);
  case SPX_CO_INTERNAL: return ((int64_t(*)(spx_word *))f->co_fn)(a);
  }
  spx_fatal(MPI_ERR_INTERN, "unknown call-out %u", f->co);
}

/* The function that this thread is in: apart, since the user's function may have come back in
 * another thread. */
static __attribute__((noinline)) void set_function(uint32_t fn) { spx_fn = fn; }

#define DROPPED (SPX_CONT_RUNNER - 1) /* no number of a continuation */

/* Performs the call that Go requested, with no Go frame below, no lock held, and the signals of the
 * application. */
static void carry_out(spx_frame *f)
{
  uint32_t fn = spx_fn;
  if (!list(f)) spx_fatal(MPI_ERR_NO_MEM, "no memory for a call-out");
  f->co_ret = call_user(f); /* may longjmp: the call-out is found in the list by a later entry */
  set_function(fn);
  drop_abandoned(f);
  if (!unlist(f)) f->cont = DROPPED;
}

/* Runs a frame to its end: the outcome is frame.err, its reason the detail text. */
static void run(spx_frame *f)
{
  f->cont = f->co = 0;
  if (SPX_UNLIKELY(pendings != NULL)) drop_abandoned(f);
  f->err = MPI_SUCCESS;
  f->err_kind = 0;
  f->err_handle = NULL;
  enter(f);
  while (SPX_UNLIKELY(f->cont)) {
    carry_out(f);
    enter(f);
  }
}

int spx_go_internal(spx_frame *f)
{
  run(f);
  return f->err;
}

int spx_go_tool(spx_frame *f)
{
  if (SPX_UNLIKELY(spx_forked)) return MPI_T_ERR_NOT_ACCESSIBLE;
  run(f);
  return SPX_LIKELY(f->err != MPI_ERR_NO_MEM) ? f->err : MPI_T_ERR_MEMORY;
}

int spx_go(spx_frame *f)
{
  if (SPX_UNLIKELY(spx_forked))
    return spx_raise(
        0, NULL, MPI_ERR_OTHER, spx_fn_name[f->fn],
        "called in a process forked after libspx was loaded; such a process may only exec");
  run(f);
  if (SPX_LIKELY(f->err == MPI_SUCCESS)) return MPI_SUCCESS;
  spx_raise((spx_kind)f->err_kind, f->err_handle, f->err, spx_fn_name[f->fn], "%s",
            spx_detail_text());
  return spx_code_left();
}
