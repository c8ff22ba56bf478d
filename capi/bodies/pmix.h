/* pmix.h - the client side of PMIx, by which processes find each other that Slurm (--mpi=pmix),
 * PRRTE or Open MPI's mpirun has started. The library is loaded when such a process begins
 * (libpmix.so.2); nothing of it is needed to build libspx. Used while a job begins, and left
 * again. */
#ifndef SPX_PMIX_H
#define SPX_PMIX_H
#include <stddef.h>
#include <stdint.h>
#include "spx.h"

enum {
  SPX_PMIX_NAME = 256,            /* room for the name of a job */
  SPX_PMIX_NO_LIBRARY = -1000000, /* spx_pmix_why has the reason */
  SPX_PMIX_OTHER_TYPE = -1000001, /* a value is there, of another type */
  SPX_PMIX_NO_ROOM = -1000002     /* ... longer than the room */
};
#define SPX_PMIX_ALL 0xfffffffeu /* for a rank: the job */

/* All return 0, one of the above, or a status of PMIx, which is negative. */
SPX_HIDDEN int spx_pmix_begin(char *name, uint32_t *rank); /* the job's name, this process's rank */
/* of a rank, or of the job */
SPX_HIDDEN int spx_pmix_number(uint32_t rank, const char *key, uint32_t *value);
SPX_HIDDEN int spx_pmix_text(uint32_t rank, const char *key, char *value, size_t room);
SPX_HIDDEN int spx_pmix_put(const char *key,
                            const char *value); /* visible to the peers after the fence */
SPX_HIDDEN int spx_pmix_fence(void);            /* of all processes of the job */
SPX_HIDDEN void spx_pmix_end(void);
SPX_HIDDEN const char *spx_pmix_why(int status);
#endif
