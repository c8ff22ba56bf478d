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
/* Tells of what is left at MPI_Finalize. */
SPX_HIDDEN void spx_check_leaks(void);
#endif
