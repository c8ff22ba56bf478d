/* trace.h - what spxrun --trace and --profile see of a process: its MPI calls, and the messages
 * behind them (docs/tracing.md). The shims' files have a traced form of every MPI
 * function that may be traced, which calls it between spx_call_begin and spx_call_end. */
#ifndef SPX_TRACE_H
#define SPX_TRACE_H
#include "shim.h"
#include "plan.h"
#include "trace_file.h"

/* A call that is being traced. */
typedef struct spx_call {
  uint32_t fn;
  uint8_t flags, args;
  uint8_t coll; /* spx_coll_kind + 1; 0: no collective */
  const int64_t *arg;
  MPI_Comm comm;
  uint64_t bytes; /* that it sends, as far as its arguments say so */
  uint64_t begin, index;
  const void *site;
  /* the call that this one is in: of a user's function that MPI calls; or one that was left by
   * longjmp */
  struct spx_call *outer;
} spx_call;

/* Of the traced form of an entry: away from the code of calls that are not traced. */
#define SPX_TRACED __attribute__((cold, noinline))

/* What a shim does then. */
typedef enum { SPX_WAY_ON, SPX_WAY_TRACED, SPX_WAY_BAD } spx_way;
SPX_HIDDEN spx_way spx_find_way(void) __attribute__((cold, noinline));
SPX_HIDDEN extern SPX_TLS const void *spx_site; /* where the MPI call returns to */

/* Where the program has called what this thread is in, with SPX_ASIDE_TRACED or SPX_ASIDE_CHECKED;
 * NULL: that is not known. */
SPX_HIDDEN const void *spx_call_place(void);
/* Looks for libspx's Fortran library, whose calls are those of its caller. */
SPX_HIDDEN void spx_find_fortran(void);

SPX_HIDDEN void spx_call_begin(spx_call *c);
SPX_HIDDEN int spx_call_end(spx_call *c, int error);
SPX_HIDDEN uint64_t spx_call_bytes(int64_t count, MPI_Datatype type);

/* From the beginning of MPI, if it is wanted: began is when MPI_Init, or what stands for it, was
 * entered. */
SPX_HIDDEN void spx_trace_start(uint64_t began);
/* MPI has ended in this process. */
SPX_HIDDEN void spx_trace_stop(void);
#endif
