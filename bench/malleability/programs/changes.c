/* changes.c - how long a running program takes to get another number of processes.
 *
 *   changes FILE CHANGE...       FILE is of 4 KiB, all zero
 *
 * All exchange messages in a ring with MPI_Sendrecv. A CHANGE is m<n>: a command makes it n processes (fewer: MPI_Comm_split, and those who leave
 * finalize; more: they are spawned); d<n>: all but the first n die at once, and the others shrink (ULFM); k<seed>: a process dies that the seed chooses.
 * For each, rank 0 prints the milliseconds from the writing of the command, or from the last death, until the last process has exchanged a message with
 * its new neighbours, and how many there are. */
#define _GNU_SOURCE
#include <mpi.h>
#include <ulfm_dyprc.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* What all processes share, those to come included. */
static struct {
  _Atomic int64_t begun;         /* ns: when the change began */
  _Atomic int under_way, target; /* of the change: 0 or 1, and how many processes there shall be */
  _Atomic int done;              /* changes */
} * run;

static MPI_Comm mworld;
static int rank, size;

static int64_t now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void begin_at(int64_t at)
{
  int64_t before = atomic_load(&run->begun);
  while (before < at && !atomic_compare_exchange_weak(&run->begun, &before, at))
    ;
}

static void exchange(void)
{
  int right = (rank + 1) % size, left = (rank + size - 1) % size, got;
  for (int i = 0; i < 10; i++) {
    MPI_Sendrecv(&rank, 1, MPI_INT, right, 7, &got, 1, MPI_INT, left, 7, mworld, MPI_STATUS_IGNORE);
    if (got != left) {
      fprintf(stderr, "rank %d of %d got %d from its left neighbour\n", rank, size, got);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
}

/* A change is over when everybody has exchanged messages in the number of processes that was wanted. */
static void judge(void)
{
  int64_t mine, last;
  exchange();
  mine = now();
  MPI_Allreduce(&mine, &last, 1, MPI_INT64_T, MPI_MAX, mworld);
  if (rank == 0 && atomic_load(&run->under_way) && size == atomic_load(&run->target)) {
    printf("%.3f ms %d processes\n", (double)(last - atomic_load(&run->begun)) / 1e6, size);
    fflush(stdout);
    atomic_store(&run->under_way, 0);
    atomic_fetch_add(&run->done, 1);
  }
  MPI_Barrier(mworld);
}

static void command(int n)
{
  const char *name = getenv("SPX_DYPRC_FILE");
  FILE *f = fopen(name ? name : "ulfm_dyprc.cmd", "w");
  if (!f) {
    perror("changes: the file of commands");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  begin_at(now());
  fprintf(f, "%d\n", n);
  fclose(f);
}

/* Begins a change. All are in it: nobody reads done before all have left judge. */
static void begin(const char *change)
{
  int n = atoi(change + 1), victim = -1;
  if (change[0] == 'k') {
    srand((unsigned)n);
    victim = rand() % size;
    n = size - 1;
  }
  if (rank == 0) {
    atomic_store(&run->begun, 0);
    atomic_store(&run->target, n);
    atomic_store(&run->under_way, 1);
  }
  MPI_Barrier(mworld);
  if (change[0] == 'm' && rank == 0) command(n);
  if ((change[0] == 'd' && rank >= n) || rank == victim) {
    begin_at(now());
    kill(getpid(), SIGKILL);
  }
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int fd = argc > 2 ? open(argv[1], O_RDWR) : -1;
  run = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (run == MAP_FAILED) {
    fprintf(stderr, "usage: changes FILE m<n>|d<n>|k<seed> ...; FILE has 4 KiB\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int newcomer = ulfm_dyprc_merge_child(&mworld);
  ulfm_dyprc_setjmp(mworld, newcomer);
  MPI_Comm_rank(mworld, &rank);
  MPI_Comm_size(mworld, &size);
  judge();
  if (!atomic_load(&run->under_way)) {
    int next = atomic_load(&run->done);
    MPI_Barrier(mworld);
    if (next == argc - 2) {
      MPI_Finalize();
      return 0;
    }
    begin(argv[2 + next]);
  }
  for (;;) { /* left by a jump to the point above */
    exchange();
    ulfm_dyprc_poll(mworld);
  }
}
