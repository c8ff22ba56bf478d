/* SPX_CONNECTIONS_MAX is kept: a thread of each process looks at its sockets all the time while everybody sends to everybody, and never sees more TCP connections than that, whatever
 * they are: made or being made, answered, closed, further streams. Each message arrives, and is right. "talk": messages between partners that change all the time; "slow": some compute meanwhile, and
 * answer nothing; "long": long messages, over further streams where there is room; "spawn": processes that are started later talk, too. docs/connections.md. */
// run: n=10 args="talk 150" args.few="talk 40" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=2 timeout=120
// run: n=10 args="talk 250" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=3 timeout=120 full=1
// run: n=10 args="talk 250" args.few="talk 60" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=4 timeout=120
// run: n=10 args="talk 100" args.few="talk 30" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=2 env=SPX_CONNECTIONS=topology:2 env=SPX_TOPOLOGY=groups:3 timeout=120
// run: n=10 args="talk 150" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=3 env=SPX_CONNECTIONS=topology:2 env=SPX_TOPOLOGY=groups:3 timeout=120 full=1
// run: n=10 args="talk 150" args.few="talk 40" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=4 env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:5 timeout=120
// run: n=8 args="talk 100" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=3 env=SPX_CONNECTIONS=all timeout=120 full=1
// run: n=8 args="talk 100" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=4 env=SPX_CONNECTIONS=random:3:2 timeout=120 full=1
// run: n=6 args="talk 60" args.few="talk 30" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=3 env=SPX_TLS=1 timeout=120
// run: n=8 args="slow 60" args.few="slow 25" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=2 timeout=120
// run: n=16 n.few=10 args="talk 150" args.few="talk 40" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=8 timeout=120
// run: n=10 args="slow 60" args.few="slow 25" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=6 timeout=120
// run: n=10 args="talk 100" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=6 env=SPX_TLS=1 timeout=120 full=1
// run: n=8 args="spawn 60" args.few="spawn 25" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=6 timeout=120
// run: n=8 args="slow 60" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=4 env=SPX_CONNECTIONS=topology:2 env=SPX_TOPOLOGY=groups:4 timeout=120 full=1
// run: n=6 args="long 20" args.few="long 6" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=4 env=SPX_STREAMS=4 timeout=120
// run: n=4 args="long 20 streams" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=12 env=SPX_STREAMS=4 timeout=120 full=1
// run: n=4 args="long 20 streams" args.few="long 6 streams" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=12 env=SPX_STREAMS=4 env=SPX_CONNECTIONS=topology:2 env=SPX_TOPOLOGY=groups:2 timeout=120
// run: n=6 args="long 20" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=9 env=SPX_STREAMS=4 env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:3 timeout=120 full=1
// run: n=4 args="spawn 60" args.few="spawn 25" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=3 timeout=120
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "../check.h"

enum { MOST = 64, UNDER_WAY = 8, SHORT = 3000, LONG = 3 << 20, DATA = 1 };

static int rank, size, limit;
static MPI_Comm everybody;
static uint64_t seed;

static uint32_t rnd(void)
{
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(seed >> 33);
}

/* ---- the sockets --------------------------------------------------------------------------------------------------- */

static atomic_int over;
static int seen; /* the most at a time */
static long looks;

/* Is it a TCP socket that does not listen? Its inode, or 0. A socket may have two descriptors for a moment. */
static ino_t connection(int fd)
{
  int domain = 0, type = 0, listens = 0;
  socklen_t n = sizeof domain;
  struct stat st;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) != 0) return 0;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) != 0) return 0;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || fstat(fd, &st) != 0) return 0;
  return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM && !listens ? st.st_ino : 0;
}

static int scan(ino_t *list)
{
  int n = 0;
  DIR *d = opendir("/proc/self/fd");
  for (struct dirent *e; d && (e = readdir(d));) {
    ino_t i = connection(atoi(e->d_name));
    for (int k = 0; k < n; k++)
      if (list[k] == i) i = 0;
    if (i && n < MOST) list[n++] = i;
  }
  if (d) closedir(d);
  return n;
}

/* What two scans have both seen was there between them, all of it at the same time. */
static void *watch(void *unused)
{
  static ino_t list[2][MOST];
  int n[2] = {0, 0}, now = 0;
  while (!over) {
    n[now] = scan(list[now]);
    int both = 0;
    for (int i = 0; i < n[0]; i++)
      for (int k = 0; k < n[1]; k++) both += list[0][i] == list[1][k];
    if (both > seen) seen = both;
    looks++;
    now = !now;
  }
  return unused;
}

/* ---- the messages -------------------------------------------------------------------------------------------------- */

static unsigned char *out[UNDER_WAY], *in;
static MPI_Request under_way[UNDER_WAY];
static long *sent_to, *got_from, received;
static int most_bytes;

static int bytes_of(int from, int to, long k)
{
  uint64_t h = ((uint64_t)from * 7919 + (uint64_t)to * 104729 + (uint64_t)k) * 0x9e3779b97f4a7c15ull;
  return 16 + (int)((h >> 32) % (uint64_t)(most_bytes - 16));
}

