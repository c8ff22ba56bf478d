/* limits.c - what the machine itself can do, without any MPI: lines "row bytes microseconds" as rows.c prints them.
 *
 *   ring      two processes hand a cache line with a counter to and fro in shared memory, half a round trip
 *   futex     the same, but the waiter sleeps in the kernel
 *   memcpy    a copy within a process
 *   cma       a copy out of another process's memory (process_vm_readv)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 5, BIGGEST = 4 << 20 };

typedef struct line {
  _Atomic uint32_t turn;
  char pad[60];
} line;

static line *shared; /* [0] is written by the parent, [1] by the child */

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void wait_for(int side, uint32_t value, int sleeping)
{
  uint32_t seen;
  while ((seen = atomic_load_explicit(&shared[side].turn, memory_order_acquire)) < value) {
    if (sleeping)
      syscall(SYS_futex, &shared[side].turn, FUTEX_WAIT, seen, NULL, NULL, 0);
    else
      __builtin_ia32_pause();
  }
}

static void set(int side, uint32_t value, int sleeping)
{
  atomic_store_explicit(&shared[side].turn, value, memory_order_release);
  if (sleeping) syscall(SYS_futex, &shared[side].turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void print(const char *row, size_t bytes, double *seconds, double operations)
{
  qsort(seconds, BATCHES, sizeof(double), ascending);
  printf("%s %zu %.4f\n", row, bytes, seconds[BATCHES / 2] * 1e6 / operations);
  fflush(stdout);
}

static void turns(const char *row, uint32_t times, int sleeping)
{
  double seconds[BATCHES];
  shared[0].turn = shared[1].turn = 0;
  pid_t child = fork();
  if (child == 0) {
    for (uint32_t i = 1; i <= times * BATCHES; i++) {
      wait_for(0, i, sleeping);
      set(1, i, sleeping);
    }
    _exit(0);
  }
  for (uint32_t b = 0; b < BATCHES; b++) {
    double start = now();
    for (uint32_t i = b * times + 1; i <= (b + 1) * times; i++) {
      set(0, i, sleeping);
      wait_for(1, i, sleeping);
    }
    seconds[b] = now() - start;
  }
  waitpid(child, NULL, 0);
  print(row, 8, seconds, 2.0 * times);
}

/* Copies by memcpy (child 0), or out of a child's memory. */
static void copies(const char *row, size_t bytes, char *to, char *from, pid_t child)
{
  double seconds[BATCHES];
  long times = (long)((64u << 20) / bytes) + 1;
  for (int b = -1; b < BATCHES; b++) {
    double start = now();
    for (long i = 0; i < times; i++) {
      struct iovec here = {to, bytes}, there = {from, bytes};
      if (!child)
        memcpy(to, from, bytes);
      else if (process_vm_readv(child, &here, 1, &there, 1, 0) != (ssize_t)bytes) {
        fprintf(stderr, "limits: process_vm_readv: %s\n", strerror(errno));
        return;
      }
      __asm__ volatile("" : : "r"(to) : "memory");
    }
    if (b >= 0) seconds[b] = now() - start;
  }
  print(row, bytes, seconds, (double)times);
}

int main(void)
{
  static const size_t sizes[] = {4096, 65536, 1048576, BIGGEST};
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char *to = malloc(BIGGEST), *from = malloc(BIGGEST);
  if (shared == MAP_FAILED || !to || !from) return 1;
  memset(to, 1, BIGGEST);
  memset(from, 2, BIGGEST);
  if (sysconf(_SC_NPROCESSORS_ONLN) > 1) turns("ring", 200000, 0);
  turns("futex", 5000, 1);
  for (int i = 0; i < 4; i++) copies("memcpy", sizes[i], to, from, 0);
  int ready[2];
  if (pipe(ready)) return 1;
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, 9);
    memset(from, 3, BIGGEST); /* own pages, no longer the parent's */
    if (write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  char c;
  if (read(ready[0], &c, 1) != 1) return 1;
  for (int i = 0; i < 4; i++) copies("cma", sizes[i], to, from, child);
  kill(child, 9);
  waitpid(child, NULL, 0);
  return 0;
}
