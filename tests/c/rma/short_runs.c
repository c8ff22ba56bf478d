// run: n=1,2,4 n.few=1,3
// run: n=2,4 n.few=2 env="SPX_CMA=0"
// run: n=2 env="SPX_SPIN=0"
// run: n=3 env=SPX_TRANSPORTS=tcp
/* Datatypes of many short blocks on windows of user memory: vectors, lists without a pattern, lists that go down, and blocks of
 * different lengths, put, got and accumulated; the bytes between the blocks stay. Millions of elements that touch beside millions that do not
 * take no longer than packing them. Blocks that are pages apart. A target that makes no MPI call for a long time does not hold up
 * an origin. MPI-5.0, 12.3. */
#include "../check.h"
#include "near.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { N = 20000, SPACE = 3 * N };

static int rank, size, *mem, *mine;

#define OK(call) CHECK_CLASS(call, MPI_SUCCESS)

static int next(unsigned *seed) { return (int)((*seed = *seed * 1103515245u + 12345u) >> 16 & 0x7fff); }

/* Of N ints within SPACE. */
static MPI_Datatype make(int kind)
{
  static int at[N], len[N];
  MPI_Datatype t;
  unsigned seed = 7;
  int n = 0, p = 0;
  for (int i = 0; i < N; n++) {
    len[n] = kind == 3 ? 1 + next(&seed) % 3 : 1;
    if (i + len[n] > N) len[n] = N - i;
    at[n] = p;
    p += len[n] + (i + len[n] < N && p < SPACE - 2 * (N - i) ? 1 + next(&seed) % 2 : 0);
    i += len[n];
  }
  if (kind == 2)
    for (int i = 0; i < n / 2; i++) {
      int a = at[i];
      at[i] = at[n - 1 - i];
      at[n - 1 - i] = a;
    }
  if (kind == 0)
    OK(MPI_Type_vector(N, 1, 3, MPI_INT, &t));
  else
    OK(MPI_Type_indexed(n, len, at, MPI_INT, &t));
  OK(MPI_Type_commit(&t));
  return t;
}

/* What unpacking the packed ints does to memory full of -1. */
static void expect(MPI_Datatype t, const int *packed, int *out)
{
  int at = 0;
  for (int i = 0; i < SPACE; i++) out[i] = -1;
  OK(MPI_Unpack(packed, N * (int)sizeof(int), &at, out, 1, t, MPI_COMM_WORLD));
}

static void fill(int *a, int n, int v)
{
  for (int i = 0; i < n; i++) a[i] = v;
}

static void kinds(MPI_Win w, int kind)
{
  static int packed[N], want[SPACE], got[SPACE];
  int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Datatype t = make(kind);
  for (int i = 0; i < N; i++) packed[i] = rank * N + i;
  fill(mem, SPACE, -1);
  OK(MPI_Win_fence(0, w));
  OK(MPI_Put(packed, N, MPI_INT, to, 0, 1, t, w));
  OK(MPI_Win_fence(0, w));
  for (int i = 0; i < N; i++) packed[i] = from * N + i;
  expect(t, packed, want);
  CHECK(memcmp(mem, want, sizeof want) == 0);

  fill(got, SPACE, -1);
  OK(MPI_Win_fence(0, w));
  OK(MPI_Get(got, 1, t, to, 0, 1, t, w));
  OK(MPI_Win_fence(0, w));
  for (int i = 0; i < N; i++) packed[i] = rank * N + i;
  expect(t, packed, want);
  CHECK(memcmp(got, want, sizeof want) == 0);

  OK(MPI_Win_fence(0, w));
  OK(MPI_Accumulate(got, 1, t, to, 0, 1, t, MPI_SUM, w)); /* twice what it was */
  OK(MPI_Win_fence(0, w));
  for (int i = 0; i < N; i++) packed[i] = 2 * (from * N + i);
  expect(t, packed, want);
  CHECK(memcmp(mem, want, sizeof want) == 0);
  MPI_Type_free(&t);
}

