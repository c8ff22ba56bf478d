/* tool.h - what the files of the tool information interface share. MPI-5.0, 16.3.
 *
 *   tool.c           beginning and end, handles, strings    tool_cvar.c   control variables and enumerations
 *   tool_pvar.c      performance variables                  tool_event.c  events and their sources
 *   tool_category.c  categories
 *
 * Everything works before MPI_Init and after MPI_Finalize, by several threads; errors are returned, never raised (16.3.10). */
#ifndef SPX_TOOL_H
#define SPX_TOOL_H
#include "settings.h"
#include "shim.h"
#include "stat.h"

/* Takes the lock of the interface; MPI_T_ERR_NOT_INITIALIZED (and no lock) outside of MPI_T_init_thread and MPI_T_finalize. */
SPX_HIDDEN int spx_tool_enter(void);
/* Lets go of it; returns code. */
SPX_HIDDEN int spx_tool_leave(int code);
#define SPX_TOOL_ENTER                                                                                                 \
  do {                                                                                                                 \
    int err_ = spx_tool_enter();                                                                                       \
    if (err_ != MPI_SUCCESS) return err_;                                                                              \
  } while (0)

/* Handles are numbers: kind, generation, index. A handle that was freed or never given out is found out. */
typedef enum { SPX_TH_CVAR = 1, SPX_TH_SESSION, SPX_TH_PVAR, SPX_TH_EVENT, SPX_TH_COUNT } spx_tool_kind;
/* A handle for object; NULL: no memory. */
SPX_HIDDEN void *spx_tool_handle(spx_tool_kind k, void *object);
/* The object, or NULL. */
SPX_HIDDEN void *spx_tool_find(spx_tool_kind k, const void *handle);
/* The handle is no more; the object is the caller's again. */
SPX_HIDDEN void spx_tool_forget(spx_tool_kind k, const void *handle);
/* Calls fn for each handle of a kind; fn may forget it. */
SPX_HIDDEN void spx_tool_each(spx_tool_kind k, void (*fn)(void *handle, void *object, void *arg), void *arg);

/* Stores a string into a user's buffer of *len bytes, and its length with the 0 into *len (16.3.3). */
SPX_HIDDEN void spx_tool_string(const char *s, char *to, int *len);
static inline void spx_tool_int(int *to, int v)
{
  if (to) *to = v;
}

/* One entry of a table with names. */
typedef struct {
  const char *name, *area, *description;
} spx_tool_entry;
SPX_HIDDEN const spx_tool_entry *spx_tool_pvar(int i); /* NULL: no more */
SPX_HIDDEN const spx_tool_entry *spx_tool_event(int i);

/* Enumerations (tool_cvar.c). */
SPX_HIDDEN MPI_T_enum spx_tool_enum_of(spx_setting_id id);
/* What MPI_T_finalize frees. */
SPX_HIDDEN void spx_tool_pvars_end(void);
SPX_HIDDEN void spx_tool_events_end(void);
#endif
