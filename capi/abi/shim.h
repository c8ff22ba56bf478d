/* shim.h - what the generated shims and the C bodies share.
 *
 * A shim (zz_*.c) checks its arguments and calls the body. A C body is  int spx_c_Send(...)  in a
 * file of this folder; it serves MPI_Send and MPI_Send_c. zz_bodies.h has the prototype of every
 * body, so that the compiler compares them:
 *   - a communicator, datatype or operation arrives as a checked spx_comm *, spx_type *, spx_op *;
 * NULL where it is not significant (sendtype with MPI_IN_PLACE, recvtype of MPI_Gather away from
 * the root) or may be null;
 *   - what is int in the small form and MPI_Count or MPI_Aint in the large one arrives as int64_t,
 * an array of such as spx_counts, the address of such a result as spx_count_out, a user function
 * with such arguments as spx_fnptr;
 *   - everything else is as in the C prototype of the small form.
 * A body raises its own errors (spx_raise) and returns the code.
 */
#ifndef SPX_SHIM_H
#define SPX_SHIM_H

#pragma GCC visibility push(default)
#include "mpi.h"
#include "mpi-ext.h"
#include "mpisp.h"
#include "ulfm_dyprc.h"
#pragma GCC visibility pop
#include "spx.h"
#include "zz_functions.h"

typedef struct {
  const void *p;
  int wide;
} spx_counts; /* const int *, or const MPI_Count * when wide */
typedef struct {
  void *p;
  int wide;
} spx_count_out; /* int *, or MPI_Count * when wide */
typedef struct {
  void *fn;
  int wide;
} spx_fnptr; /* MPI_User_function *, or MPI_User_function_c * when wide */

/* spx_go for functions of MPI_T, whose errors are return codes alone (MPI-5.0, 16.3.10). */
SPX_HIDDEN int spx_go_tool(spx_frame *f);

static inline int64_t spx_count_at(spx_counts c, int64_t i)
{
  return c.wide ? ((const int64_t *)c.p)[i] : ((const int *)c.p)[i];
}

static inline int64_t spx_count_get(spx_count_out o)
{
  return o.wide ? *(int64_t *)o.p : *(int *)o.p;
}

/* Stores a count: MPI_UNDEFINED when it does not fit an int (MPI-5.0, 2.5.8). */
static inline void spx_count_store(spx_count_out o, int64_t v)
{
  if (o.wide)
    *(int64_t *)o.p = v;
  else
    *(int *)o.p = v > INT32_MAX ? MPI_UNDEFINED : (int)v;
}

#include "zz_bodies.h"
#endif
