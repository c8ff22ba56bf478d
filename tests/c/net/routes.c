/* Messages while connections come and go: each rank sends to a few partners that change, and checks of all that comes that nothing is
 * lost, doubled or out of order, and that the content is right; then that descriptors and memory did not grow in the second half, and that
 * connections were made, closed and relayed through, as the setting says. "death": some ranks, which relay for the others, are
 * killed meanwhile; the others' messages all arrive. "slow": some compute, and relay nothing meanwhile. The long form, 10^8 messages in all:
 *   make soak
 * docs/connections.md. */
// run: n=6 args="soak 3000" args.few="soak 1000" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:3 timeout=100
// run: n=12 args="soak 6000" args.few="soak 1500" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:4 timeout=120
// run: n=12 args="soak 4000" args.few="soak 1000" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=random:5:2 timeout=120
// run: n=10 args="soak 4000" args.few="soak 1000" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=3 timeout=120
// run: n=5 args="soak 2000" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=all timeout=100
// run: n=16 n.few=9 args="soak 100" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=all timeout=100
// run: n=12 args="death 4000" spxrun=--with-ft env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:3 timeout=120
// run: n=8 args="slow 1000" args.few="slow 300" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:0 env=SPX_TOPOLOGY=groups:4 timeout=120
// run: n=80 args="soak 200" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:2 env=SPX_TOPOLOGY=groups:5 timeout=150 full=1
// run: n=16 args="soak 2000" args.few="soak 500" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=8 timeout=120
// run: n=16 args="death 2000" spxrun=--with-ft env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=6 timeout=120
// run: n=10 args="slow 500" args.few="slow 200" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=6 timeout=120
// run: n=2 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=few status=13 stderr~"SPX_CONNECTIONS=few: there are demand, all, topology:K"
// run: n=2 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:-1 status=13 stderr~"is no number of connections"
// run: n=2 env=SPX_TRANSPORTS=tcp env=SPX_TOPOLOGY=groups:x status=13 stderr~"is no number of groups"
// run: n=8 args="soak 3000" args.few="soak 600" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=3 env=SPX_EAGER_MAX=300 env=SPX_DIRECT_MIN=500 timeout=120
// run: n=8 args="soak 3000" args.few="soak 800" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:4 env=SPX_EAGER_MAX=300 env=SPX_DIRECT_MIN=500 timeout=120
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"
#include "memory.h"

enum { UNDER_WAY = 32, PARTNERS = 4, MOST = 40000, DATA = 1, COUNTS = 2 };
enum {
  LONG = 100000,
  GROWTH = 2048
}; /* in a run of so many messages of each rank memory grows by so many KiB from the half to the end, at most */

static int rank, size, dying, slow;
static long each, sent_to[1024], got_from[1024], told_by[1024], received;
static unsigned char *out[UNDER_WAY], in[MOST];
static MPI_Request under_way[UNDER_WAY];
static uint64_t seed;

static uint32_t rnd(void)
{
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(seed >> 33);
}

/* Those that will be killed: one of each four. */
static int victim(int r) { return dying && r % 4 == 1; }

static int bytes_of(int from, int to, long k)
{
  uint64_t h = ((uint64_t)from * 7919 + (uint64_t)to * 104729 + (uint64_t)k) * 0x9e3779b97f4a7c15ull;
  uint32_t r = (uint32_t)(h >> 40);
  return (int)(8 + (r % 64 == 0 ? r / 64 % (MOST - 8) : r % 8 == 0 ? r / 64 % 2000 : r / 64 % 64));
}

static void fill(unsigned char *p, int from, int to, long k, int n)
{
  uint64_t word = ((uint64_t)from << 52) ^ ((uint64_t)to << 40) ^ (uint64_t)k;
  memcpy(p, &word, sizeof word);
  for (int i = 8; i < n; i++) p[i] = (unsigned char)(from * 31 + to * 17 + k * 5 + i);
}

static int same(const unsigned char *p, int from, int to, long k, int n)
{
  static unsigned char want[MOST];
  fill(want, from, to, k, n);
  return memcmp(p, want, (size_t)n) == 0;
}

