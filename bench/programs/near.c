/* near.c - how far the processors of two ranks are from each other. The host of a virtual machine moves its processors every few seconds: now
 * they are two threads of a core, now two cores with a cache in common, now without. It is measured without MPI, by a word each in a file that both have mapped.
 * Further ranks sleep meanwhile, and each of the two has one of the machine's two processors. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "rows.h"

enum { TRIPS = 32, LOOKS = 6 };

static struct shared {
  _Alignas(128) _Atomic long asked;
  _Alignas(128) _Atomic long answered; /* rank 1's */
  _Alignas(128) long asking;           /* rank 0's own: the last number that it has asked with */
  _Alignas(128) _Atomic int over;      /* measurements, for those that sleep meanwhile */
} * shared;
static int seen; /* measurements */

/* One look in a wait for the other. It may still be in a call that needs this process's library: that is entered at times. */
static void pass(long *looks)
{
  int flag;
  if (++*looks % 20000 == 0) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

void near_open(void)
{
  char name[4096];
  int id = rank == 0 ? (int)getpid() : 0, file;
  MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(name, sizeof name, "%s/near.%d", folder, id);
  file = open(name, O_RDWR | O_CREAT, 0600);
  if (file >= 0 && ftruncate(file, sizeof *shared) == 0)
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || !shared || shared == MAP_FAILED) {
    perror(name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  close(file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) unlink(name);
}

/* The least time of half a round trip, in microseconds. */
static double distance(void)
{
  double least = 1e9;
  for (int look = 0; look < LOOKS; look++) {
    double start = now(), us;
    for (int i = 0; i < TRIPS; i++) {
      atomic_store_explicit(&shared->asked, ++shared->asking, memory_order_release);
      for (long n = 0; atomic_load_explicit(&shared->answered, memory_order_acquire) != shared->asking;) pass(&n);
    }
    us = (now() - start) * 1e6 / (2 * TRIPS);
    if (us < least) least = us;
  }
  return least;
}

/* Rank 1 answers until it is told so by a negative number. */
static void answer(void)
{
  for (long seen, last = atomic_load_explicit(&shared->answered, memory_order_relaxed);;) {
    for (long n = 0; (seen = atomic_load_explicit(&shared->asked, memory_order_acquire)) == last;) pass(&n);
    last = seen;
    atomic_store_explicit(&shared->answered, seen, memory_order_release);
    if (seen < 0) return;
  }
}

bool near_can(void)
{
  cpu_set_t mine;
  return size == 2 || (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) == 2);
}

/* To the first or second of the two processors, for two ranks that others might keep on one. was: what this process may use. */
static void part(cpu_set_t *was)
{
  cpu_set_t one;
  int cpu = -1;
  if (sched_getaffinity(0, sizeof *was, was) != 0 || size == 2) return;
  for (int k = 0; k <= rank; k++)
    for (cpu++; cpu < CPU_SETSIZE && !CPU_ISSET(cpu, was);) cpu++;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/* This process's library may have to do something yet for one that measures: it is entered at times. */
static void sleep_through(void)
{
  struct timespec ms = {0, 1000000};
  int flag;
  while (atomic_load(&shared->over) <= seen)
    if (syscall(SYS_futex, &shared->over, FUTEX_WAIT, seen, &ms, NULL, 0) != 0)
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

double near_now(void)
{
  double us = 0;
  cpu_set_t was;
  if (rank > 1) sleep_through();
  if (rank <= 1) part(&was);
  if (rank == 1) answer();
  if (rank == 0) {
    us = distance();
    atomic_store_explicit(&shared->asked, -++shared->asking, memory_order_release);
    for (long n = 0; atomic_load_explicit(&shared->answered, memory_order_acquire) >= 0;) pass(&n);
    atomic_fetch_add(&shared->over, 1);
    syscall(SYS_futex, &shared->over, FUTEX_WAKE, size, NULL, NULL, 0);
  }
  if (rank <= 1 && size > 2) sched_setaffinity(0, sizeof was, &was);
  seen++;
  return us;
}
