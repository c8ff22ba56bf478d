/* Performance variables (MPI-5.0, 16.3.7) count what happens: messages and bytes of the process and of communicators, messages
 * before their receive and the most of them, sleeps, the ways of large messages; handles start, stop, reset and write apart
 * from each other. Control variables change what the library does. */
// run: n=2
// run: n=2 env="SPX_STREAM_MAX=0"
#include "../check.h"
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;
static int rank;
static MPI_T_pvar_session session;

typedef struct {
  MPI_T_pvar_handle h;
} var;

static var watch(const char *name, int class, void *object)
{
  var v = {MPI_T_PVAR_HANDLE_NULL};
  int index = -1, count = 0;
  CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(session, index, object, &v.h, &count) == MPI_SUCCESS && count == 1);
  return v;
}

static ull value(var v)
{
  ull n = 12345678;
  CHECK(MPI_T_pvar_read(session, v.h, &n) == MPI_SUCCESS);
  return n;
}

static void start(var v) { CHECK(MPI_T_pvar_start(session, v.h) == MPI_SUCCESS); }
static void stop(var v) { CHECK(MPI_T_pvar_stop(session, v.h) == MPI_SUCCESS); }

static void write_ull(const char *name, ull v, int want)
{
  int index = -1, count;
  MPI_T_cvar_handle h;
  CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS);
  CHECK(MPI_T_cvar_handle_alloc(index, NULL, &h, &count) == MPI_SUCCESS && count == 1);
  CHECK(MPI_T_cvar_write(h, &v) == want);
  if (want == MPI_SUCCESS) {
    ull is = v + 1;
    CHECK(MPI_T_cvar_read(h, &is) == MPI_SUCCESS && is == v);
  }
  MPI_T_cvar_handle_free(&h);
  CHECK(h == MPI_T_CVAR_HANDLE_NULL);
}

/* Rank 0 sends n messages of bytes each; rank 1 receives them after all have come. */
static void send(MPI_Comm c, int n, int bytes)
{
  char *buf = calloc(1, (size_t)bytes + 1);
  int token = 0;
  if (rank == 0) {
    for (int i = 0; i < n; i++) MPI_Send(buf, bytes, MPI_BYTE, 1, 1, c);
    MPI_Send(&token, 0, MPI_INT, 1, 2, c);
    MPI_Recv(&token, 0, MPI_INT, 1, 3, c, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&token, 0, MPI_INT, 0, 2, c, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++) MPI_Recv(buf, bytes, MPI_BYTE, 0, 1, c, MPI_STATUS_IGNORE);
    MPI_Send(&token, 0, MPI_INT, 0, 3, c);
  }
  free(buf);
}