/* Takes what has come from one rank, or any. */
static void take(int source)
{
  for (int there = 1; there;) {
    MPI_Status st;
    MPI_Iprobe(source, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &st);
    if (!there) return;
    int n, from = st.MPI_SOURCE;
    MPI_Recv(in, MOST, MPI_BYTE, from, st.MPI_TAG, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, MPI_BYTE, &n);
    if (st.MPI_TAG == COUNTS) {
      memcpy(&told_by[from], in, sizeof told_by[from]);
      CHECK(n == (int)sizeof told_by[from] && told_by[from] == got_from[from]); /* it overtakes nothing */
      continue;
    }
    long k = got_from[from]++;
    CHECK(n == bytes_of(from, rank, k) && same(in, from, rank, k, n));
    received++;
  }
}

static void take_all(void)
{
  if (!dying) take(MPI_ANY_SOURCE);
  for (int r = 0; dying && r < size; r++)
    if (!victim(r)) take(r);
}

/* A place for one more message. */
static int place(void)
{
  static int at;
  for (;;) {
    for (int n = 0; n < UNDER_WAY; n++) {
      int done, i = at = (at + 1) % UNDER_WAY;
      MPI_Test(&under_way[i], &done, MPI_STATUS_IGNORE);
      if (done) return i;
    }
    take_all();
  }
}

static void talk(long messages)
{
  int partner[PARTNERS] = {0};
  for (long m = 0; m < messages; m++) {
    if (m % 100 == 0)
      for (int i = 0; i < PARTNERS; i++) do
          partner[i] = (int)(rnd() % (uint32_t)size);
        while (victim(partner[i]) || (size > 1 && partner[i] == rank));
    int to = partner[rnd() % PARTNERS], i = place();
    long k = sent_to[to]++;
    int n = bytes_of(rank, to, k);
    fill(out[i], rank, to, k, n);
    MPI_Isend(out[i], n, MPI_BYTE, to, DATA, MPI_COMM_WORLD, &under_way[i]);
    if (m % 8 == 0) take_all();
    if (slow && rank % 2 && m % 250 == 100) {
      volatile double x = 1; /* computes, without a call of MPI */
      for (double end = MPI_Wtime() + 0.3; MPI_Wtime() < end;) x *= 1.0000001;
    }
  }
}

/* Nothing is under way: what is held then is no queue. */
static void settle(void)
{
  int done;
  MPI_Request all;
  if (dying) return;
  do {
    take_all();
    MPI_Testall(UNDER_WAY, under_way, &done, MPI_STATUSES_IGNORE);
  } while (!done);
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  do {
    take_all();
    MPI_Test(&all, &done, MPI_STATUS_IGNORE);
  } while (!done);
  take_all();
}

static int descriptors(void)
{
  int n = 0;
  DIR *d = opendir("/proc/self/fd");
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

/* Descriptors: with TLS a socket and a pair of them, through which the engine encrypts. */
static int of_a_connection(void)
{
  const char *tls = getenv("SPX_TLS");
  return tls && strcmp(tls, "1") == 0 ? 3 : 1;
}

enum { OPEN, OPENED, EVICTED, RELAYED, AGAIN, FORWARDED, VARIABLES };
static const char *const names[VARIABLES] = {"spx_connections_open",    "spx_connections_opened",
                                             "spx_connections_evicted", "spx_frames_relayed",
                                             "spx_frames_again",        "spx_frames_forwarded"};
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[VARIABLES];

static void watch(void)
{
  int provided, index, count;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  for (int i = 0; i < VARIABLES; i++) {
    int class = i == OPEN ? MPI_T_PVAR_CLASS_LEVEL : MPI_T_PVAR_CLASS_COUNTER;
    CHECK(MPI_T_pvar_get_index(names[i], class, &index) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count) == MPI_SUCCESS);
    MPI_T_pvar_start(session, handles[i]);
  }
}

static void read_all(unsigned long long *values)
{
  for (int i = 0; i < VARIABLES; i++) CHECK(MPI_T_pvar_read(session, handles[i], &values[i]) == MPI_SUCCESS);
}

