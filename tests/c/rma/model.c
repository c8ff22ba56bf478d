// run: n=1,2,4 timeout=60
// run: n=3 env=SPX_CMA=0 timeout=60
// run: n=2,4 env=SPX_TRANSPORTS=tcp timeout=60
/* Operations at random on windows of all flavors: every process knows what each of them does, and does it to a copy of all memories, too.
 * Sizes from one element to many messages' worth, datatypes with gaps, without a pattern and going down, predefined pairs, pairs without a
 * name; all operations; then many processes at once where the order does not matter. MPI-5.0, 12.3. */
#include "../check.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { INTS = 70000, ROUNDS = 60 };
static int rank, size;
static uint64_t seed;
static int *model, *mine; /* model: INTS of each process */
static MPI_Win win;
static MPI_Aint *at; /* displacement of the memory of each */

static uint32_t any(uint32_t n)
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 33) % n;
}

/* A datatype of about n ints, which lie at offset[0] ... in the order of their data; *count of them. */
static MPI_Datatype layout(int n, int *offset, int *count)
{
  MPI_Datatype t;
  int where[64], len[64], kind = (int)any(4), blocks = 1 + (int)any(60), k = 0;
  if (kind == 0 || n < 200) {
    for (int i = 0; i < n; i++) offset[i] = i;
    *count = n;
    MPI_Type_contiguous(n, MPI_INT, &t);
    return t;
  }
  if (kind == 1) { /* a vector of short or long blocks */
    int each = 1 + (int)any(n > 5000 ? 40 : 3), stride = each + 1 + (int)any(3), rows = n / (each + stride);
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < each; j++) offset[k++] = i * stride + j;
    MPI_Type_vector(rows, each, stride, MPI_INT, &t);
  } else { /* blocks without a pattern, going up or down */
    for (int i = 0, next = 0; i < blocks; i++) {
      len[i] = 1 + (int)any((uint32_t)(n / blocks / 2 + 1));
      where[i] = next;
      next += len[i] + (int)any(3);
    }
    for (int i = 0; i < blocks / 2 && kind == 3; i++) {
      int j = blocks - 1 - i, w = where[i], l = len[i];
      where[i] = where[j], len[i] = len[j], where[j] = w, len[j] = l;
    }
    for (int i = 0; i < blocks; i++)
      for (int j = 0; j < len[i]; j++) offset[k++] = where[i] + j;
    MPI_Type_indexed(blocks, len, where, MPI_INT, &t);
  }
  *count = k;
  return t;
}

static int combine(MPI_Op op, int in, int there)
{
  if (op == MPI_SUM) return (int)((unsigned)in + (unsigned)there);
  if (op == MPI_MAX) return in > there ? in : there;
  if (op == MPI_BXOR) return in ^ there;
  return op == MPI_REPLACE ? in : there;
}

/* One operation by process who: all draw the same numbers, and who also does it. */
static void operation(int who)
{
  static int offset[INTS], data[INTS], got[INTS];
  const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_BXOR, MPI_REPLACE, MPI_NO_OP};
  static const int sizes[] = {1, 3, 40, 500, 9000, 20000};
  int target = (int)any((uint32_t)size), n = sizes[any(6)], what = (int)any(5), count, me = who == rank;
  MPI_Op op = ops[any(what == 3 ? 5 : 4)];
  MPI_Datatype t = layout(n, offset, &count);
  int disp = (int)any(INTS - 3 * 20000), salt = (int)any(1000000);
  int *there = model + (size_t)target * INTS + disp;
  MPI_Aint d = at[target] ? at[target] + 4 * (MPI_Aint)disp : disp;
  MPI_Type_commit(&t);
  for (int i = 0; i < count; i++) data[i] = salt * (i + 1);
  memset(got, 0x55, (size_t)count * sizeof *got);
  if (me) CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win) == MPI_SUCCESS);
  if (me && what == 0) CHECK(MPI_Put(data, count, MPI_INT, target, d, 1, t, win) == MPI_SUCCESS);
  if (me && what == 1) CHECK(MPI_Get(got, count, MPI_INT, target, d, 1, t, win) == MPI_SUCCESS);
  if (me && what == 2) CHECK(MPI_Accumulate(data, count, MPI_INT, target, d, 1, t, op, win) == MPI_SUCCESS);
  if (me && what == 3)
    CHECK(MPI_Get_accumulate(data, count, MPI_INT, got, count, MPI_INT, target, d, 1, t, op, win) == MPI_SUCCESS);
  int expect = any(2) ? there[0] : salt;
  if (me && what == 4) CHECK(MPI_Compare_and_swap(data, &expect, got, MPI_INT, target, d, win) == MPI_SUCCESS);
  if (me) CHECK(MPI_Win_unlock(target, win) == MPI_SUCCESS);
  if (me && (what == 1 || what == 3))
    for (int i = 0; i < count; i++) CHECK(got[i] == there[offset[i]]);
  if (me && what == 4) CHECK(got[0] == there[0]);
  if (what == 4 && there[0] == expect) there[0] = data[0];
  for (int i = 0; i < count && what != 1 && what != 4; i++)
    there[offset[i]] = combine(what == 0 ? MPI_REPLACE : op, data[i], there[offset[i]]);
  MPI_Type_free(&t);
}

