/* participant.h - what each process of a test has, whatever layers it brings up: the shims'
 * answers, CHECK, a memory file, numbers and patterns. No Go, no launcher. */
#ifndef SPX_TEST_PARTICIPANT_H
#define SPX_TEST_PARTICIPANT_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "dp.h"

/* How often: all n times in the full tests (make test-all), few times otherwise; a fifth of
 * them. */
static inline int full_or(int n, int few)
{
  const char *tests = getenv("SPX_TESTS");
  return tests && strcmp(tests, "full") == 0 ? n : few;
}
static inline int full_or_fifth(int n) { return full_or(n, (n + 4) / 5); }

/* ---- what the shims give ---- */
int spx_mt;
SPX_TLS uint32_t spx_fn;
spx_comm *spx_world, *spx_self;
static SPX_TLS char detail[512];
void spx_detail(const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(detail, sizeof detail, fmt, ap);
  va_end(ap);
}
const char *spx_detail_text(void) { return detail; }
_Noreturn void spx_fatal(int code, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "process %u: fatal %d: ", spx_me, code);
  vfprintf(stderr, fmt, ap);
  fprintf(stderr, "\n");
  va_end(ap);
  _exit(99);
}

#define CHECK(ok)                                                                                  \
  do {                                                                                             \
    if (!(ok)) {                                                                                   \
      fprintf(stderr, "%s:%d: process %u: %s (%s)\n", __FILE__, __LINE__, spx_me, #ok,             \
              spx_detail_text());                                                                  \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)

/* ---- the memory file ---- */
static uint64_t up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

static int job_file(uint32_t maxprocs, uint32_t nprocs, uint32_t ncpus, uint32_t ring_bytes)
{
  spx_seg g = {.version = SPX_SEG_VERSION,
               .maxprocs = maxprocs,
               .nprocs = nprocs,
               .world_size = nprocs,
               .ncpus = ncpus,
               .ring_bytes = ring_bytes,
               .rings_per_proc = SPX_RINGS_PER_PROC};
  g.proc_off = 4096;
  g.proc_stride = sizeof(spx_proc);
  g.dirty_off = up(g.proc_off + maxprocs * g.proc_stride, 4096);
  g.dirty_stride = up(maxprocs, 64);
  g.held_off = up(g.dirty_off + maxprocs * g.dirty_stride, 4096);
  g.held_stride = g.dirty_stride;
  g.share_off = up(g.held_off + maxprocs * g.held_stride, 4096);
  g.chan_off = up(g.share_off + SPX_SHARE_ENTRIES * sizeof(spx_dir_entry), 4096);
  g.chan_row = up((uint64_t)maxprocs * SPX_CHAN_BYTES, 4096);
  g.sdesc_off = g.chan_off + maxprocs * g.chan_row;
  g.sdesc_row = SPX_SDESC_PER_PROC * 8;
  g.ring_off = up(g.sdesc_off + maxprocs * g.sdesc_row, 4096);
  g.ring_row = (uint64_t)SPX_RINGS_PER_PROC * ring_bytes;
  g.total_bytes = g.ring_off + maxprocs * g.ring_row;
  g.magic = SPX_SEG_MAGIC;
  int fd = memfd_create("job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, (off_t)g.total_bytes) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
      pwrite(fd, &g, sizeof g, 0) != (ssize_t)sizeof g) {
    perror("memory file");
    exit(1);
  }
  return fd;
}

static inline uint64_t now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A small random generator: the same everywhere. */
static inline uint32_t rnd(uint64_t *s)
{
  *s = *s * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(*s >> 33);
}
static inline uint8_t pattern(uint64_t key, uint64_t i)
{
  return (uint8_t)((key * 131 + i * 7 + (i >> 8)) & 0xff);
}

/* The same for many bytes, by blocks of 256, each of which is some part of one table: sanitizers
 * make loops over bytes slow. */
static uint8_t pattern_table[512];
__attribute__((constructor)) static void make_pattern_table(void)
{
  for (int i = 0; i < 512; i++) pattern_table[i] = (uint8_t)(i * 7);
}
static inline const uint8_t *pattern_block(uint64_t key, size_t block)
{
  return pattern_table + (uint8_t)((key * 131 + block) * 183); /* 7 * 183 is 1 modulo 256 */
}
static inline void pattern_fill(void *to, uint64_t key, size_t n)
{
  for (size_t at = 0; at < n; at += 256)
    memcpy((char *)to + at, pattern_block(key, at / 256), n - at < 256 ? n - at : 256);
}
static inline bool pattern_is(const void *here, uint64_t key, size_t n)
{
  for (size_t at = 0; at < n; at += 256)
    if (memcmp((const char *)here + at, pattern_block(key, at / 256),
               n - at < 256 ? n - at : 256) != 0)
      return false;
  return true;
}
#endif
