/* check_coll.h - SPX_CHECK=1: what a program does wrong in collectives and leaves behind
 * (docs/diagnosis.md). */
#ifndef SPX_CHECK_COLL_H
#define SPX_CHECK_COLL_H
#include "layout.h"
#include "plan.h"
#include "shim.h"

SPX_HIDDEN extern int spx_checking; /* SPX_CHECK=1, and there is memory for it */
/* Prepares it, after the memory file was adopted. */
SPX_HIDDEN void spx_check_start(void);
/* Compares this process's next operation with the peers' entries for the same operation: an error
 * code with a detail text. request: the call is nonblocking or persistent. */
SPX_HIDDEN int spx_check_collective(const spx_coll *c, int request);

/* The entries of a process of another host, and of this one, of the last operation in which the two
 * differ; false: of none since the last call. */
SPX_HIDDEN bool spx_check_apart(spx_diag_check of[2]);

/* ---- check_left.c ---- */
/* Where an object was made. */
typedef struct {
  const void *site; /* where the program has called fn; NULL: not known */
  uint32_t fn;
} spx_origin;
/* Of an object; NULL: it is predefined, or nothing is noted. */
SPX_HIDDEN const spx_origin *spx_check_origin(spx_kind k, const spx_obj *o);
/* How many messages were never received. The first is from *src, with *tag and *bytes. */
SPX_HIDDEN uint64_t spx_check_unreceived(int32_t *src, int32_t *tag, uint64_t *bytes);

/* From now on it is noted where objects are made. */
SPX_HIDDEN void spx_check_made(void);
/* An object that was made a moment ago is not the user's. */
SPX_HIDDEN void spx_check_inside(spx_kind k, const spx_obj *o);
/* Has capi/left.go report the objects left when MPI ends. */
SPX_HIDDEN void spx_check_leaks(void);
#endif