static void in_turn(void)
{
  for (int k = 0; k < ROUNDS; k++) {
    operation((int)any((uint32_t)size));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  for (int i = 0; i < INTS; i++) CHECK(mine[i] == model[(size_t)rank * INTS + i]);
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Pairs, with a gap and without a name, at all targets by all processes. */
static void pairs(void)
{
  typedef struct {
    short value;
    int index;
  } small;
  typedef struct {
    long value;
    int8_t index;
  } unnamed;
  MPI_Datatype other;
  CHECK(MPI_Type_get_value_index(MPI_LONG, MPI_INT8_T, &other) == MPI_SUCCESS && other != MPI_DATATYPE_NULL);
  struct {
    small s[100];
    unnamed u[100];
  } *p = calloc(1, sizeof *p);
  MPI_Win w;
  MPI_Win_create(p, sizeof *p, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Win_fence(0, w);
  small s[100];
  unnamed u[100];
  memset(s, 0, sizeof s);
  memset(u, 0, sizeof u);
  for (int i = 0; i < 100; i++)
    s[i] = (small){(short)((rank * 37 + i) % 11), rank}, u[i] = (unnamed){rank * 37 % 11 + i, (int8_t)rank};
  for (int t = 0; t < size; t++) {
    CHECK(MPI_Accumulate(s, 100, MPI_SHORT_INT, t, 0, 100, MPI_SHORT_INT, MPI_MAXLOC, w) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(u, 100, other, t, offsetof(__typeof__(*p), u), 100, other, MPI_MAXLOC, w) == MPI_SUCCESS);
  }
  MPI_Win_fence(0, w);
  for (int i = 0; i < 100; i++) {
    small best = {0, 0};
    unnamed high = {0, 0};
    for (int r = 0; r < size; r++) {
      short v = (short)((r * 37 + i) % 11);
      if (v > best.value || (v == best.value && r < best.index)) best.value = v, best.index = r;
      long x = r * 37 % 11 + i;
      if (x > high.value || (x == high.value && r < high.index)) high.value = x, high.index = (int8_t)r;
    }
    CHECK(p->s[i].value == best.value && p->s[i].index == best.index);
    CHECK(p->u[i].value == high.value && p->u[i].index == high.index);
  }
  MPI_Win_free(&w);
  free(p);
}

/* All at once, with shared locks and exclusive ones, on every target. */
static void together(void)
{
  long *base, one = 1, was;
  MPI_Win w;
  MPI_Win_allocate(4 * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w);
  for (int i = 0; i < 4; i++) base[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < ROUNDS; k++) {
    int t = (k + rank) % size;
    MPI_Win_lock(k % 3 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, t, 0, w);
    CHECK(MPI_Fetch_and_op(&one, &was, MPI_LONG, t, 0, MPI_SUM, w) == MPI_SUCCESS && was >= 0);
    if (k % 3 == 0) {
      MPI_Get(&was, 1, MPI_LONG, t, 1, 1, MPI_LONG, w);
      MPI_Win_flush(t, w);
      was++;
      MPI_Put(&was, 1, MPI_LONG, t, 1, 1, MPI_LONG, w);
    }
    MPI_Win_unlock(t, w);
  }
  MPI_Win_lock_all(0, w);
  for (int t = 0; t < size; t++) MPI_Accumulate(&one, 1, MPI_LONG, t, 2, 1, MPI_LONG, MPI_SUM, w);
  MPI_Win_unlock_all(w);
  MPI_Barrier(MPI_COMM_WORLD);
  long sums[2] = {0, 0}, all[2];
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w);
  CHECK(base[2] == size);
  sums[0] = base[0], sums[1] = base[1];
  MPI_Win_unlock(rank, w);
  MPI_Allreduce(sums, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK(all[0] == (long)size * ROUNDS && all[1] == (long)size * (ROUNDS / 3));
  MPI_Win_free(&w);
}

static void window(int flavor)
{
  MPI_Aint bytes = INTS * (MPI_Aint)sizeof(int), zero = 0;
  if (flavor == MPI_WIN_FLAVOR_ALLOCATE)
    MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
  else
    mine = malloc((size_t)bytes);
  if (flavor == MPI_WIN_FLAVOR_CREATE) MPI_Win_create(mine, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  if (flavor == MPI_WIN_FLAVOR_DYNAMIC) {
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, mine, bytes);
    MPI_Get_address(mine, &zero);
  }
  MPI_Allgather(&zero, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD);
  memset(mine, 0, (size_t)bytes);
  memset(model, 0, (size_t)size * (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  in_turn();
  if (flavor == MPI_WIN_FLAVOR_DYNAMIC) MPI_Win_detach(win, mine);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  if (flavor == MPI_WIN_FLAVOR_DYNAMIC && size > 1) { /* what is not attached any more */
    int x = 1, t = (rank + 1) % size;
    MPI_Win_lock(MPI_LOCK_SHARED, t, 0, win);
    int err = MPI_Put(&x, 1, MPI_INT, t, 8, 1, MPI_INT, win), cls = 0;
    MPI_Error_class(err, &cls);
    CHECK(cls == MPI_ERR_RMA_RANGE);
    MPI_Win_unlock(t, win);
  }
  MPI_Win_free(&win);
  if (flavor != MPI_WIN_FLAVOR_ALLOCATE) free(mine);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  model = malloc((size_t)size * INTS * sizeof *model);
  at = malloc((size_t)size * sizeof *at);
  window(MPI_WIN_FLAVOR_ALLOCATE);
  window(MPI_WIN_FLAVOR_CREATE);
  window(MPI_WIN_FLAVOR_DYNAMIC);
  pairs();
  together();
  free(model);
  free(at);
  MPI_Finalize();
  return check_status();
}
