/* Calls that wait in the engine are left by longjmp, out of a callback of MPI_T and out of the free function of a generalized request, again and again:
 * nothing grows, and MPI still works. Ranks 0 and 1 make the calls, rank 2 sends the messages whose coming is the event, at a random moment. In "exit" a
 * thread makes them that ends in the callback. */
// run: n=3 args="split 300" timeout=100
// run: n=3 args="file 200" timeout=100
// run: n=3 args="accept 100" timeout=100
// run: n=3 args="spawn 60" timeout=100
// run: n=3 args="shrink 200" timeout=100
// run: n=3 args="checkpoint 200" timeout=100
// run: n=3 args="exit 100" timeout=100
// run: n=3 args="split 10000" timeout=300 full=1
// run: n=3 args="file 10000" timeout=300 full=1
// run: n=3 args="accept 10000" timeout=300 full=1
// run: n=3 args="spawn 2000" timeout=300 full=1
// run: n=3 args="shrink 10000" timeout=300 full=1
// run: n=3 args="checkpoint 10000" timeout=300 full=1
// run: n=3 args="exit 10000" timeout=300 full=1
#include "boundary.h"
#include <pthread.h>
#include <mpi-ext.h>
#include <setjmp.h>

enum { TRIGGER = 2, READY = 5, NOW = 7, LEFT = 4711 };

static __thread jmp_buf out;
static __thread volatile int armed; /* this thread's next event leaves */
static int rank, kinds, by_exit;
static char port[MPI_MAX_PORT_NAME], path[64];

static int query(void *extra, MPI_Status *st) { return (void)extra, (void)st, MPI_SUCCESS; }
static int cancel(void *extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

static void leave(void)
{
  armed = 0;
  if (by_exit) pthread_exit(NULL);
  longjmp(out, LEFT);
}

static int free_and_leave(void *extra)
{
  if (extra) leave();
  return MPI_SUCCESS;
}

/* A callback may call MPI, also what waits, before it leaves. */
static void nested(void)
{
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  MPI_Comm_free(&dup);
}

static void on_message(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data)
{
  int source = -1, tag = -1;
  (void)r, (void)safety, (void)data;
  MPI_T_event_read(e, 0, &source);
  MPI_T_event_read(e, 1, &tag);
  if (source != TRIGGER || tag != NOW || !armed) return;
  if (kinds++ % 3 == 0) leave();
  if (kinds % 3 == 0) nested();
  MPI_Request g, same;
  MPI_Grequest_start(query, free_and_leave, cancel, &kinds, &g);
  same = g;
  MPI_Request_free(&g);
  MPI_Grequest_complete(same);
  FAIL("the free function has not left");
}

static MPI_T_event_registration listen(void)
{
  int index = -1, level;
  MPI_T_event_registration r;
  MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level);
  CHECK(MPI_T_event_get_index("spx_unexpected_message", &index) == MPI_SUCCESS);
  CHECK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r) == MPI_SUCCESS);
  CHECK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_message) == MPI_SUCCESS);
  return r;
}

/* ---- what is left, all in calls of both workers ---------------------------------------------------------------------- */

static void split(MPI_Comm pair)
{
  MPI_Comm half;
  MPI_Comm_split(pair, rank, 0, &half);
  MPI_Comm_free(&half);
}

static MPI_File open_file;

static void file(MPI_Comm pair)
{
  open_file = MPI_FILE_NULL;
  if (MPI_File_open(pair, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &open_file) != MPI_SUCCESS) return;
  MPI_File_sync(open_file);
  MPI_File_write_shared(open_file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&open_file);
}

static MPIX_Checkpoint open_point;
static long saved[30000];

static void checkpoint(MPI_Comm pair)
{
  int version;
  open_point = MPIX_CHECKPOINT_NULL;
  if (MPIX_Checkpoint_create(pair, MPI_INFO_NULL, &open_point) != MPI_SUCCESS) return;
  MPIX_Checkpoint_register(open_point, 0, saved, sizeof saved / sizeof *saved, MPI_LONG);
  MPIX_Checkpoint_save_begin(open_point, 1);
  MPIX_Checkpoint_commit(open_point);
  MPIX_Checkpoint_save(open_point, 2);
  MPIX_Checkpoint_restore(open_point, 1, &version);
  MPIX_Checkpoint_free(&open_point);
}

/* A file that was left in use is the program's to close: alone, as its communicator was revoked. One that was left in MPI_File_close is closed. A checkpoint
 * object that was left goes on with others, or is freed. */
static void close_left(void)
{
  if (open_point != MPIX_CHECKPOINT_NULL) {
    CHECK(MPIX_Checkpoint_attach(MPI_COMM_SELF, open_point) == MPI_SUCCESS);
    CHECK(MPIX_Checkpoint_save(open_point, 3) == MPI_SUCCESS && MPIX_Checkpoint_commit(open_point) == MPI_SUCCESS);
    CHECK(MPIX_Checkpoint_free(&open_point) == MPI_SUCCESS);
  }
  if (open_file != MPI_FILE_NULL) MPI_File_close(&open_file);
  open_file = MPI_FILE_NULL;
}

