/* rankset.h - what the engine (capi/mcast.go) and the C side of sets of ranks share.
 * docs/multicast.md. */
#ifndef SPX_RANKSET_H
#define SPX_RANKSET_H
#include "spx.h"

/* A set of n ranks of the communicator with context ctx, whose process indices and ranks the caller
 * fills in. NULL: no memory. */
SPX_HIDDEN spx_rankset *spx_rankset_new(uint64_t ctx, uint32_t n);
#endif
