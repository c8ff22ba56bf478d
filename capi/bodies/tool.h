/* tool.h - what of the tool information interface (MPI-5.0, 16.3) is C: callbacks of events, which
 * the program may leave by longjmp, and what programs read often. All the rest is in core/tool and
 * capi/tool*.go. */
#ifndef SPX_TOOL_H
#define SPX_TOOL_H
#include "spx.h"
#include "stat.h"

/* The callback for events of a kind; addresses of the program's. dropped is 0 where there is
 * none. */
typedef struct {
  uint64_t order; /* grows from one registration to the next */
  uintptr_t key;  /* the registration's handle */
  uintptr_t fn, data, dropped;
  int64_t kind;
  uint32_t elements; /* how many an event of the kind has */
  uint32_t ints;     /* a bit for each of them that is an int; the others are unsigned long long */
} spx_listener;
/* These n, by order, are called from now on. wanted: a bit for each kind that one of them has.
 * false: no memory for more of them; all is as before. */
SPX_HIDDEN bool spx_tool_listen(const spx_listener *list, uint32_t n, uint32_t wanted);
/* Forgets the events, and how many were dropped, that no callback has been called for. */
SPX_HIDDEN void spx_tool_drop_events(void);
/* A call-out: a[0], an MPI_T_event_free_cb_function, is called for registration a[1] with the
 * user's data a[2]. */
SPX_HIDDEN int64_t spx_tool_freed(spx_word *a);

/* So many handles of a kind are there at most: core/tool. */
#define SPX_TOOL_HANDLES (1u << 20)
/* The value of MPI_T_pvar_read for a handle in a session: more, and a counter that is at an
 * address, or so far into spx_counted, or nowhere. */
typedef struct {
  uintptr_t key, session; /* key 0: the engine is called */
  const uint64_t *at;
  int64_t offset; /* -1: at counts */
  uint64_t more;
  uint64_t seconds; /* 1: a counter of nanoseconds, read as a double */
} spx_tool_view;
/* The handle of a key, which has this index among handles, is read as *v describes; false: no
 * memory, the engine is called. */
SPX_HIDDEN bool spx_tool_show(uint32_t index, const spx_tool_view *v);
/* Ends that. */
SPX_HIDDEN void spx_tool_hide(uint32_t index);
#endif
