/* ckpt.c - see ckpt.h. */
#include "ckpt.h"

int64_t spx_ckpt_pack(spx_word *a)
{
  const spx_ckpt_packing *p = a[0].p;
  for (int64_t i = 0; i < a[1].i; i++)
    spx_pack((const void *)p[i].buf, p[i].count, p[i].type, 0, p[i].bytes, (void *)p[i].to);
  return MPI_SUCCESS;
}
