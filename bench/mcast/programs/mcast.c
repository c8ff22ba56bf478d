/* Time of one message from a master to r of the other ranks, at equal distances: the experiment of the paper on dynamic multicast (its
 * figures 8 and 9). The last rank is the master; all others wait, idle, for what comes. Ranks share a clock: a host, or namespaces of it.
 *
 *   mcast HOW,HOW,... BYTES RUNS SECONDS R...
 *
 *   HOW  mcast   MPIX_Mcast to a set; members call MPI_Recv (libspx alone)
 *        bcast   MPI_Bcast over a communicator of the master and the members that was made before
 *        create  MPI_Comm_create_group, MPI_Bcast, MPI_Comm_free: for a set that changes each time
 *        chain, fork, ring, doubling  MPIX_Mcast, from host to host in this way (libspx alone)
 *
 * Each R is run RUNS times, or until SECONDS have gone by, with the ways in turn: what disturbs one disturbs all. A line for each run:
 * HOW BYTES R US FREE  where US is the time until the last member has the data, FREE until the master's call returns.
 */
#include <mpi.h>
#ifdef SPX
#include <mpi-ext.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1000, TAG = 5 };

static int me, size, master, r, bytes, member;
static char *buf;
static MPI_Comm group_comm = MPI_COMM_NULL;
static MPI_Group group;
#ifdef SPX
static MPIX_Rankset set;
#endif

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void nap(double us)
{
  struct timespec t = {(time_t)(us / 1e6), (long)(us - (double)(long)(us / 1e6) * 1e6) * 1000};
  nanosleep(&t, NULL);
}

static void by_mcast(void)
{
#ifdef SPX
  if (me == master)
    MPIX_Mcast(buf, bytes, MPI_BYTE, set, TAG, MPI_COMM_WORLD);
  else
    MPI_Recv(buf, bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
  fprintf(stderr, "mcast: this MPI has no MPIX_Mcast\n");
  MPI_Abort(MPI_COMM_WORLD, 1);
#endif
}

/* As SPX_MCAST_WAY=... would have it, which may change at any time: the ways take turns in one job. */
static void by_way(int way)
{
#ifdef SPX
  static MPI_T_cvar_handle handle;
  int index, count;
  if (me == master && !handle) {
    MPI_T_init_thread(MPI_THREAD_SINGLE, &count);
    MPI_T_cvar_get_index("SPX_MCAST_WAY", &index);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
  }
  if (me == master) MPI_T_cvar_write(handle, &way);
#endif
  by_mcast();
#ifdef SPX
  way = 0;
  if (me == master) MPI_T_cvar_write(handle, &way);
#endif
}

static void by_chain(void) { by_way(1); }
static void by_fork(void) { by_way(2); }
static void by_ring(void) { by_way(3); }
static void by_doubling(void) { by_way(4); }

/* The master is the last in both: root r. */
static void by_bcast(void) { MPI_Bcast(buf, bytes, MPI_BYTE, r, group_comm); }

static double done; /* when create had the data */
static void by_create(void)
{
  MPI_Comm c;
  MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG, &c);
  MPI_Bcast(buf, bytes, MPI_BYTE, r, c);
  done = now();
  MPI_Comm_free(&c);
}

static void prepare(void)
{
  int *ranks = malloc((size_t)(r + 1) * sizeof *ranks);
  MPI_Group world;
  for (int i = 0; i < r; i++) ranks[i] = (size - 1) / r * i;
  ranks[r] = master;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, r + 1, ranks, &group);
  MPI_Comm_split(MPI_COMM_WORLD, member || me == master ? 0 : MPI_UNDEFINED, me, &group_comm);
  MPI_Group_free(&world);
#ifdef SPX
  MPIX_Rankset_incl(MPI_COMM_WORLD, r, ranks, &set);
#endif
  free(ranks);
}

static void clean(void)
{
  MPI_Group_free(&group);
  if (group_comm != MPI_COMM_NULL) MPI_Comm_free(&group_comm);
#ifdef SPX
  MPIX_Rankset_free(&set);
#endif
}

static void check(int run)
{
  if (buf[0] == (char)run && buf[bytes - 1] == (char)(run + 1)) return;
  fprintf(stderr, "mcast: rank %d has other data\n", me);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

enum { WAYS = 7 };
static const struct {
  const char *name;
  void (*send)(void);
} ways[WAYS] = {{"mcast", by_mcast}, {"bcast", by_bcast}, {"create", by_create},    {"chain", by_chain},
                {"fork", by_fork},   {"ring", by_ring},   {"doubling", by_doubling}};
static double end[WAYS][MOST], last[WAYS][MOST], begun[WAYS][MOST], release[WAYS][MOST];

/* One message; 0: the time is over. */
static int once(int way, int run, double stop)
{
  int go = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  end[way][run] = 0;
  if (me == master) {
    nap(1000 + 600.0 * size); /* until all others wait, and sleep where ranks outnumber processors */
    buf[0] = (char)run;
    buf[bytes - 1] = (char)(run + 1);
    begun[way][run] = now();
    ways[way].send();
    release[way][run] = now() - begun[way][run];
    nap(1000 + 60.0 * size); /* waking all others is no part of it */
    go = now() < stop;
  } else if (member) {
    ways[way].send();
    end[way][run] = ways[way].send == by_create ? done : now();
    check(run);
  }
  MPI_Bcast(&go, 1, MPI_INT, master, MPI_COMM_WORLD);
  return go;
}

/* Runs one R; the number of runs of each way. */
static int measure(const char *which, int runs, double seconds)
{
  double stop = now() + seconds * 1e6;
  int n = 0;
  for (int go = 1; n < runs && go; n++)
    for (int w = 0; w < WAYS; w++)
      if (strstr(which, ways[w].name)) go = once(w, n, stop);
  for (int w = 0; w < WAYS; w++) {
    MPI_Reduce(end[w], last[w], n, MPI_DOUBLE, MPI_MAX, master, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) last[w][i] -= begun[w][i];
  }
  return n;
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 6) {
    if (me == 0) fprintf(stderr, "mcast HOW,HOW,... BYTES RUNS SECONDS R...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int runs = atoi(argv[3]);
  bytes = atoi(argv[2]);
  master = size - 1;
  buf = malloc((size_t)bytes);
  memset(buf, 1, (size_t)bytes);
  for (int k = 5; k < argc; k++) {
    r = atoi(argv[k]);
    if (r < 1 || r >= size) continue;
    member = me != master && me % ((size - 1) / r) == 0 && me / ((size - 1) / r) < r;
    prepare();
    /* In the first message of the job each member touches its memory for the first time. */
    measure(argv[1], runs < 20 ? 1 : 2, atof(argv[4]));
    for (int w = 0; w < WAYS && me == master && k == 5; w++)
      if (strstr(argv[1], ways[w].name))
        printf("first %s %d %d %.1f %.1f\n", ways[w].name, bytes, r, last[w][0], release[w][0]);
    int n = measure(argv[1], runs < MOST ? runs : MOST, atof(argv[4]));
    for (int w = 0; w < WAYS && me == master; w++)
      for (int i = 0; i < n && strstr(argv[1], ways[w].name); i++)
        printf("%s %d %d %.1f %.1f\n", ways[w].name, bytes, r, last[w][i], release[w][i]);
    fflush(stdout);
    clean();
  }
  free(buf);
  MPI_Finalize();
  return 0;
}
