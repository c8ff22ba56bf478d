/* Copies by the loops of this library (copy.c): every size around the thresholds at every
 * alignment, long ones at random, and overlapping ones; nothing outside the ranges is written or
 * read. */
// sanitize: address,undefined
#include "dp.h"
#include "expect.h"

enum { MIN = 128, MAX = 4096, EDGE = 64 };

spx_settings spx_set = {.copy_min = MIN, .copy_max = MAX};

/* From the end of one block of memory to the end of another, so that the sanitizer sees a byte too
 * far; `before` bytes lie in front. */
static void apart(size_t n, size_t from_before, size_t to_before)
{
  unsigned char *from = malloc(from_before + n), *to = malloc(to_before + n);
  CHECK(from && to);
  for (size_t i = 0; i < from_before + n; i++) from[i] = (unsigned char)(i * 7 + n);
  memset(to, 0xee, to_before + n);
  spx_copy(to + to_before, from + from_before, n);
  CHECK(memcmp(to + to_before, from + from_before, n) == 0);
  for (size_t i = 0; i < to_before; i++) CHECK(to[i] == 0xee);
  free(from);
  free(to);
}

/* As memmove, whichever of the two lies first. */
static void overlapping(size_t n, size_t by)
{
  unsigned char *a = malloc(n + by), *want = malloc(n + by);
  CHECK(a && want);
  for (int down = 0; down < 2; down++) {
    for (size_t i = 0; i < n + by; i++) a[i] = want[i] = (unsigned char)(i * 13 + i / 256);
    memmove(want + (down ? 0 : by), want + (down ? by : 0), n);
    spx_copy(a + (down ? 0 : by), a + (down ? by : 0), n);
    CHECK(memcmp(a, want, n + by) == 0);
  }
  free(a);
  free(want);
}

int main(void)
{
  for (size_t n = MIN - 2; n < MIN + 300; n++)
    for (size_t at = 0; at < EDGE; at += 5) apart(n, at, (at * 11 + n) % EDGE);
  for (size_t n = MAX - 70; n < MAX + 70; n++) apart(n, n % EDGE, n / 3 % EDGE);
  unsigned seed = 1;
  for (int i = 0; i < 3000; i++) {
    seed = seed * 1103515245 + 12345;
    apart(MIN + seed / 65536 % (MAX - MIN), seed / 7 % EDGE, seed / 11 % EDGE);
  }
  for (size_t by = 1; by < 300; by += by < 140 ? 1 : 13) overlapping(600, by);
  overlapping(600, 600);
  return 0;
}
