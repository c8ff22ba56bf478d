// run: n=4 args="own"
// run: n=4 args="wrapped"
/* Ranks that each have pid numbers of their own, as in containers, and ranks below a wrapper, which is what the agent has started: long messages
 * of all layouts, windows of the processes' own memory, spawned processes. A wrapped rank's messages are read by its pid, as any rank's. */
#define _GNU_SOURCE
#include "../check.h"
#include "../pids.h"

enum { LONG = 3 << 20, SPAWNED = 2 };
static int rank, size;

static void fill(int *a, int n, int key)
{
  for (int i = 0; i < n; i++) a[i] = key * 1000003 + i;
}

static int same(const int *a, int n, int key)
{
  int wrong = 0;
  for (int i = 0; i < n; i++) wrong += a[i] != key * 1000003 + i;
  return wrong == 0;
}

static void messages(MPI_Comm comm, int me, int n)
{
  int *out = malloc(LONG), *in = calloc(1, LONG), ints = LONG / (int)sizeof(int);
  MPI_Datatype columns;
  MPI_Type_vector(ints / 2048, 1024, 2048, MPI_INT, &columns);
  MPI_Type_commit(&columns);
  for (int round = 0; round < 2; round++) {
    fill(out, ints, me + round);
    memset(in, 0, LONG);
    MPI_Sendrecv(out, round ? 1 : ints, round ? columns : MPI_INT, (me + 1) % n, 0, in, round ? 1 : ints,
                 round ? columns : MPI_INT, (me + n - 1) % n, 0, comm, MPI_STATUS_IGNORE);
    int from = (me + n - 1) % n + round;
    if (!round) CHECK(same(in, ints, from));
    for (int i = 0; round && i < ints / 2048 * 2048; i++)
      if (in[i] != (i % 2048 < 1024 ? from * 1000003 + i : 0)) CHECK(!"what is in the columns, and between them");
  }
  MPI_Type_free(&columns);
  free(out);
  free(in);
}

static void windows(void)
{
  int ints = LONG / (int)sizeof(int), *mine = malloc(LONG), *got = calloc(1, LONG), next = (rank + 1) % size, one = 1;
  MPI_Win win;
  fill(mine, ints, rank);
  MPI_Win_create(mine, LONG, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Get(got, ints, MPI_INT, next, 0, ints, MPI_INT, win);
  MPI_Win_fence(0, win);
  CHECK(same(got, ints, next));
  MPI_Put(got, ints, MPI_INT, (next + 1) % size, 0, ints, MPI_INT, win);
  MPI_Win_fence(0, win);
  CHECK(same(mine, ints, (rank + size - 1) % size));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  if (rank == 0) CHECK(mine[0] == (size - 1) * 1000003 + size);
  MPI_Win_free(&win);
  free(mine);
  free(got);
}

/* How many messages of these this process has read out of their senders' memory. */
static unsigned long long counted(void)
{
  int index, provided, count;
  unsigned long long n = 0;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  CHECK(MPI_T_pvar_get_index("spx_gets", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
  MPI_T_pvar_start(session, handle);
  messages(MPI_COMM_WORLD, rank, size);
  CHECK(MPI_T_pvar_read(session, handle, &n) == MPI_SUCCESS);
  MPI_T_pvar_handle_free(session, &handle);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  return n;
}

static void spawn(char *program)
{
  MPI_Comm children, all;
  char *args[] = {"child", NULL};
  int n;
  MPI_Comm_spawn(program, args, SPAWNED, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(children, 0, &all);
  MPI_Comm_size(all, &n);
  CHECK(n == size + SPAWNED);
  messages(all, rank, n);
  MPI_Comm_disconnect(&all);
  MPI_Comm_disconnect(&children);
}

static void child(void)
{
  MPI_Comm parents, all;
  int me, n;
  MPI_Comm_get_parent(&parents);
  MPI_Intercomm_merge(parents, 1, &all);
  MPI_Comm_rank(all, &me);
  MPI_Comm_size(all, &n);
  messages(all, me, n);
  MPI_Comm_disconnect(&all);
  MPI_Comm_disconnect(&parents);
}

int main(int argc, char **argv)
{
  const char *how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "own") == 0) own_pids(argv);
  if (strcmp(how, "wrapped") == 0) below_wrapper(argv);
  setenv("SPX_STREAM_MAX", "0", 0); /* messages are read, where that can be */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(how, "child") == 0)
    child();
  else {
    unsigned long long n = counted();
    if (strcmp(how, "own") == 0) CHECK(n == 0);
    if (strcmp(how, "wrapped") == 0 && may_be_read()) CHECK(n > 0);
    windows();
    spawn(argv[0]);
  }
  MPI_Finalize();
  return check_status();
}
