/* large.h - buffers of more than 2^31 bytes that take little memory: the same 16 MiB of pages stand again and again in the address
 * space, but for the last, which are memory of their own. What is written there has the same contents in every repetition. */
#ifndef LARGE_H
#define LARGE_H
#include "../check.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define REPEAT ((int64_t)16 << 20)
#define N      (((MPI_Count)1 << 31) + 4099) /* 128 repetitions and a bit */

static inline int64_t own_part(int64_t n) { return n / REPEAT * REPEAT; }

static inline unsigned char pattern(int seed, int64_t i)
{
  return (unsigned char)((i * 37 + (i >> 9) * 11 + seed * 53) & 255);
}

static inline char *large(int64_t n)
{
  int fd = memfd_create("large", MFD_CLOEXEC);
  char *p = mmap(NULL, (size_t)n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fd < 0 || p == MAP_FAILED || ftruncate(fd, REPEAT)) MPI_Abort(MPI_COMM_WORLD, 3);
  for (int64_t at = 0; at < own_part(n); at += REPEAT)
    if (mmap(p + at, (size_t)REPEAT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) ==
        MAP_FAILED)
      MPI_Abort(MPI_COMM_WORLD, 4);
  if (mprotect(p + own_part(n), (size_t)(n - own_part(n)), PROT_READ | PROT_WRITE)) MPI_Abort(MPI_COMM_WORLD, 5);
  close(fd);
  return p;
}

static inline void fill(char *p, int64_t n, int seed)
{
  for (int64_t i = 0; i < REPEAT && i < n; i++) p[i] = (char)pattern(seed, i);
  for (int64_t i = own_part(n); i < n; i++) p[i] = (char)pattern(seed + 1, i);
}

static inline int same(const char *p, int64_t n, int seed)
{
  for (int64_t i = 0; i < REPEAT && i < n; i++)
    if (p[i] != (char)pattern(seed, i)) return 0;
  for (int64_t i = own_part(n); i < n; i++)
    if (p[i] != (char)pattern(seed + 1, i)) return 0;
  return 1;
}

/* From here on the process may have at most 1 GiB more of memory of its own (mappings that repeat are not counted): nothing of the
 * size of the data is allocated. */
static inline void small_memory(void)
{
  char line[256];
  long long kib = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f)) sscanf(line, "VmData: %lld", &kib);
  if (f) fclose(f);
  struct rlimit r = {(rlim_t)(kib << 10) + ((rlim_t)1 << 30), RLIM_INFINITY};
  CHECK(kib > 0 && setrlimit(RLIMIT_DATA, &r) == 0);
}
#endif
