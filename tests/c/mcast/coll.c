/* Collectives over sets: random sets, roots, sizes, types and operations, several at once by tag, against what they must give: order of operands
 * included, in place, with a root that is no member, with derived datatypes and none at all. Then wrong arguments and amounts that do not match. */
// run: n=1,2,5,8 timeout=40
// run: n=16 args="40" timeout=40
// run: n=5 env=SPX_TRANSPORTS=tcp timeout=40
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { MOST = 64, COUNT = 3000 };

typedef struct {
  unsigned state;
} dice;
static unsigned roll(dice *d, unsigned n) { return (d->state = d->state * 1103515245u + 12345u) / 65536u % n; }

static int me, size, in[MOST], at[MOST], n, mine; /* ranks of the set by position, and the reverse */

/* A random set that has this process in it or not: the same at all. */
static MPIX_Rankset random_set(dice *d)
{
  MPIX_Rankset s;
  unsigned density = 1 + roll(d, 3);
  n = 0;
  mine = -1;
  for (int r = 0; r < size; r++) {
    at[r] = -1;
    if (roll(d, density)) continue;
    if (r == me) mine = n;
    at[r] = n;
    in[n++] = r;
  }
  MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, n, in, &s));
  return s;
}

/* Multiplies 2 x 2 matrices: associative, and not commutative. */
static void multiply(void *a, void *b, int *len, MPI_Datatype *t)
{
  unsigned *x = a, *y = b;
  (void)t;
  for (int i = 0; i < *len; i++, x += 4, y += 4) {
    unsigned z[4] = {x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3], x[2] * y[0] + x[3] * y[2],
                     x[2] * y[1] + x[3] * y[3]};
    memcpy(y, z, sizeof z);
  }
}

static void matrix(unsigned *m, int rank, int i)
{
  unsigned v[4] = {1u, (unsigned)(rank + i), (unsigned)rank, (unsigned)(rank * i + 1)};
  memcpy(m, v, sizeof v);
}

static void product(unsigned *out, int i)
{
  int one = 1;
  matrix(out, in[n - 1], i);
  for (int k = n - 2; k >= 0; k--) {
    unsigned m[4];
    matrix(m, in[k], i);
    multiply(m, out, &one, NULL);
  }
}

static void reduce_matrices(MPIX_Rankset s, int root, int count, int tag, int all, int in_place, MPI_Datatype type,
                            MPI_Op op)
{
  unsigned *own = malloc((size_t)count * 16 + 16), *out = calloc((size_t)count + 1, 16), want[4];
  int gets = all ? mine >= 0 : me == root;
  for (int i = 0; i < count; i++) matrix(own + 4 * i, me, i);
  if (gets && in_place) memcpy(out, own, (size_t)count * 16);
  void *from = gets && (in_place || mine < 0) ? MPI_IN_PLACE : own;
  if (all && mine >= 0) MUST(MPIX_Mallreduce(from, out, count, type, op, s, tag, MPI_COMM_WORLD));
  if (!all && (mine >= 0 || me == root))
    MUST(MPIX_Mreduce(from, me == root ? out : NULL, count, type, op, root, s, tag, MPI_COMM_WORLD));
  for (int i = 0; i < count && gets && n > 0; i++) {
    product(want, i);
    CHECK(memcmp(want, out + 4 * i, sizeof want) == 0);
    if (check_failures) break;
  }
  free(own);
  free(out);
}

/* The same over elements that lie backwards in memory: the type's extent is negative. */
static void multiply_back(void *a, void *b, int *len, MPI_Datatype *t)
{
  int one = 1;
  for (int i = 0; i < *len; i++) multiply((unsigned *)a - 4 * i, (unsigned *)b - 4 * i, &one, t);
}

static void reduce_backwards(MPIX_Rankset s, int count, int tag)
{
  unsigned *own = malloc((size_t)count * 16 + 16), *out = calloc((size_t)count + 1, 16), want[4];
  unsigned *last = own + 4 * count, *first = out + 4 * count;
  MPI_Datatype four, back;
  MPI_Op op;
  MUST(MPI_Type_contiguous(4, MPI_UNSIGNED, &four));
  MUST(MPI_Type_create_resized(four, 0, -16, &back));
  MUST(MPI_Type_commit(&back));
  MUST(MPI_Op_create(multiply_back, 0, &op));
  for (int i = 0; i < count; i++) matrix(last - 4 * i, me, i);
  if (mine >= 0) MUST(MPIX_Mallreduce(last, first, count, back, op, s, tag, MPI_COMM_WORLD));
  for (int i = 0; i < count && mine >= 0 && !check_failures; i++) {
    product(want, i);
    CHECK(memcmp(want, first - 4 * i, sizeof want) == 0);
  }
  MUST(MPI_Op_free(&op));
  MUST(MPI_Type_free(&back));
  MUST(MPI_Type_free(&four));
  free(own);
  free(out);
}

