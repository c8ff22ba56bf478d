/* file.h - the C part's view of a file: enough to read and write it where that is one system call.
 * MPI-5.0, 15.4.
 *
 * The engine (capi/io*.go) owns files; it writes here what a simple access needs, and clears `ways`
 * before it changes any of it. capi/bodies/file.c performs such accesses itself, and leaves all
 * others to the engine. */
#ifndef SPX_FILE_H
#define SPX_FILE_H
#include "spx.h"

/* spx_fh.ways: what may be done here. */
enum {
  SPX_FILE_READ = 1u,
  SPX_FILE_WRITE = 2u,
  /* with explicit offsets and the individual pointer: not MPI_MODE_SEQUENTIAL */
  SPX_FILE_POINTER = 4u,
  /* no process needs its peers for a collective read: agreed upon by all */
  SPX_FILE_READ_ALL = 8u,
  SPX_FILE_WRITE_ALL = 16u, /* nor for a collective write, but to agree on errors */
  SPX_FILE_SHARED = 32u /* with the shared pointer: it is in memory that this process has mapped */
};

typedef struct spx_fh {
  spx_obj o; /* these three first, as in spx_plain */
  struct spx_errh *errh;
  uint32_t session;
  _Atomic uint32_t ways;
  int fd;
  int64_t etype; /* bytes */
  int64_t first; /* offset in the file of position 0 of the view */
  /* the view is runs of so many bytes, so far apart; run 0: all in one piece */
  int64_t run, stride;
  _Atomic int64_t pos; /* individual pointer, in etypes: of the engine too */
  int64_t *shared;     /* SPX_FILE_SHARED: the shared pointer, in etypes */
  spx_comm *comm;      /* the file's own */
} spx_fh;
#endif
