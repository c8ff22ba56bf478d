/* win.h - what the bodies for windows share (win_sync.c, rma.c; capi/win*.go). */
#ifndef SPX_WIN_H
#define SPX_WIN_H
#include "rma.h"
#include "shim.h"

enum { SPX_HANDLE_WIN_NULL = 272 }; /* for Go: handles are pointers in mpi.h */

static inline spx_win *spx_win_of(MPI_Win win) { return (spx_win *)spx_get(SPX_K_WIN, win); }

/* Raises on the window, with the name of the MPI function. */
#define SPX_WIN_FAIL(w, code, ...)                                                                 \
  spx_raise(SPX_K_WIN, (void *)(uintptr_t)(w)->o.handle, (code), spx_fn_name[spx_fn], __VA_ARGS__)

/* ---- win_sync.c ---- */
/* A call-out of capi/win_make.go: processes elsewhere get answers about window a[0].p from now on,
 * or, if a[1].i is 0, no more; that waits for those that are under way. Returns an error class. */
SPX_HIDDEN int64_t spx_win_far(spx_word *a);
#endif