/* What the setting promises has been done. */
static void check_counters(const unsigned long long *sum)
{
  const char *how = getenv("SPX_CONNECTIONS"), *most = getenv("SPX_CONNECTIONS_MAX");
  const char *cached = how && strncmp(how, "topology:", 9) == 0 ? how + 9 : NULL;
  if (cached) CHECK(sum[RELAYED] > 0 && sum[FORWARDED] > 0);
  if (cached ? atoi(cached) > 0 && atoi(cached) < 4 : most != NULL) CHECK(sum[EVICTED] > 0);
  bool few = !how && most && atoi(most) > 5 && size > atoi(most); /* fewer than it takes, and enough to relay over */
  if (few) CHECK(sum[RELAYED] > 0 && sum[FORWARDED] > 0);
  if ((!how && !few) || (how && strcmp(how, "all") == 0)) CHECK(sum[RELAYED] == 0 && sum[FORWARDED] == 0);
}

static void finish(void)
{
  for (int r = 0; r < size; r++) {
    if (victim(r) || r == rank) continue;
    int i = place();
    memcpy(out[i], &sent_to[r], sizeof sent_to[r]);
    MPI_Isend(out[i], sizeof sent_to[r], MPI_BYTE, r, COUNTS, MPI_COMM_WORLD, &under_way[i]);
  }
  for (int r = 0; r < size; r++)
    while (!victim(r) && r != rank && told_by[r] < 0) take_all();
  for (int done = 0; !done;) {
    take_all();
    MPI_Testall(UNDER_WAY, under_way, &done, MPI_STATUSES_IGNORE);
  }
}

int main(int argc, char **argv)
{
  unsigned long long values[VARIABLES], sum[VARIABLES];
  MPI_Init(&argc, &argv);
  watch();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  dying = argc > 1 && strcmp(argv[1], "death") == 0;
  slow = argc > 1 && strcmp(argv[1], "slow") == 0;
  each = argc > 2 ? atol(argv[2]) : 1000;
  seed = (uint64_t)rank * 7919 + 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, dying ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
  for (int i = 0; i < UNDER_WAY; i++) {
    out[i] = malloc(MOST);
    memset(out[i], 1, MOST); /* it is there from the beginning */
    under_way[i] = MPI_REQUEST_NULL;
  }
  for (int r = 0; r < size; r++) told_by[r] = -1;
  if (victim(rank)) {
    talk(each / 8 + rnd() % 100);
    raise(SIGKILL);
  }
  double began = MPI_Wtime();
  talk(each / 2);
  settle();
  int had = descriptors();
  long had_kb = memory_kb();
  talk(each - each / 2);
  settle();
  int has = descriptors();
  long has_kb = memory_kb();
  finish();
  CHECK(has <= had + (size / 2 + 4) * of_a_connection());
  if (each >= LONG && has_kb > had_kb + GROWTH)
    fprintf(stderr, "rank %d: memory %ld KiB, then %ld\n", rank, had_kb, has_kb);
  CHECK(had_kb > 0 && has_kb > 0);
  if (each >= LONG) CHECK(has_kb <= had_kb + GROWTH);
  read_all(values);
  if (rank == 0)
    fprintf(stderr,
            "rank 0: %ld received; %llu open, %llu opened, %llu evicted, %llu relayed, %llu again, %llu forwarded; "
            "descriptors %d, then %d; memory %ld KiB, then %ld\n",
            received, values[OPEN], values[OPENED], values[EVICTED], values[RELAYED], values[AGAIN], values[FORWARDED],
            had, has, had_kb, has_kb);
  if (!dying) {
    MPI_Allreduce(values, sum, VARIABLES, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    long all;
    MPI_Allreduce(&received, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == each * size);
    if (rank == 0)
      fprintf(stderr,
              "%ld messages in %.0f s, none lost, doubled or out of order; %llu connections opened, %llu evicted, %llu "
              "frames relayed\n",
              all, MPI_Wtime() - began, sum[OPENED], sum[EVICTED], sum[RELAYED]);
    if (!slow && argc > 2) check_counters(sum);
  }
  MPI_T_finalize();
  MPI_Finalize();
  return check_status();
}
