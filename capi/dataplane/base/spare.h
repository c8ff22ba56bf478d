/* spare.h - blocks that early messages leave, for those that come next.
 *
 * A message that comes before its receive waits in memory of its own. Given back to malloc, a block
 * of some tens of KiB is often at once given back to the system, and its pages are made anew for
 * the next message, which costs several times what copying the message does.
 *
 * Blocks come in classes of size, four to a doubling. What is kept is bounded, and what was not
 * needed for a while goes back to malloc. The caller holds the lock.
 */
#ifndef SPX_SPARE_H
#define SPX_SPARE_H
#include <stdint.h>
#include "basic.h"

enum {
  SPX_SPARE_LEAST =
      /* bytes of the smallest class: shorter blocks are best left to malloc, which keeps some
         itself */
  16384,
  SPX_SPARE_DOUBLINGS = 7, /* the largest: 2 MiB */
  SPX_SPARE_CLASSES = 4 * SPX_SPARE_DOUBLINGS + 1,
  SPX_SPARE_LOOK = 64 /* after so many blocks that came back it is seen what was not needed */
};

typedef struct spx_spare {
  struct spx_spare *next;
} spx_spare;

typedef struct {
  spx_spare *of[SPX_SPARE_CLASSES];
  uint64_t bytes; /* kept */
  uint64_t most;  /* bytes: of these */
  uint64_t low;   /* the least that was kept since the last look: so much was not needed */
  uint32_t looks; /* blocks that came back since then */
} spx_spares;

/* The bytes of a class. */
static inline uint64_t spx_spare_size(uint32_t class)
{
  return (uint64_t)(4 + class % 4) * (SPX_SPARE_LEAST / 4) << class / 4;
}

/* The smallest class whose blocks have so many bytes; SPX_SPARE_CLASSES if there is none: they are
 * not kept. */
SPX_HIDDEN uint32_t spx_spare_class(uint64_t bytes);
/* A block of at least so many bytes; stores its class. NULL: no memory. */
SPX_HIDDEN void *spx_spare_take(spx_spares *s, uint64_t bytes, uint32_t *class);
/* Returns a block, with the class that spx_spare_take stored. */
SPX_HIDDEN void spx_spare_keep(spx_spares *s, void *block, uint32_t class);
/* Gives back what is kept beyond so many bytes, the largest blocks first. */
SPX_HIDDEN void spx_spare_trim(spx_spares *s, uint64_t keep);

#endif
