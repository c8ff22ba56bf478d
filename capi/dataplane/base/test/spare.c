/* Blocks that are kept: each class is the smallest that fits, a block that came back is the next
 * one taken, what is kept is bounded, and what was not needed for a while goes back. */
// sanitize: address,undefined
#include <stdlib.h>
#include <string.h>
#include "expect.h"
#include "spare.h"

static void classes(void)
{
  uint64_t largest = spx_spare_size(SPX_SPARE_CLASSES - 1);
  CHECK(spx_spare_size(0) == SPX_SPARE_LEAST && largest == 2u << 20);
  CHECK(spx_spare_class(1) == SPX_SPARE_CLASSES &&
        spx_spare_class(SPX_SPARE_LEAST - 1) == SPX_SPARE_CLASSES);
  for (uint64_t n = SPX_SPARE_LEAST; n <= largest; n += n < 70000 ? 1 : n / 77) {
    uint32_t c = spx_spare_class(n);
    CHECK(c < SPX_SPARE_CLASSES && spx_spare_size(c) >= n);
    CHECK(c == 0 || spx_spare_size(c - 1) < n);
    CHECK(c == 0 || spx_spare_size(c) < n + n / 4 + 1);
  }
  CHECK(spx_spare_class(largest) == SPX_SPARE_CLASSES - 1 &&
        spx_spare_class(largest + 1) == SPX_SPARE_CLASSES);
}

static void same_again(void)
{
  spx_spares s = {.most = 1 << 20};
  uint32_t c, d;
  char *a = spx_spare_take(&s, 65600, &c);
  memset(a, 1, 65600);
  spx_spare_keep(&s, a, c);
  CHECK(s.bytes == spx_spare_size(c));
  CHECK(spx_spare_take(&s, 66000, &d) == a && d == c && s.bytes == 0);
  memset(a, 1, 66000);
  spx_spare_keep(&s, a, c);
  char *long_one = spx_spare_take(&s, 3 << 20, &d); /* of no class */
  memset(long_one, 1, 3 << 20);
  spx_spare_keep(&s, long_one, d);
  CHECK(s.bytes == spx_spare_size(c));
  spx_spare_trim(&s, 0);
  CHECK(s.bytes == 0);
}

/* n blocks are taken and come back. */
static void wave(spx_spares *s, int n, uint64_t bytes)
{
  void *b[300];
  uint32_t c[300];
  for (int i = 0; i < n; i++) memset(b[i] = spx_spare_take(s, bytes, &c[i]), i, bytes);
  for (int i = 0; i < n; i++) spx_spare_keep(s, b[i], c[i]);
}

static void bounds(void)
{
  spx_spares s = {.most = 1 << 20};
  wave(&s, 300, 65600);
  CHECK(s.bytes <= s.most && s.bytes > s.most / 2);
  /* now one shorter block is needed at a time */
  for (int i = 0; i < 3 * SPX_SPARE_LOOK; i++) wave(&s, 1, 20000);
  CHECK(s.bytes < 30000);
  wave(&s, 10, 65600);
  uint64_t kept = s.bytes;
  /* what is needed again and again stays */
  for (int i = 0; i < 10 * SPX_SPARE_LOOK; i++) wave(&s, 10, 65600);
  CHECK(s.bytes == kept);
  spx_spare_trim(&s, 0);
}

int main(void)
{
  classes();
  same_again();
  bounds();
  return 0;
}
