/* copy.c - copies to memory that the caches can not hold: stores that go past them. Such a store does not read the line
 * first, nor does it push out what else is there; but who uses the data soon has to fetch them from memory. So it is for
 * messages that are several times this process's part of the last-level cache, into the receiver's buffer; and for memory that
 * another process reads where its processor shares no cache with ours: there each line of a plain store has to be fetched from that
 * one's cache first.
 */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "dp.h"

enum { NONE = 32 << 20 /* taken for the size where the system does not tell */, LEVELS = 4 };

void spx_copy_past_cache(void *to, const void *from, size_t n)
{
  char *d = to;
  const char *s = from;
  size_t head = -(uintptr_t)d % SPX_LINE;
  if (head > n) head = n;
  memcpy(d, s, head);
  for (d += head, s += head, n -= head; n >= SPX_LINE; d += SPX_LINE, s += SPX_LINE, n -= SPX_LINE) {
    __m128i a = _mm_loadu_si128((const __m128i *)s), b = _mm_loadu_si128((const __m128i *)(s + 16)),
            c = _mm_loadu_si128((const __m128i *)(s + 32)), e = _mm_loadu_si128((const __m128i *)(s + 48));
    _mm_stream_si128((__m128i *)d, a);
    _mm_stream_si128((__m128i *)(d + 16), b);
    _mm_stream_si128((__m128i *)(d + 32), c);
    _mm_stream_si128((__m128i *)(d + 48), e);
  }
  memcpy(d, s, n);
  _mm_sfence(); /* these stores are not ordered with the one that says that the message is complete */
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
