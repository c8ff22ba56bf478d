/* check_coll.h - SPX_CHECK=1: what a program does wrong in collectives and leaves behind (docs/diagnosis.md). */
#ifndef SPX_CHECK_COLL_H
#define SPX_CHECK_COLL_H
#include "plan.h"
#include "shim.h"

SPX_HIDDEN extern int spx_checking; /* SPX_CHECK=1, and there is memory for it */
/* Prepares it, after the memory file was adopted. */
SPX_HIDDEN void spx_check_start(void);
/* Compares what this process is about to do with what the others do in the same operation: an error code with a detail text. request: the call is
 * nonblocking or persistent. */
SPX_HIDDEN int spx_check_collective(const spx_coll *c, int request);

/* ---- check_left.c ---- */
/* What is left, of one kind and from one place; SPX_IN_LEFT gets an array of them (capi/left.go). */
typedef struct {
  uint32_t kind; /* SPX_K_*, SPX_LEFT_PERSISTENT */
  uint32_t fn;   /* that has made it */
  uint64_t site; /* where the program has called that; 0: not known */
  uint64_t n;
} spx_left;
enum { SPX_LEFT_PERSISTENT = SPX_K_COUNT, SPX_LEFT_KEYVAL };

/* From now on it is noted where objects are made. */
SPX_HIDDEN void spx_check_made(void);
/* An object that was made a moment ago is not the user's. */
SPX_HIDDEN void spx_check_inside(spx_kind k, const spx_obj *o);
/* Tells of what is left when MPI ends. */
SPX_HIDDEN void spx_check_leaks(void);
#endif
