/* copy.c - copies of more than a few hundred bytes.
 *
 * From SPX_COPY_MIN to SPX_COPY_MAX, loops of this library. The C library copies such sizes by `rep
 * movsb`, which takes 1.4 times as long where source and destination are not at the same offset in
 * a cache line; and long buffers from malloc begin 16 bytes after a page.
 *
 * Copies to memory that the caches can not hold: stores that go past them. Such a store does not
 * read the line first, nor does it evict other data; but a process that uses the data soon has to
 * fetch them from memory. So these stores are for messages that are several times this process's
 * part of the last-level cache, into the receiver's buffer; and for memory read by another process
 * whose processor shares no cache with ours: there each line of a plain store has to be fetched
 * from the other cache first. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "dp.h"

enum { NONE = 32 << 20 /* assumed size where the system does not report one */, LEVELS = 4 };

/* Neither end of the one is in the other. */
static bool are_apart(const void *a, const void *b, size_t n)
{
  return (uintptr_t)a - (uintptr_t)b >= n && (uintptr_t)b - (uintptr_t)a >= n;
}

/* At least 128 bytes. The last 128 are read and written whatever the loop has done: so it needs no
 * end of its own. */
__attribute__((target("avx2"))) static void copy_avx2(char *to, const char *from, size_t n)
{
  typedef __m256i word;
  const word *last = (const word *)(from + n - 4 * sizeof(word));
  word *last_to = (word *)(to + n - 4 * sizeof(word));
  word a = _mm256_loadu_si256(last), b = _mm256_loadu_si256(last + 1),
       c = _mm256_loadu_si256(last + 2), d = _mm256_loadu_si256(last + 3);
  _mm256_storeu_si256((word *)to, _mm256_loadu_si256((const word *)from));
  size_t head = sizeof(word) - (uintptr_t)to % sizeof(word);
  const word *s = (const word *)(from + head);
  for (word *t = (word *)(to + head); t < last_to; t += 4, s += 4) {
    word x = _mm256_loadu_si256(s), y = _mm256_loadu_si256(s + 1), z = _mm256_loadu_si256(s + 2),
         w = _mm256_loadu_si256(s + 3);
    _mm256_store_si256(t, x);
    _mm256_store_si256(t + 1, y);
    _mm256_store_si256(t + 2, z);
    _mm256_store_si256(t + 3, w);
  }
  _mm256_storeu_si256(last_to, a);
  _mm256_storeu_si256(last_to + 1, b);
  _mm256_storeu_si256(last_to + 2, c);
  _mm256_storeu_si256(last_to + 3, d);
}

void spx_copy_wide(void *to, const void *from, size_t n)
{
  static int wide = -1; /* can this processor do that? */
  if (SPX_UNLIKELY(wide < 0)) {
    __builtin_cpu_init();
    wide = __builtin_cpu_supports("avx2") != 0;
  }
  if (n <= spx_set.copy_max && n >= 128 && wide > 0 && are_apart(to, from, n))
    copy_avx2(to, from, n);
  else
    memmove(to, from, n);
}

void spx_copy_past_cache(void *to, const void *from, size_t n)
{
  char *d = to;
  const char *s = from;
  size_t head = -(uintptr_t)d % SPX_LINE;
  if (head > n) head = n;
  memcpy(d, s, head);
  for (d += head, s += head, n -= head; n >= SPX_LINE;
       d += SPX_LINE, s += SPX_LINE, n -= SPX_LINE) {
    __m128i a = _mm_loadu_si128((const __m128i *)s), b = _mm_loadu_si128((const __m128i *)(s + 16)),
            c = _mm_loadu_si128((const __m128i *)(s + 32)),
            e = _mm_loadu_si128((const __m128i *)(s + 48));
    _mm_stream_si128((__m128i *)d, a);
    _mm_stream_si128((__m128i *)(d + 16), b);
    _mm_stream_si128((__m128i *)(d + 32), c);
    _mm_stream_si128((__m128i *)(d + 48), e);
  }
  memcpy(d, s, n);
  /* these stores are not ordered with the one that marks the message as complete */
  _mm_sfence();
}

uint64_t spx_copy_into(spx_into *into, void *to, const void *from, size_t n, uint64_t message)
{
  bool timed = spx_into_timed(into, spx_set.apart_every);
  uint64_t start = timed ? spx_now_ns() : 0;
  bool usual = into->past && message <= spx_set.apart_max;
  bool past = timed ? spx_into_next(into, n, start, 1000 * spx_set.apart_trial) : usual;
  if (past)
    spx_copy_past_cache(to, from, n);
  else
    memcpy(to, from, n);
  if (!timed) return 0;
  uint64_t ns = spx_now_ns() - start;
  spx_into_took(into, past, n, ns);
  return past == usual ? ns : 0;
}

/* Reads a file of the first processor's cache of a level; false: there is none. */
static bool read_cache(int level, const char *what, char *text, size_t room)
{
  char path[96];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", level, what);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, room - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

/* Processors in a list such as 0-7,64-71. */
static uint64_t count_list(const char *s)
{
  uint64_t n = 0;
  for (char *end; *s >= '0' && *s <= '9'; s = *end == ',' ? end + 1 : end) {
    uint64_t a = strtoull(s, &end, 10), b = *end == '-' ? strtoull(end + 1, &end, 10) : a;
    n += b >= a ? b - a + 1 : 0;
  }
  return n ? n : 1;
}

uint64_t spx_cache_part(uint64_t users)
{
  char text[256], *unit;
  int level = LEVELS;
  while (level > 0 && !read_cache(level, "size", text, sizeof text)) level--;
  if (level == 0) return NONE / users;
  uint64_t size = strtoull(text, &unit, 10);
  size *= *unit == 'K' ? 1u << 10 : *unit == 'M' ? 1u << 20 : 1;
  uint64_t sharing = read_cache(level, "shared_cpu_list", text, sizeof text) ? count_list(text) : 1;
  return size / (users < sharing ? users : sharing);
}
