/* Grids: coordinates, ranks, shifts and subgrids of random grids, compared with what a loop over all points says; duplicates
 * have the topology of the original, other communicators made of it have none. MPI-5.0 9.5. */
// run: n=1,2,6,12,16 n.few=1,6,12 timeout=60
#include "../check.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 4 };

static uint64_t seed = 42;
static int rnd(int n)
{
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((seed >> 33) % (unsigned)n);
}

static int world_size;

/* The last coordinate runs fastest. */
static void point(int rank, int n, const int *dims, int *out)
{
  for (int i = n - 1; i >= 0; i--) out[i] = rank % dims[i], rank /= dims[i];
}

/* The rank of a point by search; MPI_PROC_NULL when it lies outside. */
static int search(int n, const int *dims, const int *periods, const int *at, int points)
{
  int want[MOST], p[MOST];
  for (int i = 0; i < n; i++) want[i] = periods[i] ? ((at[i] % dims[i]) + dims[i]) % dims[i] : at[i];
  for (int r = 0; r < points; r++) {
    point(r, n, dims, p);
    if (memcmp(p, want, (size_t)n * sizeof *p) == 0) return r;
  }
  return MPI_PROC_NULL;
}

static void check_get(MPI_Comm cart, int n, const int *dims, const int *periods)
{
  int kind, ndims = -1, rank, d[MOST], p[MOST], c[MOST], mine[MOST];
  MPI_Topo_test(cart, &kind);
  CHECK(kind == MPI_CART);
  MPI_Comm_rank(cart, &rank);
  MPI_Cartdim_get(cart, &ndims);
  CHECK(ndims == n);
  MPI_Cart_get(cart, MOST, d, p, c);
  point(rank, n, dims, mine);
  for (int i = 0; i < n; i++) CHECK(d[i] == dims[i] && p[i] == periods[i] && c[i] == mine[i]);
}

static void check_points(MPI_Comm cart, int n, const int *dims, const int *periods, int points)
{
  int rank, me, got[MOST], want[MOST], from, to;
  MPI_Comm_rank(cart, &me);
  for (int r = 0; r < points; r++) {
    MPI_Cart_coords(cart, r, n, got);
    point(r, n, dims, want);
    CHECK(memcmp(got, want, (size_t)n * sizeof *got) == 0);
    for (int i = 0; i < n; i++)
      if (periods[i]) want[i] += (rnd(5) - 2) * dims[i];
    MPI_Cart_rank(cart, want, &rank);
    CHECK(rank == r);
  }
  for (int i = 0; i < n; i++) {
    int disp = rnd(15) - 7, before[MOST], after[MOST];
    MPI_Cart_shift(cart, i, disp, &from, &to);
    point(me, n, dims, before);
    point(me, n, dims, after);
    before[i] -= disp;
    after[i] += disp;
    CHECK(from == search(n, dims, periods, before, points));
    CHECK(to == search(n, dims, periods, after, points));
  }
}

/* Processes of a subgrid share the coordinates that were dropped, and are ordered as in the grid. */
static void check_sub(MPI_Comm cart, int n, const int *dims, const int *periods)
{
  int keep[MOST], kd[MOST], kp[MOST], kept = 0, me, rank, size, points = 1;
  for (int i = 0; i < n; i++)
    if ((keep[i] = rnd(2))) kd[kept] = dims[i], kp[kept] = periods[i], points *= dims[i], kept++;
  MPI_Comm sub;
  MPI_Cart_sub(cart, keep, &sub);
  MPI_Comm_size(sub, &size);
  MPI_Comm_rank(sub, &rank);
  MPI_Comm_rank(cart, &me);
  CHECK(size == points);
  check_get(sub, kept, kd, kp);
  int *all = malloc((size_t)size * sizeof *all), mine[MOST], other[MOST], sub_at[MOST];
  MPI_Allgather(&me, 1, MPI_INT, all, 1, MPI_INT, sub);
  point(me, n, dims, mine);
  for (int r = 0; r < size; r++) {
    point(all[r], n, dims, other);
    point(r, kept, kd, sub_at);
    for (int i = 0, k = 0; i < n; i++) CHECK(keep[i] ? other[i] == sub_at[k++] : other[i] == mine[i]);
  }
  free(all);
  MPI_Comm_free(&sub);
}

static void check_copies(MPI_Comm cart, int n, const int *dims, const int *periods)
{
  MPI_Comm dup, other;
  MPI_Request r;
  int kind;
  MPI_Comm_dup(cart, &dup);
  check_get(dup, n, dims, periods);
  MPI_Comm_free(&dup);
  MPI_Comm_idup(cart, &dup, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  check_get(dup, n, dims, periods);
  MPI_Comm_free(&dup);
  MPI_Comm_split(cart, 0, 0, &other);
  MPI_Topo_test(other, &kind);
  CHECK(kind == MPI_UNDEFINED);
  MPI_Comm_free(&other);
}

static void one_grid(void)
{
  int n = rnd(MOST + 1), dims[MOST], periods[MOST], points = 1, me, mapped;
  for (int i = 0; i < n; i++) {
    dims[i] = 1 + rnd(world_size / points);
    periods[i] = rnd(2);
    points *= dims[i];
  }
  MPI_Comm cart;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Cart_create(MPI_COMM_WORLD, n, dims, periods, rnd(2), &cart);
  MPI_Cart_map(MPI_COMM_WORLD, n, dims, periods, &mapped);
  CHECK((cart == MPI_COMM_NULL) == (me >= points));
  CHECK(mapped == (me < points ? me : MPI_UNDEFINED));
  if (cart == MPI_COMM_NULL) return;
  int size, tag = (int)(seed >> 40);
  MPI_Comm_size(cart, &size);
  CHECK(size == points);
  uint64_t common = seed; /* those that are left out do not draw */
  check_get(cart, n, dims, periods);
  check_points(cart, n, dims, periods, points);
  check_sub(cart, n, dims, periods);
  if (tag % 3 == 0) check_copies(cart, n, dims, periods);
  MPI_Comm_free(&cart);
  seed = common;
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  for (int i = 0; i < 40; i++) one_grid();
  /* A grid without dimensions is one process; what has no entries is left alone. */
  MPI_Comm zero, sub;
  int rank = -1, size, untouched = 77, dims[2] = {0, 0};
  MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 1, &zero);
  CHECK((zero != MPI_COMM_NULL) == (check_rank() == 0));
  if (zero != MPI_COMM_NULL) {
    MPI_Cart_get(zero, 0, &untouched, &untouched, &untouched);
    MPI_Cart_rank(zero, NULL, &rank);
    MPI_Cart_coords(zero, 0, 0, NULL);
    CHECK(untouched == 77 && rank == 0);
    MPI_Cart_sub(zero, NULL, &sub);
    check_get(sub, 0, NULL, NULL);
    MPI_Comm_free(&sub);
    MPI_Comm_free(&zero);
  }
  /* All dimensions dropped: each process is in a grid of its own (MPI-5.0 9.5.7). */
  MPI_Comm line;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &(int){1}, 0, &line);
  MPI_Cart_sub(line, &(int){0}, &sub);
  CHECK(sub != MPI_COMM_NULL);
  MPI_Comm_size(sub, &size);
  CHECK(size == 1);
  check_get(sub, 0, NULL, NULL);
  MPI_Comm_free(&sub);
  MPI_Comm_free(&line);
  MPI_Dims_create(world_size, 2, dims);
  CHECK(dims[0] * dims[1] == world_size && dims[0] >= dims[1]);
  MPI_Finalize();
  return check_status();
}
