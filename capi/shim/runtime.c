/* runtime.c - the door between C and Go: spx_go, call-outs, and the state of the process. docs/decisions/boundary.md. */
#include "runtime.h"
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>

/* Exported by capi/main.go. */
extern int spxGoEnter(spx_frame *f);
extern void spxGoCrash(spx_frame *f, uintptr_t *pcs, int n);
extern void spxGoDrop(uint32_t cont);
extern void spxGoPrime(int threads);

_Atomic uint64_t spx_go_entries;
_Atomic int spx_state;
int spx_mt;
SPX_TLS uint32_t spx_fn;

/* A call-out of this thread that has not come back, innermost first. The user's function may leave it by longjmp: then a later
 * frame of the thread lies at or above its address (the stack grows down), and Go's continuation is dropped. */
typedef struct pending {
  struct pending *outer;
  const spx_frame *frame;
  uint32_t cont;
} pending;
static SPX_TLS pending *pendings;
static SPX_TLS int primed;

/* Go has panicked, and is out of the way again: tells both stacks and ends the job. */
static _Noreturn __attribute__((cold, noinline)) void crash(spx_frame *f)
{
  void *pcs[64];
  int n = backtrace(pcs, 64);
  spxGoCrash(f, (uintptr_t *)pcs, n);
  spx_end_job(MPI_ERR_INTERN, "internal error, of which the report failed too; please report it");
}

static void enter(spx_frame *f)
{
  spx_sigstate s;
  spx_signals_enter(&s);
  if (SPX_UNLIKELY(!primed)) {
    primed = 1;
    spxGoPrime(spx_go_threads);
  }
  atomic_fetch_add_explicit(&spx_go_entries, 1, memory_order_relaxed);
  if (SPX_UNLIKELY(spxGoEnter(f))) crash(f);
  spx_signals_leave(&s);
}

/* Drops the call-outs that were left by longjmp: all whose frame is not above f. A call-out that f itself has out is kept. */
static void drop_abandoned(const spx_frame *f, uint32_t keep)
{
  while (pendings && pendings->frame <= f && !(pendings->frame == f && pendings->cont == keep && keep)) {
    pending *p = pendings;
    pendings = p->outer;
    spx_sigstate s;
    spx_signals_enter(&s);
    spxGoDrop(p->cont);
    spx_signals_leave(&s);
    free(p);
  }
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
    return ((MPI_Comm_delete_attr_function *)f->co_fn)((MPI_Comm)a[0].p, (int)a[1].i, a[2].p, a[3].p);
  case SPX_CO_GREQ_QUERY: return ((MPI_Grequest_query_function *)f->co_fn)(a[0].p, (MPI_Status *)a[1].p);
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
      return ((MPI_Datarep_conversion_function_c *)f->co_fn)(a[0].p, (MPI_Datatype)a[1].p, a[2].i, a[3].p, a[4].i,
                                                             a[5].p);
    return ((MPI_Datarep_conversion_function *)f->co_fn)(a[0].p, (MPI_Datatype)a[1].p, (int)a[2].i, a[3].p, a[4].i,
                                                         a[5].p);
  case SPX_CO_INTERNAL: return ((int64_t(*)(spx_word *))f->co_fn)(a);
  }
  spx_fatal(MPI_ERR_INTERN, "unknown call-out %u", f->co);
}

/* Calls what Go asked for, with no Go frame below, no lock held, and the signals of the application. */
static void carry_out(spx_frame *f)
{
  pending *p = malloc(sizeof *p);
  if (!p) spx_fatal(MPI_ERR_NO_MEM, "no memory for a call-out");
  *p = (pending){.outer = pendings, .frame = f, .cont = f->cont};
  pendings = p;
  uint32_t fn = spx_fn;
  f->co_ret = call_user(f); /* may longjmp: p is found by the next entry */
  spx_fn = fn;
  drop_abandoned(f, f->cont);
  if (pendings == p) {
    pendings = p->outer;
    free(p);
  }
}

/* Runs a frame to its end: frame.err says how it went, the detail text why. */
static void run(spx_frame *f)
{
  if (SPX_UNLIKELY(pendings != NULL)) drop_abandoned(f, 0);
  f->cont = f->co = 0;
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

int spx_go(spx_frame *f)
{
  if (SPX_UNLIKELY(spx_forked))
    return spx_raise(0, NULL, MPI_ERR_OTHER, spx_fn_name[f->fn],
                     "called in a process forked after libspx was loaded; such a process may only exec");
  run(f);
  if (SPX_LIKELY(f->err == MPI_SUCCESS)) return MPI_SUCCESS;
  spx_raise((spx_kind)f->err_kind, f->err_handle, f->err, spx_fn_name[f->fn], "%s", spx_detail_text());
  return spx_code_left();
}