static void messages(void)
{
  MPI_Comm a, b;
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_dup(MPI_COMM_WORLD, &b);
  var all = watch(rank == 0 ? "spx_messages_sent" : "spx_messages_received", MPI_T_PVAR_CLASS_COUNTER, NULL);
  var bytes = watch(rank == 0 ? "spx_bytes_sent" : "spx_bytes_received", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
  var on_a = watch(rank == 0 ? "spx_comm_messages_sent" : "spx_comm_messages_received", MPI_T_PVAR_CLASS_COUNTER, &a);
  var on_b = watch(rank == 0 ? "spx_comm_bytes_sent" : "spx_comm_bytes_received", MPI_T_PVAR_CLASS_AGGREGATE, &b);
  CHECK(value(all) == 0);
  send(a, 5, 8);
  CHECK(value(all) == 0); /* not started */
  start(all), start(bytes), start(on_a), start(on_b);
  send(a, 10, 100);
  send(b, 3, 7);
  CHECK(value(all) == 15 && value(bytes) == 1021);
  CHECK(value(on_a) == 11 && value(on_b) == 21);
  stop(on_a);
  send(a, 2, 1);
  CHECK(value(on_a) == 11 && value(all) == 18);
  start(on_a);
  send(a, 2, 1);
  CHECK(value(on_a) == 14);
  CHECK(MPI_T_pvar_reset(session, on_a.h) == MPI_SUCCESS);
  CHECK(value(on_a) == 0 && value(all) == 21);
  ull n = 100;
  CHECK(MPI_T_pvar_write(session, on_a.h, &n) == MPI_SUCCESS);
  send(a, 1, 1);
  CHECK(MPI_T_pvar_readreset(session, on_a.h, &n) == MPI_SUCCESS && n == 102);
  CHECK(value(on_a) == 0);
  MPI_Comm_free(&a); /* its messages stay counted in the process's */
  CHECK(value(all) == 23);
  MPI_Comm_free(&b);
}

static void unexpected(void)
{
  var count = watch("spx_unexpected_messages", MPI_T_PVAR_CLASS_COUNTER, NULL);
  var now = watch("spx_unexpected_length", MPI_T_PVAR_CLASS_LEVEL, NULL);
  var high = watch("spx_unexpected_length_high", MPI_T_PVAR_CLASS_HIGHWATERMARK, NULL);
  var later = watch("spx_unexpected_length_high", MPI_T_PVAR_CLASS_HIGHWATERMARK, NULL);
  start(count), start(high);
  send(MPI_COMM_WORLD, 30, 8);
  start(later);
  send(MPI_COMM_WORLD, 20, 8);
  if (rank == 1) {
    CHECK(value(count) >= 50);
    CHECK(value(high) >= 30);
    CHECK(value(later) >= 20 && value(later) < 30);
    CHECK(value(now) == 0);
    MPI_T_pvar_reset(session, high.h);
    CHECK(value(high) == 0 && value(later) >= 20);
  }
  CHECK(MPI_T_pvar_start(session, now.h) == MPI_T_ERR_PVAR_NO_STARTSTOP);
  CHECK(MPI_T_pvar_reset(session, now.h) == MPI_T_ERR_PVAR_NO_WRITE);
}

/* A limit that the tool lowers: the same messages are announced. */
static void limits(void)
{
  var announced = watch("spx_messages_announced", MPI_T_PVAR_CLASS_COUNTER, NULL);
  start(announced);
  send(MPI_COMM_WORLD, 0, 0);
  CHECK(value(announced) == 0);
  write_ull("SPX_EAGER_MAX", 64, MPI_SUCCESS);
  char buf[200] = {0};
  for (int i = 0; i < 4; i++)
    if (rank == 0)
      MPI_Send(buf, 200, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(buf, 200, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(value(announced) == (rank == 0 ? 4 : 0));
  write_ull("SPX_EAGER_MAX", 16384, MPI_SUCCESS);
  write_ull("SPX_EAGER_MAX", 1 << 30, MPI_T_ERR_INVALID);
  write_ull("SPX_CREDIT", 1 << 20, MPI_T_ERR_CVAR_SET_NOT_NOW);
}

/* Large messages are got or streamed; both ends agree on how many bytes. */
static void large(void)
{
  var gets = watch("spx_gets", MPI_T_PVAR_CLASS_COUNTER, NULL),
      got = watch("spx_bytes_got", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
  var streamed = watch("spx_bytes_streamed", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
  start(gets), start(got), start(streamed);
  enum { N = 5, BYTES = 300000 };
  char *buf = calloc(1, BYTES);
  for (int i = 0; i < N; i++)
    if (rank == 0)
      MPI_Send(buf, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(buf, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  ull mine[2] = {value(streamed), value(got)}, both[2];
  CHECK(value(got) == value(gets) * BYTES);
  MPI_Allreduce(mine, both, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK(both[0] + both[1] >= (ull)N * BYTES);
  free(buf);
}

static void sleeping(void)
{
  var sleeps = watch("spx_sleeps", MPI_T_PVAR_CLASS_COUNTER, NULL),
      wakes = watch("spx_wakeups", MPI_T_PVAR_CLASS_COUNTER, NULL);
  var time = watch("spx_sleep_time", MPI_T_PVAR_CLASS_TIMER, NULL);
  write_ull("SPX_SPIN", 0, MPI_SUCCESS);
  write_ull("SPX_YIELD", 0, MPI_SUCCESS);
  start(sleeps), start(wakes), start(time);
  double began = MPI_Wtime(), slept = -1;
  /* The other is asleep after 20 ms, unless it has had no processor: what counts is that it says so. */
  for (int again = 1; again;) {
    if (rank == 0) {
      MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      again = value(sleeps) == 0;
      MPI_Send(&again, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else {
      for (double now = MPI_Wtime(); MPI_Wtime() < now + 0.02;) {}
      MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      MPI_Recv(&again, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 0) {
    MPI_T_pvar_read(session, time.h, &slept);
    CHECK(value(sleeps) > 0 && slept > 0 && slept <= MPI_Wtime() - began);
    double no_time = -1, some = 5;
    CHECK(MPI_T_pvar_write(session, time.h, &no_time) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_pvar_write(session, time.h, &some) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_read(session, time.h, &slept) == MPI_SUCCESS && slept >= 5 && slept < 6);
  }
}

/* MPI_T_PVAR_ALL_HANDLES is for all of a session, and for no others. */
static void all_of_a_session(void)
{
  MPI_T_pvar_session other;
  var mine = watch("spx_messages_sent", MPI_T_PVAR_CLASS_COUNTER, NULL);
  MPI_T_pvar_session_create(&other);
  MPI_T_pvar_session keep = session;
  session = other;
  var a = watch("spx_messages_sent", MPI_T_PVAR_CLASS_COUNTER, NULL),
      b = watch("spx_bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
  var level = watch("spx_posted_length", MPI_T_PVAR_CLASS_LEVEL, NULL);
  CHECK(MPI_T_pvar_start(other, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
  MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 0, (int[1]){0}, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(MPI_T_pvar_stop(other, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
  CHECK(value(a) == 1 && value(b) == 4 && value(level) == 0);
  session = keep;
  ull n;
  CHECK(value(mine) == 0);
  CHECK(MPI_T_pvar_read(session, a.h, &n) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_pvar_session_free(&other) == MPI_SUCCESS && other == MPI_T_PVAR_SESSION_NULL);
  CHECK(MPI_T_pvar_read(session, a.h, &n) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_pvar_handle_free(session, &mine.h) == MPI_SUCCESS && mine.h == MPI_T_PVAR_HANDLE_NULL);
}

int main(int argc, char **argv)
{
  int level;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
  messages();
  unexpected();
  limits();
  large();
  all_of_a_session();
  sleeping();
  var after = watch("spx_messages_sent", MPI_T_PVAR_CLASS_COUNTER, NULL);
  start(after);
  send(MPI_COMM_WORLD, 3, 8);
  ull before = value(after);
  MPI_Finalize();
  CHECK(value(after) == before);
  MPI_T_finalize();
  return check_status();
}