static unsigned char byte_of(int from, int to, long k, int i)
{
  return (unsigned char)(from * 31 + to * 17 + (int)k * 5 + i + (i >> 8));
}

/* Takes what has come, and checks that it is the next of its sender. */
static void take_all(void)
{
  for (int there = 1; there;) {
    MPI_Status st;
    MPI_Iprobe(MPI_ANY_SOURCE, DATA, everybody, &there, &st);
    if (!there) return;
    int n, from = st.MPI_SOURCE, wrong = 0;
    MPI_Recv(in, most_bytes, MPI_BYTE, from, DATA, everybody, &st);
    MPI_Get_count(&st, MPI_BYTE, &n);
    long k = got_from[from]++;
    for (int i = 0; i < n; i++) wrong += in[i] != byte_of(from, rank, k, i);
    CHECK(n == bytes_of(from, rank, k) && wrong == 0);
    received++;
  }
}

static void talk(long messages, int slow)
{
  for (long m = 0; m < messages; m++) {
    int to = (int)(rnd() % (uint32_t)size), i = -1, done;
    if (to == rank) continue;
    while (i < 0) {
      for (int k = 0; k < UNDER_WAY && i < 0; k++) {
        MPI_Test(&under_way[k], &done, MPI_STATUS_IGNORE);
        if (done) i = k;
      }
      take_all();
    }
    long k = sent_to[to]++;
    int n = bytes_of(rank, to, k);
    for (int b = 0; b < n; b++) out[i][b] = byte_of(rank, to, k, b);
    MPI_Isend(out[i], n, MPI_BYTE, to, DATA, everybody, &under_way[i]);
    if (slow && rank % 3 == 1 && m % 20 == 10) {
      volatile double x = 1; /* computes, without a call of MPI */
      for (double end = MPI_Wtime() + 0.2; MPI_Wtime() < end;) x *= 1.0000001;
    }
  }
  long *coming = calloc((size_t)size, sizeof *coming), all = 0;
  MPI_Request r;
  int done;
  MPI_Ialltoall(sent_to, 1, MPI_LONG, coming, 1, MPI_LONG, everybody, &r);
  do {
    take_all();
    MPI_Test(&r, &done, MPI_STATUS_IGNORE);
  } while (!done);
  for (int i = 0; i < size; i++) all += coming[i];
  do {
    take_all();
    MPI_Testall(UNDER_WAY, under_way, &done, MPI_STATUSES_IGNORE);
  } while (received < all || !done);
  CHECK(received == all);
  free(coming);
}

static MPI_T_pvar_session session;

static MPI_T_pvar_handle count(const char *name)
{
  MPI_T_pvar_handle h;
  int index, n;
  CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &n) == MPI_SUCCESS);
  MPI_T_pvar_start(session, h);
  return h;
}

static unsigned long long value(MPI_T_pvar_handle h)
{
  unsigned long long v = 0;
  CHECK(MPI_T_pvar_read(session, h, &v) == MPI_SUCCESS);
  return v;
}

int main(int argc, char **argv)
{
  int provided, spawns = argc > 2 && strcmp(argv[1], "spawn") == 0;
  pthread_t watcher;
  limit = getenv("SPX_CONNECTIONS_MAX") ? atoi(getenv("SPX_CONNECTIONS_MAX")) : 0;
  CHECK(limit >= 2 && argc > 2);
  CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle opened = count("spx_connections_opened"), further = count("spx_streams_opened");
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  everybody = MPI_COMM_WORLD;
  if (spawns && parent == MPI_COMM_NULL)
    MPI_Comm_spawn(argv[0], &argv[1], 4, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &parent, MPI_ERRCODES_IGNORE);
  if (parent != MPI_COMM_NULL) MPI_Intercomm_merge(parent, 0, &everybody);
  MPI_Comm_rank(everybody, &rank);
  MPI_Comm_size(everybody, &size);
  seed = (uint64_t)rank + 1;
  most_bytes = strcmp(argv[1], "long") ? SHORT : LONG;
  for (int i = 0; i < UNDER_WAY; i++) {
    out[i] = malloc((size_t)most_bytes);
    under_way[i] = MPI_REQUEST_NULL;
  }
  in = malloc((size_t)most_bytes);
  sent_to = calloc((size_t)size, sizeof *sent_to);
  got_from = calloc((size_t)size, sizeof *got_from);
  talk(atol(argv[2]), !strcmp(argv[1], "slow"));
  unsigned long long streams = value(further), all = 0;
  MPI_Allreduce(&streams, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, everybody);
  if (argc > 3) CHECK(all > 0);
  MPI_Barrier(everybody);
  over = 1;
  pthread_join(watcher, NULL);
  fprintf(stderr, "rank %d: %d sockets at most in %ld looks, %llu connections in all, %llu streams\n", rank, seen,
          looks, value(opened), streams);
  CHECK(seen <= limit && looks > 10);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  MPI_Finalize();
  return check_status();
}
