/* win.h - what the bodies for windows share (win*.c, rma.c). */
#ifndef SPX_WIN_H
#define SPX_WIN_H
#include "rma.h"
#include "shim.h"

enum { SPX_HANDLE_WIN_NULL = 272 }; /* for Go: handles are pointers in mpi.h */

static inline spx_win *spx_win_of(MPI_Win win) { return (spx_win *)spx_get(SPX_K_WIN, win); }

/* Raises on the window, with the name of the MPI function. */
#define SPX_WIN_FAIL(w, code, ...)                                                                                     \
  spx_raise(SPX_K_WIN, (void *)(uintptr_t)(w)->o.handle, (code), spx_fn_name[spx_fn], __VA_ARGS__)

/* ---- win_sync.c ---- */
/* All processes of the window are here: an error class, with a detail text. Everything stored before it is seen after it. */
SPX_HIDDEN int spx_win_barrier(spx_win *w);
/* Is an epoch open, that MPI_Win_free must not end? */
SPX_HIDDEN int spx_win_busy(const spx_win *w);

/* ---- win.c ---- */
/* A new group of the window's processes; MPI_GROUP_NULL, with a detail text, when memory is out. */
SPX_HIDDEN MPI_Group spx_win_group(spx_win *w);

/* ---- for capi/win.go ---- */
/* A predefined attribute of the window with this handle: 1, and its value; 0 when keyval is none. */
SPX_HIDDEN int spx_win_predefined(uintptr_t handle, int keyval, uintptr_t *value);
/* May MPI_Win_free free it: an error class, with a detail text. */
SPX_HIDDEN int spx_win_may_go(uintptr_t handle);
/* The call-out of MPI_Win_free: waits for the other processes and frees the window with handle a[0].u. */
SPX_HIDDEN int64_t spx_win_go(spx_word *a);
/* Flavor of the window with this handle. */
SPX_HIDDEN int spx_win_flavor(uintptr_t handle);
#endif
