/* rlimits.c - limits on the memory of the process (ulimit -v, -d) that leave the library no room
 * are named before the Go runtime meets them: it would end the process with a dump of its own. */
#define _GNU_SOURCE
#include "rlimits.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
/* tables for all addresses there are, of which it uses little */
#define ADDRESSES_FOR_GO (1216 * MIB)
/* stacks and heaps of its threads, the job's memory file, tables */
#define ADDRESSES_FOR_REST (256 * MIB)
#define DATA               (160 * MIB)
/* a limit on addresses below which each thread does not get a heap of its own */
#define SCARCE (16384 * MIB)

static int fits(size_t bytes, int access)
{
  void *p = mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return 0;
  munmap(p, bytes);
  return 1;
}

/* Pages of the process, from /proc/self/statm: all, and those of data and stack. */
static size_t in_use(int data)
{
  unsigned long all = 0, rest = 0;
  FILE *f = fopen("/proc/self/statm", "re");
  if (f && fscanf(f, "%lu %*u %*u %*u %*u %lu", &all, &rest) != 2) all = rest = 0;
  if (f) fclose(f);
  return (size_t)(data ? rest : all) * (size_t)sysconf(_SC_PAGESIZE);
}

static void check(int resource, const char *of, const char *option, size_t need, int access)
{
  struct rlimit l;
  if (getrlimit(resource, &l) != 0 || l.rlim_cur == RLIM_INFINITY || fits(need, access)) return;
  size_t used = in_use(resource == RLIMIT_DATA);
  fprintf(stderr,
          "libspx: the limit on %s (ulimit %s) is %llu KiB: this process has %zu KiB before it "
          "starts MPI, and libspx "
          "needs %zu KiB more, most of it reserved and never used; set it to %zu or more, or to "
          "unlimited\n",
          of, option, (unsigned long long)l.rlim_cur >> 10, used >> 10, need >> 10,
          (used + need) >> 10);
  _exit(1);
}

/* The C library reserves 64 MiB of addresses for each thread that allocates memory, up to eight
 * times the processors, before anything else fails for want of them. Two such heaps are enough for
 * Go's threads. */
static void share_heaps(void)
{
  struct rlimit l;
  if (getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur < SCARCE) mallopt(M_ARENA_MAX, 2);
}

void spx_limits_check(void)
{
  check(RLIMIT_AS, "address space", "-v", ADDRESSES_FOR_GO + ADDRESSES_FOR_REST, PROT_NONE);
  share_heaps();
  check(RLIMIT_DATA, "data", "-d", DATA, PROT_READ | PROT_WRITE);
}