static void sums(MPIX_Rankset s, int root, int count, int tag)
{
  double *own = malloc(((size_t)count + 1) * sizeof *own), *out = calloc((size_t)count + 1, sizeof *out);
  for (int i = 0; i < count; i++) own[i] = me + i;
  if (mine >= 0 || me == root)
    MUST(MPIX_Mreduce(mine < 0 ? MPI_IN_PLACE : own, out, count, MPI_DOUBLE, MPI_SUM, root, s, tag, MPI_COMM_WORLD));
  for (int i = 0; i < count && me == root && n > 0; i++) {
    double want = (double)n * i;
    for (int k = 0; k < n; k++) want += in[k];
    CHECK(out[i] == want);
    if (check_failures) break;
  }
  free(own);
  free(out);
}

static int value(int from, int to, int i) { return from * 10007 + to * 101 + i; }

static void gather_scatter(MPIX_Rankset s, int root, int count, int tag, int in_place)
{
  MPI_Datatype every; /* every other integer: at the ends that are not the root */
  int *own = calloc((size_t)count * 2 + 2, sizeof *own), *all = calloc((size_t)count * (size_t)n + 1, sizeof *all);
  int keeps = in_place && mine >= 0;
  MUST(MPI_Type_vector(count, 1, 2, MPI_INT, &every));
  MUST(MPI_Type_commit(&every));
  for (int i = 0; i < count; i++) own[2 * i] = value(me, root, i);
  if (me == root && keeps)
    for (int i = 0; i < count; i++) all[mine * count + i] = value(me, root, i);
  if (mine >= 0 || me == root)
    MUST(MPIX_Mgather(me == root && (keeps || mine < 0) ? MPI_IN_PLACE : (void *)own, 1, every, all, count, MPI_INT,
                      root, s, tag, MPI_COMM_WORLD));
  for (int k = 0; k < n && me == root; k++)
    for (int i = 0; i < count; i++) CHECK(all[k * count + i] == value(in[k], root, i));
  if (me == root)
    for (int k = 0; k < n; k++)
      for (int i = 0; i < count; i++) all[k * count + i] = value(root, in[k], i);
  memset(own, 0, (size_t)count * 2 * sizeof *own);
  if (mine >= 0 || me == root)
    MUST(MPIX_Mscatter(all, count, MPI_INT, me == root && (keeps || mine < 0) ? MPI_IN_PLACE : (void *)own, 1, every,
                       root, s, tag, MPI_COMM_WORLD));
  for (int i = 0; i < count && mine >= 0 && !(me == root && keeps); i++)
    CHECK(own[2 * i] == value(root, me, i) && own[2 * i + 1] == 0);
  MUST(MPI_Type_free(&every));
  free(own);
  free(all);
}

static void all_to_all(MPIX_Rankset s, int count, int tag, int in_place)
{
  if (mine < 0) return;
  int *out = malloc(((size_t)count * (size_t)n + 1) * sizeof *out),
      *got = calloc((size_t)count * (size_t)n + 1, sizeof *got);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < count; i++) (in_place ? got : out)[k * count + i] = value(me, in[k], i);
  MUST(MPIX_Malltoall(in_place ? MPI_IN_PLACE : (void *)out, count, MPI_INT, got, count, MPI_INT, s, tag,
                      MPI_COMM_WORLD));
  for (int k = 0; k < n; k++)
    for (int i = 0; i < count; i++) CHECK(got[k * count + i] == value(in[k], me, i));
  free(out);
  free(got);
}

/* Nobody leaves before all have come: each counts itself in before, and looks at the end. */
static void barrier(MPIX_Rankset s, int tag, int *arrived, MPI_Win w)
{
  int one = 1, got = 0;
  if (mine < 0) return;
  for (int k = 0; k < n; k++) MUST(MPI_Accumulate(&one, 1, MPI_INT, in[k], 0, 1, MPI_INT, MPI_SUM, w));
  MUST(MPI_Win_flush_all(w));
  MUST(MPIX_Mbarrier(s, tag, MPI_COMM_WORLD));
  MUST(MPI_Fetch_and_op(NULL, &got, MPI_INT, me, 0, MPI_NO_OP, w));
  MUST(MPI_Win_flush(me, w));
  *arrived += n;
  CHECK(got >= *arrived);
}

