/* The memory of a process is that of the pairs which talk, not of all that ever have. "burst": each pair in turn exchanges what fills its buffers,
 * through others or over connections that give way; then nothing waits anywhere, and memory is little more than before. "turns": pairs change all
 * the time, so that each exchange makes a connection and closes another; memory after many is what it was after some.
 * "cross": both ends of a connection close it at once, while as much waits as they have room for. docs/connections.md. */
// run: n=16 n.few=8 args="burst" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=random:1:1 timeout=200
// run: n=16 args="burst" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=2 timeout=200 full=1
// run: n=16 n.few=9 args="burst" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=6 timeout=200
// run: n=12 n.few=6 args="burst" env=SPX_TRANSPORTS=tcp timeout=200
// run: n=3 args="cross" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=1 timeout=60
// run: n=6 args="cross" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=2 timeout=60 full=1
// run: n=4 args="turns" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS_MAX=1 timeout=60 full=1
#include <stdlib.h>
#include <string.h>
#include "../check.h"
#include "memory.h"

enum {
  MESSAGES = 64,
  BYTES = 8000,
  ROUNDS = 3,
  SOME = 300,
  MANY = 3000,
  CROSSED = 8,
  FLOOD = 10000,
  POLLS = 1000, /* between two looks at the memory, which take as long as some hundred */
  LIMIT = 120   /* s */
};
enum { EACH = 1024 }; /* bytes */
/* KiB: of a pair with a connection, of one without, of all else: the engine's heap grows by 1.5 MiB, sooner or later. */
enum { FULL = 512, EMPTY = 64, OTHER = 2048 };

static int rank, size;
static char *out, *in;

static void exchange(int to, int from, int messages, int bytes)
{
  static MPI_Request r[2 * MESSAGES];
  for (int i = 0; i < messages; i++) MPI_Irecv(in + (size_t)i * BYTES, bytes, MPI_BYTE, from, i, MPI_COMM_WORLD, &r[i]);
  for (int i = 0; i < messages; i++)
    MPI_Isend(out + (size_t)i * BYTES, bytes, MPI_BYTE, to, i, MPI_COMM_WORLD, &r[messages + i]);
  MPI_Waitall(2 * messages, r, MPI_STATUSES_IGNORE);
}

/* The partner in a round in which all talk in pairs: in size - 1 rounds with everybody (size is even). */
static int partner_in(int round)
{
  int last = size - 1, turn = round % last;
  if (rank == last) return turn;
  if (rank == turn) return last;
  return (2 * turn - rank + 2 * last) % last;
}

static MPI_T_pvar_session session;
static MPI_T_pvar_handle open_now, opened_so_far;

static MPI_T_pvar_handle watch(const char *name, int class)
{
  int index, count;
  MPI_T_pvar_handle h;
  CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &h, &count) == MPI_SUCCESS);
  MPI_T_pvar_start(session, h);
  return h;
}

static unsigned long long value(MPI_T_pvar_handle h)
{
  unsigned long long v = 0;
  CHECK(MPI_T_pvar_read(session, h, &v) == MPI_SUCCESS);
  return v;
}

static void burst(void)
{
  for (int r = 0; r < size - 1; r++) exchange(partner_in(r), partner_in(r), 1, 100);
  MPI_Barrier(MPI_COMM_WORLD);
  long before = memory_kb();
  CHECK(before > 0);
  for (int r = 0; r < ROUNDS * (size - 1); r++) exchange(partner_in(r), partner_in(r), MESSAGES, BYTES);
  MPI_Barrier(MPI_COMM_WORLD);
  long after = memory_kb(), open = (long)value(open_now);
  fprintf(stderr, "rank %d: %ld KiB, then %ld; %ld connections\n", rank, before, after, open);
  CHECK(after - before < open * FULL + (size - 1) * EMPTY + OTHER);
  int there;
  for (double end = MPI_Wtime() + LIMIT; after - before > (size - 1) * EMPTY + OTHER && MPI_Wtime() < end;
       after = memory_kb())
    for (int i = 0; i < POLLS && MPI_Wtime() < end; i++)
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  fprintf(stderr, "rank %d: in the end %ld KiB\n", rank, after);
  CHECK(after - before <= (size - 1) * EMPTY + OTHER); /* they have a connection, and nothing to say */
}

/* All send more to all than buffers hold, and short messages, which fill them to the last line: both ends of a connection give it up at once. */
static void cross(void)
{
  MPI_Request *r = malloc((size_t)size * 2 * FLOOD * sizeof *r);
  for (int k = 0; k < CROSSED; k++) {
    int n = 0;
    for (int i = 0; i < FLOOD; i++)
      for (int to = 0; to < size; to++) {
        if (to == rank) continue;
        MPI_Irecv(in + i, 1, MPI_BYTE, to, 0, MPI_COMM_WORLD, &r[n++]);
        MPI_Isend(out + i, 1, MPI_BYTE, to, 0, MPI_COMM_WORLD, &r[n++]);
      }
    MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
  }
  free(r);
}

/* The engine's heap grows until its first collections, by more where there are more processors (it keeps free memory for each). So the second half of
 * the turns is compared with what it would be if a connection left EACH bytes behind. */
static void turns(void)
{
  long before = 0, half = 0;
  unsigned long long opened = 0;
  for (int r = 0; r < MANY; r++) {
    if (r == SOME) before = memory_kb();
    if (r == MANY / 2) half = memory_kb(), opened = value(opened_so_far);
    exchange(partner_in(r), partner_in(r), 1, 100);
  }
  long after = memory_kb();
  opened = value(opened_so_far) - opened;
  fprintf(stderr, "rank %d: %ld KiB, %ld, then %ld; %llu connections\n", rank, before, half, after, opened);
  CHECK(opened > MANY / 4);
  CHECK((after - half) * 1024 < (long)opened * EACH);
}

int main(int argc, char **argv)
{
  int provided;
  MPI_Init(&argc, &argv);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  open_now = watch("spx_connections_open", MPI_T_PVAR_CLASS_LEVEL);
  opened_so_far = watch("spx_connections_opened", MPI_T_PVAR_CLASS_COUNTER);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  out = malloc((size_t)MESSAGES * BYTES);
  in = malloc((size_t)MESSAGES * BYTES);
  memset(out, rank, (size_t)MESSAGES * BYTES);
  memset(in, 0, (size_t)MESSAGES * BYTES);
  if (argc > 1 && strcmp(argv[1], "turns") == 0)
    turns();
  else if (argc > 1 && strcmp(argv[1], "cross") == 0)
    cross();
  else
    burst();
  MPI_T_finalize();
  MPI_Finalize();
  return check_status();
}
