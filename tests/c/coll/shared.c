/* Collectives in the memory that a communicator's processes share: sizes about every limit, ranks that run ahead, operations that
 * overlap on one communicator and on several, more communicators than have such memory, memory that is used again, and calls
 * that do not match. MPI-5.0 6.1, 6.12. */
// run: n=2,5 n.few=3 timeout=120
// run: n=3,16 timeout=120 full=1
// run: n=4 env=SPX_CMA=0 timeout=120
#include "../check.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static uint64_t seed = 88172645463325252ull; /* the same numbers at all ranks */
static unsigned rnd(unsigned n)
{
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(seed >> 33) % n;
}

static int64_t value(int from, int round, int64_t i) { return from * 1000003ll + round * 7919ll + i * 31; }

/* Around the sizes at which another way is taken: a cell, the vectors that everybody reduces, a slot, a part. */
static int64_t some_count(void)
{
  static const int limits[] = {1, 6, 7, 8, 12, 64, 512, 513, 4096, 8192, 8193, 32768, 65536, 131072, 140000};
  int64_t n = limits[rnd(sizeof limits / sizeof *limits)];
  return n + rnd(3) - (n > 1);
}

static void set(int64_t *v, int from, int round, int64_t n)
{
  for (int64_t i = 0; i < n; i++) v[i] = value(from, round, i);
}

static int is(const int64_t *v, int from, int round, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    if (v[i] != value(from, round, i)) return 0;
  return 1;
}

static int is_sum(const int64_t *v, int ranks, int round, int64_t n)
{
  int64_t ids = (int64_t)ranks * (ranks - 1) / 2 * 1000003;
  for (int64_t i = 0; i < n; i++)
    if (v[i] != ids + ranks * (round * 7919ll + i * 31)) return 0;
  return 1;
}

/* Random operations, sizes and roots on one communicator; nobody waits for the others in between. */
static void mixed(MPI_Comm c, int rounds)
{
  enum { MOST = 150000 };
  int64_t *in = malloc((size_t)MOST * 8), *out = malloc((size_t)MOST * 8 * 2);
  for (int k = 0; k < rounds; k++) {
    int64_t n = some_count();
    int root = (int)rnd((unsigned)size), what = (int)rnd(8);
    int64_t each = n / size ? n / size : 1;
    set(in, rank, k, n);
    switch (what) {
    case 0:
      if (rank == root) memcpy(out, in, (size_t)n * 8);
      MPI_Bcast(out, (int)n, MPI_INT64_T, root, c);
      CHECK(is(out, root, k, n));
      break;
    case 1:
      MPI_Allreduce(in, out, (int)n, MPI_INT64_T, MPI_SUM, c);
      CHECK(is_sum(out, size, k, n));
      break;
    case 2:
      MPI_Reduce(in, out, (int)n, MPI_INT64_T, MPI_SUM, root, c);
      CHECK(rank != root || is_sum(out, size, k, n));
      break;
    case 3:
      MPI_Allgather(in, (int)each, MPI_INT64_T, out, (int)each, MPI_INT64_T, c);
      for (int r = 0; r < size; r++) CHECK(is(out + r * each, r, k, each));
      break;
    case 4:
      MPI_Gather(in, (int)each, MPI_INT64_T, out, (int)each, MPI_INT64_T, root, c);
      for (int r = 0; r < size && rank == root; r++) CHECK(is(out + r * each, r, k, each));
      break;
    case 5:
      for (int r = 0; r < size && rank == root; r++) set(out + r * each, r, k, each);
      MPI_Scatter(out, (int)each, MPI_INT64_T, rank == root ? MPI_IN_PLACE : in, (int)each, MPI_INT64_T, root, c);
      CHECK(rank == root || is(in, rank, k, each));
      break;
    case 6:
      for (int r = 0; r < size; r++) set(out + r * each, rank * 100 + r, k, each);
      MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, (int)each, MPI_INT64_T, c);
      for (int r = 0; r < size; r++) CHECK(is(out + r * each, r * 100 + rank, k, each));
      break;
    default: MPI_Scan(in, out, (int)n, MPI_INT64_T, MPI_SUM, c); CHECK(is_sum(out, rank + 1, k, n));
    }
  }
  free(in);
  free(out);
}

/* A root that never waits, with data that change as soon as a call has returned. */
static void ahead(void)
{
  int64_t v[1000];
  for (int k = 0; k < 3000; k++) {
    int n = k % 3 ? 2 : 1000;
    if (rank == 0) set(v, 7, k, n);
    MPI_Bcast(v, n, MPI_INT64_T, 0, MPI_COMM_WORLD);
    CHECK(is(v, 7, k, n));
    set(v, 0, -1, n);
  }
  for (int k = 0; k < 500; k++) {
    int64_t all[16 * 4];
    set(v, rank, k, 4);
    MPI_Gather(v, 4, MPI_INT64_T, all, 4, MPI_INT64_T, size - 1, MPI_COMM_WORLD);
    set(v, 0, -1, 4);
    for (int r = 0; r < size && rank == size - 1; r++) CHECK(is(all + 4 * r, r, k, 4));
  }
}

