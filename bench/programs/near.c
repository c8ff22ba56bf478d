/* near.c - how far the processors of two ranks are from each other. The host of a virtual machine moves its processors every few seconds: now
 * they are two threads of a core, now two cores with a cache in common, now without. It is measured without MPI, by a word each in a file that both have mapped. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rows.h"

enum { TRIPS = 32, LOOKS = 6 };

static struct shared {
  _Alignas(128) _Atomic long asked;
  _Alignas(128) _Atomic long answered; /* rank 1's */
  _Alignas(128) long asking;           /* rank 0's own: the last number that it has asked with */
} * shared;

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

double near_now(void)
{
  double us = 0;
  if (rank == 1) {
    answer();
    return us;
  }
  us = distance();
  atomic_store_explicit(&shared->asked, -++shared->asking, memory_order_release);
  for (long n = 0; atomic_load_explicit(&shared->answered, memory_order_acquire) >= 0;) pass(&n);
  return us;
}
