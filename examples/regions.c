/* regions.c - a master and its workers in a simulation whose regions of interest move: every 10 ms the master gives each region to another set of
 * workers, by multicast, and gets the sum of their results back by a reduction over the same set. Nobody makes a communicator. The picture
 * shows who works on what: a letter is a region, a dot an idle worker, an x a dead one. A worker may end itself on the way: its
 * region is given once more to those that live.
 *
 *     mpicc regions.c -o regions && spxrun --with-ft -n 65 ./regions [ticks [worker tick]] */
#include <math.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { REGIONS = 3, MOST = 1024, TASK = 1, STOP = 2, TICK_US = 10000, TAGS = 10000 };

typedef struct {
  int number, tick;
  unsigned char set[MOST / 8]; /* a bit for each rank */
} task;

static int rank, size, dead[MOST], lost, wrong, done;

static double part(int who, int number) { return who * 1000.0 + number; }

/* ---- worker ---- */

static void work(int victim, int victim_tick)
{
  for (;;) {
    task t;
    MPI_Status st;
    MPIX_Rankset set;
    MPI_Recv(&t, sizeof t, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_TAG == STOP) return;
    if (rank == victim && t.tick >= victim_tick) raise(SIGKILL);
    double mine = part(rank, t.number);
    MPIX_Rankset_from_bitmap(MPI_COMM_WORLD, t.set, &set);
    MPIX_Mreduce(&mine, NULL, 1, MPI_DOUBLE, MPI_SUM, 0, set, t.number % TAGS,
                 MPI_COMM_WORLD); /* an error is the master's to mend */
    MPIX_Rankset_free(&set);
  }
}

/* ---- master ---- */

/* Which region worker w works on at a tick, or -1: regions are intervals that move, grow and shrink. */
static int region_of(int w, int tick)
{
  for (int k = 0; k < REGIONS; k++) {
    double centre = 0.5 + 0.5 * sin(tick * (0.05 + 0.02 * k) + 2.1 * k);
    double half = 0.06 + 0.05 * (1 + sin(tick * 0.13 + k));
    if (fabs((w - 0.5) / (size - 1) - centre) < half) return k;
  }
  return -1;
}

static void bury(void)
{
  MPI_Group failed, world;
  int n;
  MPIX_Comm_ack_failed(MPI_COMM_WORLD, size, &n);
  MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_size(failed, &n);
  for (int i = 0; i < n; i++) {
    int r;
    MPI_Group_translate_ranks(failed, 1, &i, world, &r);
    lost += !dead[r];
    dead[r] = 1;
  }
  MPI_Group_free(&failed);
  MPI_Group_free(&world);
}

/* The living workers of a region, and what their results sum up to. */
static MPIX_Rankset members(task *t, int region, double *expected, int *n)
{
  MPIX_Rankset set;
  memset(t->set, 0, sizeof t->set);
  *expected = 0;
  *n = 0;
  for (int w = 1; w < size; w++) {
    if (dead[w] || region_of(w, t->tick) != region) continue;
    t->set[w / 8] |= (unsigned char)(1 << w % 8);
    *expected += part(w, t->number);
    ++*n;
  }
  MPIX_Rankset_from_bitmap(MPI_COMM_WORLD, t->set, &set);
  return set;
}

/* All regions of a tick: the tasks go out, one after another, then the results come in. What a death has spoilt is done again. */
static void step(int tick)
{
  static int number;
  int open[REGIONS] = {1, 1, 1};
  for (int left = REGIONS; left > 0;) {
    task t[REGIONS];
    MPIX_Rankset set[REGIONS];
    double expected[REGIONS], sum;
    int n[REGIONS];
    for (int k = 0; k < REGIONS; k++) {
      if (!open[k]) continue;
      t[k] = (task){.number = number++, .tick = tick};
      set[k] = members(&t[k], k, &expected[k], &n[k]);
      MPIX_Mcast(&t[k], sizeof t[k], MPI_BYTE, set[k], TASK,
                 MPI_COMM_WORLD); /* a death is told by the reduction, too */
    }
    for (int k = 0; k < REGIONS; k++) {
      if (!open[k]) continue;
      sum = 0;
      int code =
          MPIX_Mreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, set[k], t[k].number % TAGS, MPI_COMM_WORLD);
      MPIX_Rankset_free(&set[k]);
      if (code != MPI_SUCCESS) {
        bury();
        continue;
      }
      wrong += sum != expected[k];
      done += n[k];
      open[k] = 0;
      left--;
    }
  }
}

static void draw(int tick)
{
  char line[MOST + 1];
  for (int w = 1; w < size; w++) {
    int k = region_of(w, tick);
    line[w - 1] = dead[w] ? 'x' : k < 0 ? '.' : (char)('A' + k);
  }
  line[size - 1] = 0;
  if (isatty(1))
    printf("\r%5d %s", tick, line);
  else if (tick % 10 == 0)
    printf("%5d %s\n", tick, line);
  fflush(stdout);
}

static void lead(int ticks)
{
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  double begin = MPI_Wtime(), busy = 0;
  for (int tick = 0; tick < ticks; tick++) {
    double start = MPI_Wtime();
    step(tick);
    busy += MPI_Wtime() - start;
    draw(tick);
    next.tv_nsec += TICK_US * 1000;
    next.tv_sec += next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
  task stop = {0};
  for (int w = 1; w < size; w++)
    if (!dead[w]) stop.set[w / 8] |= (unsigned char)(1 << w % 8);
  MPIX_Rankset all;
  MPIX_Rankset_from_bitmap(MPI_COMM_WORLD, stop.set, &all);
  MPIX_Mcast(&stop, sizeof stop, MPI_BYTE, all, STOP, MPI_COMM_WORLD);
  MPIX_Rankset_free(&all);
  printf("\n%d ticks in %.2f s, %.0f us each for tasks and results of %d regions: %d parts, %d wrong sums, %d workers "
         "lost\n",
         ticks, MPI_Wtime() - begin, busy / ticks * 1e6, REGIONS, done, wrong, lost);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2 || size > MOST) {
    fprintf(stderr, "regions: needs a master and up to %d workers\n", MOST - 1);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (rank == 0)
    lead(argc > 1 ? atoi(argv[1]) : 500);
  else
    work(argc > 3 ? atoi(argv[2]) : -1, argc > 3 ? atoi(argv[3]) : 0);
  MPI_Finalize();
  return wrong != 0;
}
