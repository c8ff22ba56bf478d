/* origin.h - where a message of a system of clusters comes from: a cluster and a rank there, in
 * place of a rank of the communicator.
 *
 * Messages to an I/O process (IOP), and those from it, carry such a number as their source
 * (spx_rec.src). Receives use the same numbers, with wildcards in either part: MPISP_CLUSTER_IN is
 * any of any. All of them are below every constant that MPI has. */
#ifndef SPX_ORIGIN_H
#define SPX_ORIGIN_H
#include <stdbool.h>
#include <stdint.h>
#include "mpi.h"
#include "mpisp.h"

#define SPX_ORIGIN_ANY_CLUSTER 255
#define SPX_ORIGIN_ANY_RANK    0x3fffff

static inline int32_t spx_origin_of(int cluster, int rank)
{
  return (int32_t)(0x80000000u | (uint32_t)cluster << 22 | (uint32_t)rank);
}
#define SPX_ORIGIN_ANY spx_origin_of(SPX_ORIGIN_ANY_CLUSTER, SPX_ORIGIN_ANY_RANK)
static inline bool spx_is_origin(int32_t src) { return src < -(1 << 30); }
static inline int spx_origin_cluster(int32_t origin) { return (int)((uint32_t)origin >> 22 & 255); }
static inline int spx_origin_rank(int32_t origin) { return origin & SPX_ORIGIN_ANY_RANK; }

/* A message from src is one of those that a receive from want takes. */
static inline bool spx_origin_fits(int32_t want, int32_t src)
{
  if (!spx_is_origin(want) || !spx_is_origin(src)) return false;
  int c = spx_origin_cluster(want), r = spx_origin_rank(want);
  return (c == SPX_ORIGIN_ANY_CLUSTER || c == spx_origin_cluster(src)) &&
         (r == SPX_ORIGIN_ANY_RANK || r == spx_origin_rank(src));
}

/* The rank that the user is shown for a source: the special one, but on an IOP that of the sender
 * in its cluster. */
__attribute__((visibility("hidden"))) int spx_origin_shown(int32_t src);
/* The same for a status that is being filled: it keeps the origin. st may be MPI_STATUS_IGNORE. */
__attribute__((visibility("hidden"))) int spx_origin_note(MPI_Status *st, int32_t src);
/* This process is an IOP. */
__attribute__((visibility("hidden"))) extern bool spx_io_process;
/* On an IOP: the origin of the message that this thread has received last, which is that of those
 * that it sends. */
__attribute__((visibility("hidden"))) extern __thread int32_t spx_origin_last
    __attribute__((tls_model("initial-exec")));
/* With transparent takeover: its number among those that its origin has sent to I/O processes. */
__attribute__((visibility("hidden"))) extern __thread uint32_t spx_origin_number
    __attribute__((tls_model("initial-exec")));
#endif
