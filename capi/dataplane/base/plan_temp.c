/* plan_temp.c - temporary memory of collectives: blocks by powers of two that are kept for the next
 * operation, since to give large blocks back to the system and to fault them in again costs more
 * than the operation. */
#include <stdlib.h>
#include "plan.h"

enum { LEAST = 12 /* log2 of the smallest block */, CLASSES = 52 };
#define KEPT_MAX ((size_t)32 << 20) /* bytes kept in all */

typedef struct block {
  struct block *next;
} block;
static block *kept[CLASSES];
static size_t kept_bytes;

static int class_of(size_t bytes)
{
  int c = 0;
  while (((size_t)1 << (LEAST + c)) < bytes) c++;
  return c;
}

void *spx_temp_get(size_t bytes)
{
  if (bytes > (size_t)1 << 60) return NULL;
  int c = class_of(bytes);
  spx_lock();
  block *b = kept[c];
  if (b) {
    kept[c] = b->next;
    SPX_ASSERT(kept_bytes >= (size_t)1 << (LEAST + c));
    kept_bytes -= (size_t)1 << (LEAST + c);
  }
  spx_unlock();
  return b ? b : aligned_alloc(64, (size_t)1 << (LEAST + c));
}

void spx_temp_put(void *p, size_t bytes)
{
  SPX_ASSERT(p && bytes <= (size_t)1 << 60);
  int c = class_of(bytes);
  size_t size = (size_t)1 << (LEAST + c);
  spx_lock();
  int keep = kept_bytes + size <= KEPT_MAX;
  if (keep) {
    block *b = p;
    b->next = kept[c];
    kept[c] = b;
    kept_bytes += size;
  }
  spx_unlock();
  if (!keep) free(p);
}
