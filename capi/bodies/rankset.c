/* rankset.c - the C side of a set of ranks: what multicasts and collectives over it need without
 * entering Go. */
#include "rankset.h"
#include <stdlib.h>

static void destroy(spx_obj *o)
{
  free(((spx_rankset *)o)->procs);
  free(((spx_rankset *)o)->ranks);
  ((spx_rankset *)o)->procs = NULL;
  ((spx_rankset *)o)->ranks = NULL;
}

spx_rankset *spx_rankset_new(uint64_t ctx, uint32_t n)
{
  spx_rankset *s = (spx_rankset *)spx_new(SPX_K_RANKSET);
  if (!s) return NULL;
  spx_destructor[SPX_K_RANKSET] = destroy;
  s->ctx = ctx;
  s->n = n;
  s->procs = malloc((n ? n : 1) * sizeof *s->procs);
  s->ranks = malloc((n ? n : 1) * sizeof *s->ranks);
  if (s->procs && s->ranks) return s;
  spx_retire(SPX_K_RANKSET, &s->o);
  return NULL;
}
