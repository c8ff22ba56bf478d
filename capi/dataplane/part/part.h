/* part.h - partitioned communication. MPI-5.0, chapter 5. The requests are persistent: spx_start
 * starts them. */
#ifndef SPX_PART_H
#define SPX_PART_H
#include "spx.h"
/* A partitioned send or receive of partitions * count elements, not active. Arguments have been
 * checked; rank may be MPI_PROC_NULL. Returns an MPI error code. */
SPX_HIDDEN int spx_part_init(spx_req_kind kind, void *buf, int partitions, int64_t count,
                             spx_type *t, int rank, int tag, spx_comm *c, spx_request **out);
/* MPI_Pready of partitions [low, high] of an active send. MPI_ERR_ARG with its detail text when one
 * does not exist or is ready already. */
SPX_HIDDEN int spx_part_ready(spx_request *r, int low, int high);
/* Whether partition i of an active receive has arrived; MPI_ERR_ARG when there is none. */
SPX_HIDDEN int spx_part_arrived(spx_request *r, int i, int *flag);
#endif