static void wrong(void)
{
  int other = size > 1 ? 1 - (me & 1) : 0, x[4] = {1, 2, 3, 4}, y[4];
  MPIX_Rankset all, none, foreign;
  MPI_Comm dup;
  int range[1][3] = {{0, size - 1, 1}};
  MUST(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &all));
  MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, 0, NULL, &none));
  MUST(MPIX_Rankset_range_incl(dup, 1, range, &foreign));
  CHECK_CLASS(MPIX_Mbarrier(foreign, 1, MPI_COMM_WORLD), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Mbarrier(none, 1, MPI_COMM_WORLD), MPI_ERR_ARG); /* not in the set */
  CHECK_CLASS(MPIX_Mallreduce(x, y, 1, MPI_CHARACTER, MPI_SUM, all, 1, MPI_COMM_WORLD), MPI_ERR_OP);
  CHECK_CLASS(MPIX_Mreduce(x, y, 1, MPI_INT, MPI_SUM, size, all, 1, MPI_COMM_WORLD), MPI_ERR_ROOT);
  MUST(MPIX_Mreduce(MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, me, none, 1, MPI_COMM_WORLD)); /* nothing to combine */
  if (size > 1) CHECK_CLASS(MPIX_Mreduce(x, y, 1, MPI_INT, MPI_SUM, other, none, 1, MPI_COMM_WORLD), MPI_ERR_ARG);
  if (size > 1) { /* amounts that do not match: the receiver is told, nobody waits for ever */
    int code =
            MPIX_Mgather(x, me == 0 ? 1 : 2, MPI_INT, malloc((size_t)size * 8), 1, MPI_INT, 0, all, 1, MPI_COMM_WORLD),
        class;
    MPI_Error_class(code, &class);
    CHECK(class == (me == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    code = MPIX_Mreduce(x, y, me == size - 1 ? 2 : 4, MPI_INT, MPI_SUM, 0, all, 2, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(me == 0 ? class != MPI_SUCCESS : me == size - 1 ? class == MPI_SUCCESS : 1);
  }
  MUST(MPIX_Rankset_free(&all));
  MUST(MPIX_Rankset_free(&none));
  MUST(MPIX_Rankset_free(&foreign));
  MUST(MPI_Comm_free(&dup));
}

int main(int argc, char **argv)
{
  int rounds = argc > 1 ? atoi(argv[1]) : 120, *counter, arrived = 0;
  dice d = {4711};
  MPI_Datatype four;
  MPI_Op op;
  MPI_Win w;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MUST(MPI_Type_contiguous(4, MPI_UNSIGNED, &four));
  MUST(MPI_Type_commit(&four));
  MUST(MPI_Op_create(multiply, 0, &op));
  MUST(MPI_Win_allocate(sizeof *counter, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &w));
  *counter = 0;
  MUST(MPI_Win_lock_all(0, w));
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < rounds && !check_failures; i++) {
    static const int counts[] = {0, 1, 1, 7, 100, COUNT};
    MPIX_Rankset s = random_set(&d);
    int root = (int)roll(&d, (unsigned)size), count = counts[roll(&d, 6)], tag = (int)roll(&d, 3),
        how = (int)roll(&d, 2);
    switch (roll(&d, 7)) {
    case 0: reduce_matrices(s, root, count, tag, 0, how, four, op); break;
    case 1: reduce_matrices(s, root, count, tag, 1, how, four, op); break;
    case 2: sums(s, root, count, tag); break;
    case 3: gather_scatter(s, root, count, tag, how); break;
    case 4: all_to_all(s, count, tag, how); break;
    case 5: reduce_backwards(s, count, tag); break;
    default: barrier(s, tag, &arrived, w);
    }
    MUST(MPIX_Rankset_free(&s));
  }
  MUST(MPI_Win_unlock_all(w));
  MUST(MPI_Win_free(&w));
  wrong();
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  MUST(MPI_Op_free(&op));
  MUST(MPI_Type_free(&four));
  MPI_Finalize();
  return check_status();
}