static void accept_one(MPI_Comm pair)
{
  MPI_Comm other;
  MPI_Comm_accept(port, MPI_INFO_NULL, 0, pair, &other);
}

static void spawn(MPI_Comm pair)
{
  MPI_Comm other;
  int code;
  MPI_Comm_spawn("/there/is/no/such/program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, pair, &other, &code);
}

static void shrink(MPI_Comm pair)
{
  MPI_Comm same;
  if (MPIX_Comm_shrink(pair, &same) == MPI_SUCCESS) MPI_Comm_free(&same);
}

static const struct {
  const char *name;
  void (*call)(MPI_Comm);
} calls[] = {{"split", split},           {"file", file}, {"accept", accept_one}, {"spawn", spawn}, {"shrink", shrink},
             {"checkpoint", checkpoint}, {"exit", split}};

static void (*called(const char *name))(MPI_Comm)
{
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
    if (!strcmp(calls[i].name, name)) return calls[i].call;
  FAIL("no call %s", name);
}

/* ---- rounds ---------------------------------------------------------------------------------------------------------- */

typedef struct {
  void (*call)(MPI_Comm);
  MPI_Comm pair;
} round_of;

/* Comes back when it was left. */
static void *call_until_left(void *arg)
{
  const round_of *r = arg;
  int why = setjmp(out);
  if (why == LEFT) return NULL;
  armed = 1;
  MPI_Send(NULL, 0, MPI_INT, TRIGGER, READY, MPI_COMM_WORLD);
  for (;;) r->call(r->pair);
}

static void worker(void (*call)(MPI_Comm), MPI_Group both, int n)
{
  for (volatile int i = 0; i < n; i++) {
    round_of r = {call, MPI_COMM_NULL};
    pthread_t t;
    MPI_Comm_create_group(MPI_COMM_WORLD, both, 1, &r.pair);
    MPI_Comm_set_errhandler(r.pair, MPI_ERRORS_RETURN);
    if (!by_exit)
      call_until_left(&r);
    else if (pthread_create(&t, NULL, call_until_left, &r) != 0 || pthread_join(t, NULL) != 0)
      FAIL("no thread");
    MPI_Recv(NULL, 0, MPI_INT, TRIGGER, NOW, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    close_left();
    MPI_Comm_free(&r.pair);
  }
}

static void trigger(int n)
{
  unsigned seed = 1;
  for (int i = 0; i < n; i++) {
    for (int w = 0; w < 2; w++) MPI_Recv(NULL, 0, MPI_INT, w, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double until = MPI_Wtime() + 1e-6 * (rand_r(&seed) % 200);
    while (MPI_Wtime() < until) {}
    for (int w = 0; w < 2; w++) MPI_Send(NULL, 0, MPI_INT, w, NOW, MPI_COMM_WORLD);
  }
}

static void rounds(void (*call)(MPI_Comm), MPI_Group both, int n)
{
  if (rank == TRIGGER)
    trigger(n);
  else
    worker(call, both, n);
}

int main(int argc, char **argv)
{
  int level, size, n = atoi(argv[2]), one = 1, sum = 0;
  MPI_Group all, both;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 2, (const int[]){0, 1}, &both);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  open_file = MPI_FILE_NULL;
  by_exit = !strcmp(argv[1], "exit");
  snprintf(path, sizeof path, "left.%d", 3);
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_T_event_registration r = listen();
  rounds(called(argv[1]), both, n / 3 + 30); /* what is made once is made */
  long rss = status_kb("VmRSS"), threads = status_kb("Threads"), files = count_files();
  rounds(called(argv[1]), both, n);
  long grown = status_kb("VmRSS") - rss; /* the engine's heap gets its size, some MB, whatever the rounds */
  printf("rank %d: %ld KB in %d rounds\n", rank, grown, n);
  if (grown > 8192) FAIL("resident memory grew by %ld KB in %d rounds", grown, n);
  if (status_kb("Threads") > threads + 3) FAIL("%ld threads, before %ld", status_kb("Threads"), threads);
  if (count_files() > files + 2) FAIL("%ld descriptors, before %ld", count_files(), files);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != size) FAIL("allreduce gives %d", sum);
  CHECK(MPI_T_event_handle_free(r, NULL, NULL) == MPI_SUCCESS);
  MPI_T_finalize();
  if (rank == 0) MPI_Close_port(port);
  MPI_Group_free(&both);
  MPI_Group_free(&all);
  counters_file("SPX_COUNTERS");
  MPI_Finalize();
  long conts = counter("continuations"), goroutines = counter("goroutines");
  if (conts > 1) FAIL("%ld continuations are left", conts);
  if (goroutines > 16) FAIL("%ld goroutines are left", goroutines);
  return 0;
}
