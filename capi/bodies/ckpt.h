/* ckpt.h - the part of checkpoints (capi/checkpoint*.go, package ckpt) that is C: the copying of
 * the program's memory. */
#ifndef SPX_CKPT_H
#define SPX_CKPT_H
#include "spx.h"

/* count elements of type at buf, of bytes altogether, go to `to`. */
typedef struct {
  uintptr_t to, buf;
  int64_t count, bytes;
  spx_type *type;
} spx_ckpt_packing;

/* a0: const spx_ckpt_packing *, a1: how many. Copies them. A call-out: it may take long, and pages
 * of the program's may have handlers. */
SPX_HIDDEN int64_t spx_ckpt_pack(spx_word *a);
#endif