/* Runs of operations with one word, in which some ranks are ahead of others by as many as there is room for, or must not be; a longer one now and then. */
static void words(void)
{
  enum { ROUNDS = 6000, LONG = 500 };
  int64_t v[LONG], all[16];
  for (int k = 0; k < ROUNDS; k++) {
    static int root, what;
    if (k % 400 == 0) root = (int)rnd((unsigned)size), what = (int)rnd(6);
    int n = rnd(200) ? 1 : LONG;
    if (n > 1) {
      set(v, rank, k, n);
      MPI_Bcast(v, n, MPI_INT64_T, root, MPI_COMM_WORLD);
      CHECK(is(v, root, k, n));
    }
    int64_t mine = value(rank, k, 0), got = -1;
    for (int r = 0; r < size && r < 16; r++) all[r] = rank == root ? value(r, k, 0) : -1;
    switch (what) {
    case 0:
      MPI_Scan(&mine, &got, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
      CHECK(is_sum(&got, rank + 1, k, 1));
      break;
    case 1:
      MPI_Exscan(&mine, &got, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
      CHECK(rank == 0 || is_sum(&got, rank, k, 1));
      break;
    case 2:
      MPI_Reduce(&mine, &got, 1, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD);
      CHECK(rank != root || is_sum(&got, size, k, 1));
      break;
    case 3:
      MPI_Gather(&mine, 1, MPI_INT64_T, all, 1, MPI_INT64_T, root, MPI_COMM_WORLD);
      for (int r = 0; r < size && rank == root; r++) CHECK(is(all + r, r, k, 1));
      break;
    case 4:
      MPI_Scatter(all, 1, MPI_INT64_T, &got, 1, MPI_INT64_T, root, MPI_COMM_WORLD);
      CHECK(is(&got, rank, k, 1));
      break;
    default:
      if (rank == root) got = value(root, k, 0);
      MPI_Bcast(&got, 1, MPI_INT64_T, root, MPI_COMM_WORLD);
      CHECK(is(&got, root, k, 1));
    }
  }
}

/* Operations under way at once, on one communicator and on its twin, completed in another order than they were started. */
static void overlapping(void)
{
  enum { N = 24 };
  MPI_Comm twin, on[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
  MPI_Request r[N];
  int64_t *in[N], *out[N], rows[N][16 * 3], n[N];
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  on[1] = twin;
  for (int round = 0; round < 10; round++) {
    for (int k = 0; k < N; k++) {
      n[k] = some_count() % 20000 + 3;
      in[k] = malloc((size_t)n[k] * 8), out[k] = malloc((size_t)n[k] * 8);
      set(in[k], rank, k, n[k]);
      set(out[k], k, k, n[k]);
      MPI_Comm c = on[k / 2 % 2];
      if (k % 4 == 0)
        MPI_Ibarrier(c, &r[k]);
      else if (k % 4 == 1)
        MPI_Ibcast(out[k], (int)n[k], MPI_INT64_T, k % size, c, &r[k]);
      else if (k % 4 == 2)
        MPI_Iallreduce(in[k], out[k], (int)n[k], MPI_INT64_T, MPI_SUM, c, &r[k]);
      else /* the root of a gather has nothing to post, and may have to wait for its turn first */
        MPI_Igather(in[k], 3, MPI_INT64_T, rows[k], 3, MPI_INT64_T, k / 4 % 2 ? 0 : size - 1, c, &r[k]);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* has to pass those before it */
    for (int k = N - 1; k >= 0; k--) MPI_Wait(&r[(k * 7 + rank) % N], MPI_STATUS_IGNORE);
    for (int k = 0; k < N; k++) {
      CHECK(k % 4 != 1 || is(out[k], k, k, n[k]));
      CHECK(k % 4 != 2 || is_sum(out[k], size, k, n[k]));
      for (int i = 0; k % 4 == 3 && rank == (k / 4 % 2 ? 0 : size - 1) && i < size; i++)
        CHECK(is(rows[k] + 3 * i, i, k, 3));
      free(in[k]), free(out[k]);
    }
  }
  MPI_Comm_free(&twin);
}

/* More communicators than there are places for their memory; places that are used again hold nothing of before. */
static void many(void)
{
  enum { N = 300 };
  MPI_Comm c[N];
  for (int i = 0; i < N; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &c[i]);
    int64_t in = rank + i, sum = 0;
    MPI_Allreduce(&in, &sum, 1, MPI_INT64_T, MPI_SUM, c[i]);
    CHECK(sum == (int64_t)size * (size - 1) / 2 + (int64_t)size * i);
  }
  mixed(c[N - 1], 5);
  for (int i = 0; i < N; i++) MPI_Comm_free(&c[i]);
  for (int i = 0; i < N; i++) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    int64_t in = 1, sum = 0;
    int members;
    MPI_Comm_size(half, &members);
    if (i % 3) MPI_Allreduce(&in, &sum, 1, MPI_INT64_T, MPI_SUM, half);
    CHECK(!(i % 3) || sum == members);
    MPI_Comm_free(&half);
  }
}

/* That a call ended with MPI_ERR_TRUNCATE: here, where all processes are on one host; else, where few get rank 0's data from rank 0 itself, at one of them at least. */
static void truncated(int code, int here)
{
  int class = MPI_SUCCESS, told, near;
  MPI_Comm host;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  CHECK(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &near);
  MPI_Comm_free(&host);
  if (near == size) CHECK((class == MPI_ERR_TRUNCATE) == here);
  class = class == MPI_ERR_TRUNCATE;
  MPI_Allreduce(&class, &told, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(told > 0 || size == 1);
}

/* Calls that do not match are told, and nobody hangs. */
static void unequal(void)
{
  MPI_Comm c;
  int v[16] = {0}, w[16];
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  truncated(MPI_Allreduce(v, w, rank ? 2 : 1, MPI_INT, MPI_SUM, c), 1);
  MPI_Comm_free(&c);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  truncated(MPI_Bcast(v, rank ? 3 : 2, MPI_INT, 0, c), rank > 0);
  MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  mixed(MPI_COMM_WORLD, 150);
  ahead();
  words();
  overlapping();
  many();
  unequal();
  MPI_Finalize();
  return check_status();
}