/* Elements of ints that touch at one end, and lie apart at the other; both ways. What is done for each int is bounded. */
static void touching(void)
{
  enum { M = 3000000 };
  MPI_Win w;
  MPI_Datatype touch, apart;
  int *window = malloc((2 * M + 2) * sizeof(int)), *local = malloc((2 * M + 2) * sizeof(int)), shift = 1;
  int to = (rank + 1) % size, from = (rank + size - 1) % size;
  OK(MPI_Type_create_indexed_block(1, 1, &shift, MPI_INT, &touch));
  OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &apart));
  OK(MPI_Type_commit(&touch));
  OK(MPI_Type_commit(&apart));
  OK(MPI_Win_create(window, (2 * M + 2) * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w));
  for (int way = 0; way < 2; way++) {
    MPI_Datatype here = way ? touch : apart, there = way ? apart : touch;
    int h = way ? 1 : 2, t = way ? 2 : 1, h0 = way, t0 = !way; /* element i is at h0 + i * h here */
    long bad = 0;
    fill(window, 2 * M + 2, -1);
    for (int i = 0; i < 2 * M + 2; i++) local[i] = i + rank;
    OK(MPI_Win_fence(0, w));
    OK(MPI_Put(local, M, here, to, 0, M, there, w));
    OK(MPI_Win_fence(0, w));
    for (int i = 0; i < M; i++) bad += window[t0 + i * t] != h0 + i * h + from;
    fill(local, 2 * M + 2, -1);
    OK(MPI_Win_fence(0, w));
    OK(MPI_Get(local, M, here, to, 0, M, there, w));
    OK(MPI_Win_fence(0, w));
    for (int i = 0; i < M; i++) bad += local[h0 + i * h] != h0 + i * h + rank;
    CHECK(bad == 0);
    CHECK(way ? window[1] == -1 : local[1] == -1);
  }
  OK(MPI_Win_free(&w));
  MPI_Type_free(&touch);
  MPI_Type_free(&apart);
  free(window);
  free(local);
}

/* Single ints, 3 pages apart: what lies between is not worth reading. */
static void pages_apart(void)
{
  enum { M = 2000, STEP = 3 * 1024 };
  static int packed[M], back[M];
  MPI_Win w;
  MPI_Datatype t;
  int *window = calloc((size_t)M * STEP, sizeof(int)), to = (rank + 1) % size, from = (rank + size - 1) % size;
  long bad = 0;
  OK(MPI_Type_vector(M, 1, STEP, MPI_INT, &t));
  OK(MPI_Type_commit(&t));
  OK(MPI_Win_create(window, (MPI_Aint)M * STEP * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                    &w));
  for (int i = 0; i < M; i++) packed[i] = i + rank;
  OK(MPI_Win_fence(0, w));
  OK(MPI_Put(packed, M, MPI_INT, to, 0, 1, t, w));
  OK(MPI_Win_fence(0, w));
  OK(MPI_Get(back, M, MPI_INT, to, 0, 1, t, w));
  OK(MPI_Win_fence(0, w));
  for (int i = 0; i < M; i++) bad += window[(size_t)i * STEP] != i + from || back[i] != packed[i];
  CHECK(bad == 0);
  OK(MPI_Win_free(&w));
  MPI_Type_free(&t);
  free(window);
}

/* Rank 0 puts into rank 1, which looks at a word of shared memory and calls nothing. */
static void busy_target(MPI_Win w)
{
  MPI_Win flags;
  volatile int *flag;
  MPI_Aint bytes;
  int unit;
  static int packed[N];
  MPI_Datatype t = make(1);
  OK(MPI_Win_allocate_shared(rank ? 0 : sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &flags));
  OK(MPI_Win_shared_query(flags, 0, &bytes, &unit, (void *)&flag));
  fill(packed, N, 5);
  fill(mem, SPACE, -1);
  if (rank == 0) *flag = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, w));
    OK(MPI_Put(packed, N, MPI_INT, 1, 0, 1, t, w));
    OK(MPI_Win_unlock(1, w));
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  } else if (rank == 1) {
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) sched_yield();
    int n = 0;
    for (int i = 0; i < SPACE; i++) n += mem[i] == 5;
    CHECK(n == N);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&flags);
  MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
  MPI_Win w;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  mem = malloc(SPACE * sizeof *mem);
  OK(MPI_Win_create(mem, SPACE * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &w));
  for (int kind = 0; kind < 4; kind++) kinds(w, kind);
  const char *cma = getenv("SPX_CMA");
  if (size > 1 && !(cma && *cma == '0') && are_near(MPI_COMM_WORLD))
    busy_target(w); /* else only the target itself can reach its memory */
  OK(MPI_Win_free(&w));
  free(mem);
  touching();
  pages_apart();
  MPI_Finalize();
  return check_status();
}
