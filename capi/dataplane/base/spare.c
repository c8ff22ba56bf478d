/* spare.c - see spare.h */
#include "spare.h"
#include <stdlib.h>

uint32_t spx_spare_class(uint64_t bytes)
{
  if (bytes < SPX_SPARE_LEAST || bytes > spx_spare_size(SPX_SPARE_CLASSES - 1))
    return SPX_SPARE_CLASSES;
  if (bytes == SPX_SPARE_LEAST) return 0;
  uint32_t doublings =
      /* that are below */
      (uint32_t)__builtin_clzll(SPX_SPARE_LEAST) - (uint32_t)__builtin_clzll(bytes - 1);
  uint64_t step = (uint64_t)(SPX_SPARE_LEAST / 4) << doublings;
  return 4 * doublings + (uint32_t)((bytes + step - 1) / step) - 4;
}

void *spx_spare_take(spx_spares *s, uint64_t bytes, uint32_t *class)
{
  *class = spx_spare_class(bytes);
  if (*class == SPX_SPARE_CLASSES) return malloc(bytes);
  spx_spare *b = s->of[*class];
  if (!b) return malloc(spx_spare_size(*class));
  s->of[*class] = b->next;
  s->bytes -= spx_spare_size(*class);
  if (s->bytes < s->low) s->low = s->bytes;
  return b;
}

void spx_spare_trim(spx_spares *s, uint64_t keep)
{
  for (uint32_t class = SPX_SPARE_CLASSES; class -- > 0;)
    for (spx_spare *b; s->bytes > keep && (b = s->of[class]);) {
      s->of[class] = b->next;
      s->bytes -= spx_spare_size(class);
      free(b);
    }
  if (s->bytes < s->low) s->low = s->bytes;
}

void spx_spare_keep(spx_spares *s, void *block, uint32_t class)
{
  if (class == SPX_SPARE_CLASSES || s->bytes + spx_spare_size(class) > s->most) {
    free(block);
    return;
  }
  spx_spare *b = block;
  b->next = s->of[class];
  s->of[class] = b;
  s->bytes += spx_spare_size(class);
  if (++s->looks < SPX_SPARE_LOOK) return;
  spx_spare_trim(s, s->bytes - s->low);
  s->looks = 0;
  s->low = s->bytes;
}
