/* buffers.c - the memory that libfabric reads and writes: blocks of buffers, registered where the
 * provider asks for it, and kept until the endpoint is closed. What a remote device may still write
 * to is so never given back before. */
#include "fabric.h"
#ifdef SPX_HAS_FABRIC
#include <stdlib.h>

#define BLOCK 16 /* buffers */

typedef struct block {
  struct block *next;
  uint8_t *memory;
  struct fid_mr *region;
  spx_fabric_buffer buffers[BLOCK];
} block;

static block *blocks;
static spx_fabric_buffer *free_ones;
static int shortage;

int spx_fabric_shortage(void) { return shortage; }

static int enlist(block *k)
{
  const struct fi_domain_attr *a = spx_fabric.info->domain_attr;
  if (!(a->mr_mode & FI_MR_LOCAL)) return 0;
  int err = fi_mr_reg(spx_fabric.domain, k->memory, BLOCK * SPX_FABRIC_MESSAGE, FI_SEND | FI_RECV,
                      0, 0, 0, &k->region, NULL);
  if (err || !(a->mr_mode & FI_MR_ENDPOINT)) return err;
  err = fi_mr_bind(k->region, &spx_fabric.ep->fid, 0);
  return err ? err : fi_mr_enable(k->region);
}

static void release(block *k)
{
  if (k->region) fi_close(&k->region->fid);
  free(k->memory);
  free(k);
}

static void grow(void)
{
  block *k = calloc(1, sizeof *k);
  if (k) k->memory = aligned_alloc(4096, BLOCK * SPX_FABRIC_MESSAGE);
  shortage = k && k->memory ? -enlist(k) : FI_ENOMEM;
  if (shortage) {
    if (k) release(k);
    return;
  }
  k->next = blocks;
  blocks = k;
  for (int i = 0; i < BLOCK; i++) {
    spx_fabric_buffer *b = &k->buffers[i];
    b->head = (spx_fabric_head *)(k->memory + (size_t)i * SPX_FABRIC_MESSAGE);
    b->desc = k->region ? fi_mr_desc(k->region) : NULL;
    spx_fabric_put(b);
  }
}

spx_fabric_buffer *spx_fabric_take(void)
{
  if (!free_ones) grow();
  spx_fabric_buffer *b = free_ones;
  if (b) free_ones = b->next;
  return b;
}

void spx_fabric_put(spx_fabric_buffer *b)
{
  b->next = free_ones;
  free_ones = b;
}

void spx_fabric_free_all(void)
{
  for (block *k = blocks, *next; k; k = next) {
    next = k->next;
    release(k);
  }
  blocks = NULL;
  free_ones = NULL;
}
#endif
