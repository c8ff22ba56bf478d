/* rma.c - rows: one-sided operations, each flushed, on a window with a passive target. With two ranks rank 0 acts on rank 1, which
 * waits in the next collective; with more, every rank on its right neighbour. */
#include "rows.h"

static MPI_Win win;
static char *base; /* own part of the window: WIN_SLOTS slots */
static MPI_Datatype strided;

enum { PUT, GET, SUM, FETCH, SWAP, PUT_STRIDED, WIN_BYTES = 16 << 20 };

static int target(void) { return (rank + 1) % size; }
static int acts(void) { return size > 2 || rank == 0; }

static MPI_Aint place(size_t bytes, long i)
{
  size_t n = WIN_BYTES / bytes;
  return (MPI_Aint)((size_t)i % (n > SLOTS ? SLOTS : n) * bytes);
}

static void win_open(const row *r, size_t bytes)
{
  if (r->arg == PUT_STRIDED) {
    MPI_Type_vector((int)(bytes / 16), 2, 4, MPI_DOUBLE, &strided);
    MPI_Type_commit(&strided);
  }
  MPI_Win_allocate(WIN_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  memset(base, 0, WIN_BYTES);
  for (size_t i = 0; i < bytes && r->arg == GET; i++) base[i] = pattern(rank, i);
  if (r->arg == SUM) memset(out, 0, bytes), ((double *)out)[0] = rank + 1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
}

static void win_close(const row *r, size_t bytes)
{
  (void)bytes;
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  if (r->arg == PUT_STRIDED) MPI_Type_free(&strided);
}

static void act(const row *r, size_t bytes, long times)
{
  static long one = 1, none = 0;
  long old;
  int n = (int)bytes, to = target();
  if (!acts()) return;
  for (long i = 0; i < times; i++) {
    MPI_Aint at = place(r->arg == PUT_STRIDED ? 2 * bytes : bytes, i);
    switch (r->arg) {
    case PUT: MPI_Put(slot(out, bytes, i), n, MPI_BYTE, to, at, n, MPI_BYTE, win); break;
    case GET: MPI_Get(slot(in, bytes, i), n, MPI_BYTE, to, at, n, MPI_BYTE, win); break;
    case SUM: MPI_Accumulate(slot(out, bytes, i), n / 8, MPI_DOUBLE, to, at, n / 8, MPI_DOUBLE, MPI_SUM, win); break;
    case FETCH: MPI_Fetch_and_op(&one, &old, MPI_LONG, to, 0, MPI_SUM, win); break;
    case SWAP: MPI_Compare_and_swap(&none, &none, &old, MPI_LONG, to, 0, win); break;
    case PUT_STRIDED: MPI_Put(slot(out, bytes, i), n, MPI_BYTE, to, at, 1, strided, win); break;
    }
    MPI_Win_flush(to, win);
  }
}

static int act_wrong(const row *r, size_t bytes)
{
  int from = (rank + size - 1) % size, hit = size > 2 || rank == 1;
  MPI_Win_sync(win);
  if (r->arg == GET) return acts() && (in[0] != pattern(target(), 0) || in[bytes - 1] != pattern(target(), bytes - 1));
  if (!hit) return 0;
  switch (r->arg) {
  case PUT: return base[0] != pattern(from, 0) || base[bytes - 1] != pattern(from, bytes - 1);
  case SUM: return ((double *)base)[0] != from + 1;
  case FETCH: return ((long *)base)[0] != 1;
  case PUT_STRIDED:
    for (size_t i = 0; i < bytes; i++)
      if (base[i / 16 * 32 + i % 16] != pattern(from, i)) return 1;
    return base[16] != 0;
  }
  return 0;
}

/* An epoch between two fences with a put in it. */
static void fence_open(const row *r, size_t bytes)
{
  win_open(r, bytes);
  MPI_Win_unlock_all(win);
  MPI_Win_fence(0, win);
}

static void fenced(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++) {
    MPI_Put(slot(out, bytes, i), (int)bytes, MPI_BYTE, target(), place(bytes, i), (int)bytes, MPI_BYTE, win);
    MPI_Win_fence(0, win);
  }
}

static void fence_close(const row *r, size_t bytes)
{
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_lock_all(0, win);
  win_close(r, bytes);
}

static void create(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++) {
    MPI_Win w;
    char *mine;
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &w);
    MPI_Win_free(&w);
  }
}

#define ACT(NAME, WHAT, ...)                                                                                           \
  {                                                                                                                    \
    NAME, act, act_wrong, 1, 2, 16, {__VA_ARGS__}, win_open, win_close, WHAT                                           \
  }

const row rma_rows[] = {ACT("put", PUT, 8, 4096, 65536, 1048576),
                        ACT("get", GET, 8, 4096, 65536, 1048576),
                        ACT("accumulate", SUM, 8, 4096, 65536),
                        ACT("fetch_and_op", FETCH, 8),
                        ACT("compare_and_swap", SWAP, 8),
                        ACT("put-strided", PUT_STRIDED, 4096, 65536),
                        {"put-fence", fenced, 0, 1, 2, 16, {8, 65536}, fence_open, fence_close, PUT},
                        {"win_allocate", create, 0, 1, 2, 16, {4096}, 0, 0, 0},
                        {0}};
