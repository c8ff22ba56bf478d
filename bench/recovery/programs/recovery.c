/* recovery.c - how long from a death to the first barrier on the communicator of the survivors.
 *
 *   recovery FILE CASE [SEED]
 *
 * FILE is of 4 KiB, all zero: those who die write the time there first. All do barriers on a communicator whose errors return. CASE says who dies
 * between two of them, all at the same time: one (rank p/2), half (the odd ranks), most (all but 4), zero (rank 0), two (rank p/2, and when that is
 * over the last one), during (rank p/2, and another one within the 2 ms after it has begun to shrink). With "random" SEED decides: how many die, who, and
 * when, at any moment within 20 ms. Whoever sees an error revokes and shrinks until a barrier succeeds. The lowest survivor prints, for each recovery, the
 * milliseconds from the last death to the end of the barrier at the last member, and how many are left.
 *
 * Compiled by libspx's mpicc and by Open MPI's. */
#define _GNU_SOURCE
#include <mpi.h>
#include <mpi-ext.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t *died; /* shared by all: when the last one died, in ns */
static MPI_Comm comm;
static int rank, size;

static int64_t now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(void)
{
  int64_t before = atomic_load(died), at = now();
  while (before < at && !atomic_compare_exchange_weak(died, &before, at))
    ;
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static void *die_later(void *ns)
{
  int64_t n = (int64_t)(intptr_t)ns;
  struct timespec t = {n / 1000000000, n % 1000000000};
  nanosleep(&t, NULL);
  die();
  return NULL;
}

static void die_within(int64_t ns)
{
  pthread_t t;
  if (pthread_create(&t, NULL, die_later, (void *)(intptr_t)ns) != 0) die();
}

static void check(int err, const char *what)
{
  if (err == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int n;
  MPI_Error_string(err, text, &n);
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

/* On return comm is a communicator of survivors on which a barrier has succeeded. late: dies while it shrinks. */
static void recover(int late)
{
  for (;;) {
    MPI_Comm smaller;
    MPIX_Comm_revoke(comm);
    if (late) die_within(rand() % 2000000);
    check(MPIX_Comm_shrink(comm, &smaller), "MPIX_Comm_shrink");
    MPI_Comm_set_errhandler(smaller, MPI_ERRORS_RETURN);
    MPI_Comm_free(&comm);
    comm = smaller;
    if (MPI_Barrier(comm) == MPI_SUCCESS) break;
  }
  int64_t mine = now(), last;
  if (MPI_Allreduce(&mine, &last, 1, MPI_INT64_T, MPI_MAX, comm) != MPI_SUCCESS) {
    recover(0);
    return;
  }
  int me, n;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &n);
  if (me == 0) printf("%.3f ms %d left\n", (double)(last - atomic_load(died)) / 1e6, n);
  fflush(stdout);
}

static int barriers(int n)
{
  for (int i = 0; i < n; i++)
    if (MPI_Barrier(comm) != MPI_SUCCESS) return 0;
  return 1;
}

/* Until all survivors know of all deaths that there are to be: they agree on how many are left. */
static void until(int left)
{
  for (;;) {
    int n;
    MPI_Comm_size(comm, &n);
    if (n <= left) return;
    if (!barriers(1)) recover(0);
  }
}

/* Everybody draws the same victims; each its own moment. */
static void at_random(unsigned seed)
{
  char dies[4096] = "";
  srand(seed);
  int victims = rand() % (size - 1) + 1, left = size - victims;
  for (int k = 0; k < victims;) {
    int v = rand() % size;
    if (!dies[v]) dies[v] = 1, k++;
  }
  int64_t within = 1000 << rand() % 15; /* all at once, or spread over up to 16 ms */
  srand(seed * 4099u + (unsigned)rank);
  if (dies[rank]) die_within(rand() % within);
  until(left);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int fd = argc > 2 ? open(argv[1], O_RDWR) : -1;
  died = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (died == MAP_FAILED) {
    fprintf(stderr, "usage: recovery FILE one|half|most|zero|two|during|random [SEED]; FILE has 4 KiB\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const char *how = argv[2];
  srand((unsigned)rank + (argc > 3 ? (unsigned)atoi(argv[3]) : 1u));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  barriers(20);
  int middle = size / 2, second = middle > 1 ? 1 : size - 1;
  if (!strcmp(how, "random"))
    at_random(argc > 3 ? (unsigned)atoi(argv[3]) : 1u);
  else {
    if (!strcmp(how, "half") ? rank % 2 : !strcmp(how, "most") ? rank >= 4 : rank == (strcmp(how, "zero") ? middle : 0))
      die();
    if (!strcmp(how, "during"))
      recover(rank == second);
    else
      until(size - 1);
    if (!strcmp(how, "during")) until(size - 2);
    if (!strcmp(how, "two")) {
      if (!barriers(20)) check(MPI_ERR_OTHER, "a barrier after the recovery");
      if (rank == size - 1) die();
      until(size - 2);
    }
  }
  if (!barriers(3)) check(MPI_ERR_OTHER, "a barrier at the end");
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
