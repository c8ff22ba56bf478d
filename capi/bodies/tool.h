/* tool.h - what of the tool information interface (MPI-5.0, 16.3) is C: callbacks of events, which the program may leave by longjmp. All the rest is in
 * core/tool and capi/tool*.go. */
#ifndef SPX_TOOL_H
#define SPX_TOOL_H
#include "spx.h"
#include "stat.h"

/* Whose callback is called for events of a kind; addresses of the program's. dropped is 0 where there is none. */
typedef struct {
  uint64_t order; /* grows from one registration to the next */
  uintptr_t key;  /* the registration's handle */
  uintptr_t fn, data, dropped;
  int64_t kind;
} spx_listener;
/* These n, by order, are called from now on. wanted: a bit for each kind that one of them has. false: no memory for more of them; all is as before. */
SPX_HIDDEN bool spx_tool_listen(const spx_listener *list, uint32_t n, uint32_t wanted);
/* Forgets the events, and how many were dropped, that no callback has been called for. */
SPX_HIDDEN void spx_tool_drop_events(void);
/* The event whose callback this thread is in, by the handle of its instance; NULL: it is in none, or not in that. */
SPX_HIDDEN const spx_event *spx_tool_instance(uintptr_t handle);
/* A call-out: a[0], an MPI_T_event_free_cb_function, is called for registration a[1] with the user's data a[2]. */
SPX_HIDDEN int64_t spx_tool_freed(spx_word *a);
#endif
