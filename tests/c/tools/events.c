/* Events (MPI-5.0, 16.3.8): a message that comes before its receive, a large one that is got; callbacks may use MPI, free their own
 * registration, and know source and time; more than fit are dropped and counted. */
// run: n=2
#include "../check.h"
#include <string.h>

static int rank, calls, freed, dropped_calls, nested;
static MPI_Count last_time, dropped;
static struct {
  int source, tag;
  unsigned long long bytes, context;
} last;

static void on_free(MPI_T_event_registration r, MPI_T_cb_safety safety, void *data)
{
  (void)r;
  CHECK(safety == MPI_T_CB_REQUIRE_NONE && data == &freed);
  freed++;
}

static void on_message(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data)
{
  int source = -1, tag = -1, where = -1;
  unsigned long long bytes = 0;
  MPI_Count t = 0, now = 0;
  (void)r;
  CHECK(safety == MPI_T_CB_REQUIRE_NONE && data == &calls);
  CHECK(MPI_T_event_read(e, 0, &source) == MPI_SUCCESS && MPI_T_event_read(e, 1, &tag) == MPI_SUCCESS);
  CHECK(MPI_T_event_read(e, 2, &bytes) == MPI_SUCCESS && MPI_T_event_read(e, 4, &bytes) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_event_read(e, -1, &bytes) == MPI_T_ERR_INVALID_INDEX &&
        MPI_T_event_read(e, 0, NULL) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_event_copy(e, NULL) == MPI_T_ERR_INVALID && MPI_T_event_get_timestamp(e, NULL) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_event_get_source(e, NULL) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_event_copy(e, &last) == MPI_SUCCESS);
  CHECK(last.source == source && last.tag == tag && last.bytes == bytes);
  CHECK(MPI_T_event_get_timestamp(e, &t) == MPI_SUCCESS && MPI_T_event_get_source(e, &where) == MPI_SUCCESS);
  CHECK(where == 0 && MPI_T_source_get_timestamp(0, &now) == MPI_SUCCESS && t <= now && t >= last_time);
  last_time = t;
  calls++;
  if (!nested) { /* a callback may communicate */
    nested = 1;
    int x = 5, y = 0;
    MPI_Sendrecv(&x, 1, MPI_INT, 0, 99, &y, 1, MPI_INT, 0, 99, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(y == 5);
  }
}

static void on_dropped(MPI_Count n, MPI_T_event_registration r, int source, MPI_T_cb_safety safety, void *data)
{
  (void)r;
  CHECK(n > 0 && source == 0 && safety == MPI_T_CB_REQUIRE_NONE && data == &calls);
  dropped += n;
  dropped_calls++;
}

static void once(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data)
{
  (void)e;
  (void)safety;
  ++*(int *)data;
  CHECK(MPI_T_event_handle_free(r, &freed, on_free) == MPI_SUCCESS);
}

static MPI_T_event_registration listen(const char *name, MPI_T_event_cb_function *fn, void *data)
{
  int index = -1;
  MPI_T_event_registration r;
  CHECK(MPI_T_event_get_index(name, &index) == MPI_SUCCESS);
  CHECK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r) == MPI_SUCCESS);
  CHECK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, data, fn) == MPI_SUCCESS);
  return r;
}

/* A call that makes progress: events that have happened are told in such a call, if not before. */
static void progress(void)
{
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/* n messages of rank 0 that rank 1 receives in the reverse order of their tags. */
static void send(int n, int ints)
{
  static int buf[100000];
  if (rank == 0)
    for (int i = 0; i < n; i++) MPI_Send(buf, ints, MPI_INT, 1, i, MPI_COMM_WORLD);
  else
    for (int i = n - 1; i >= 0; i--) MPI_Recv(buf, ints, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  progress();
}

static void info_of(MPI_T_event_registration r)
{
  MPI_Info info = MPI_INFO_NULL;
  CHECK(MPI_T_event_handle_get_info(r, &info) == MPI_SUCCESS && info != MPI_INFO_NULL);
  CHECK(MPI_T_event_handle_set_info(r, info) == MPI_SUCCESS);
  MPI_Info_free(&info);
  CHECK(MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_THREAD_SAFE, &info) == MPI_SUCCESS);
  CHECK(MPI_T_event_callback_set_info(r, MPI_T_CB_REQUIRE_THREAD_SAFE, info) == MPI_SUCCESS);
  MPI_Info_free(&info);
  CHECK(MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_NONE, &info) == MPI_T_ERR_INVALID);
}

int main(int argc, char **argv)
{
  int level, got = 0, one = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
  MPI_T_event_registration r = listen("spx_unexpected_message", on_message, &calls); /* before MPI_Init */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  info_of(r);
  CHECK(MPI_T_event_set_dropped_handler(r, on_dropped) == MPI_SUCCESS);
  send(5, 3);
  if (rank == 1) CHECK(calls >= 4 && last.bytes <= 12 && last.source == 0);

  MPI_T_event_registration g = listen("spx_get_done", once, &got);
  MPI_T_event_registration o = listen("spx_unexpected_message", once, &one);
  MPI_Barrier(MPI_COMM_WORLD); /* no message comes before both listen */
  send(3, 3);
  if (rank == 1) CHECK(one == 1 && freed == 1);
  (void)o;
  /* more than the queue holds, while nothing makes progress between arrival and delivery: sends to itself */
  MPI_Request q[1500];
  int before = calls, y;
  for (int i = 0; i < 1500; i++) MPI_Isend(&one, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &q[i]);
  for (int i = 0; i < 1500; i++) MPI_Recv(&y, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Waitall(1500, q, MPI_STATUSES_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  send(1, 1);
  CHECK(dropped_calls >= 1 && dropped >= 1500 - 1024 && calls - before + dropped >= 1500);

  CHECK(MPI_T_event_handle_free(r, &freed, on_free) == MPI_SUCCESS);
  int silent = calls;
  send(5, 3);
  CHECK(calls == silent);
  send(1, 100000);
  if (rank == 0) CHECK(got == 0);
  (void)g;
  /* what was dropped before MPI_T_finalize is not told to those that listen later */
  r = listen("spx_unexpected_message", on_message, &calls);
  for (int i = 0; i < 1500; i++) MPI_Isend(&one, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &q[i]);
  MPI_T_finalize();
  MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
  r = listen("spx_unexpected_message", on_message, &calls);
  CHECK(MPI_T_event_set_dropped_handler(r, on_dropped) == MPI_SUCCESS);
  silent = dropped_calls;
  for (int i = 0; i < 1500; i++) MPI_Recv(&y, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Waitall(1500, q, MPI_STATUSES_IGNORE);
  progress();
  CHECK(dropped_calls == silent);
  MPI_Finalize();
  MPI_T_finalize();
  return check_status();
}
