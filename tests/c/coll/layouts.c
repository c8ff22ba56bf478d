/* Random collectives with random datatypes against a model: columns, extents that are small, negative or large, gaps, lower bounds below and above the
 * data, overlapping elements to send; in place, on intercommunicators, nonblocking and persistent; predefined and user's operations that
 * commute or not. What is not in the type map of a receive buffer must stay as it was. Arguments: seed, cases. MPI-5.0 5.1, 6. */
// run: n=3,9 args="1 150" timeout=60
// run: n=1,2,4 args="2 500" timeout=120 full=1
// run: n=5 args="3 150" env=SPX_COLL_REDUCE=rabenseifner env=SPX_COLL_ALLREDUCE=rabenseifner env=SPX_COLL_SCAN=linear timeout=60
// run: n=6 args="4 150" env=SPX_COLL_REDUCE=fan env=SPX_COLL_ALLREDUCE=fan env=SPX_COLL_SCAN=fan env=SPX_COLL_EXSCAN=fan timeout=60
// run: n=7 args="5 500" env=SPX_TRANSPORTS=tcp timeout=120 full=1
// run: n=16 args="6 150" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:4 timeout=60
#include "../check.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, DATA = 4, AROUND = 64 };
static int world_rank, world_size;

/* ---- choices, which all processes make alike ------------------------------------------------------------------------ */

typedef struct {
  uint64_t state;
} dice;

static uint32_t roll(dice *d, uint32_t n)
{
  d->state += 0x9e3779b97f4a7c15ull;
  uint64_t z = d->state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return (uint32_t)((z ^ z >> 31) >> 16) % n;
}

static dice dice_of(uint64_t seed, uint64_t more)
{
  dice d = {seed * 0x2545f4914f6cdd1dull ^ more * 0xd6e8feb86659fd93ull};
  roll(&d, 2);
  return d;
}

/* ---- datatypes ------------------------------------------------------------------------------------------------------ */

typedef struct {
  int off[DATA], extent; /* the bytes of an element */
  MPI_Datatype type;
} layout;

static int least(const layout *l)
{
  int m = l->off[0];
  for (int i = 1; i < DATA; i++) m = l->off[i] < m ? l->off[i] : m;
  return m;
}

static int greatest(const layout *l)
{
  int m = l->off[0];
  for (int i = 1; i < DATA; i++) m = l->off[i] > m ? l->off[i] : m;
  return m;
}

/* Where the data of n elements are: [*lo, *hi), with the address itself. */
static void span(const layout *l, int n, int *lo, int *hi)
{
  int last = (n > 1 ? n - 1 : 0) * l->extent;
  *lo = least(l) + (last < 0 ? last : 0);
  *hi = greatest(l) + 1 + (last > 0 ? last : 0);
  if (*lo > 0) *lo = 0;
  if (*hi < 0) *hi = 0;
}

static int is_distinct(const layout *l, int n)
{
  int lo, hi, ok = 1;
  span(l, n, &lo, &hi);
  char *used = calloc((size_t)(hi - lo) + 1, 1);
  for (int i = 0; i < n && ok; i++)
    for (int k = 0; k < DATA; k++) ok &= !used[i * l->extent + l->off[k] - lo]++;
  free(used);
  return ok;
}

static void build(layout *l, dice *d)
{
  MPI_Aint at[DATA];
  int ones[DATA] = {1, 1, 1, 1};
  MPI_Datatype inner, bytes[DATA] = {MPI_BYTE, MPI_BYTE, MPI_BYTE, MPI_BYTE};
  for (int i = 0; i < DATA; i++) at[i] = l->off[i];
  switch (roll(d, 3)) {
  case 0: MPI_Type_create_hindexed_block(DATA, 1, at, MPI_BYTE, &inner); break;
  case 1: MPI_Type_create_hindexed(DATA, ones, at, MPI_BYTE, &inner); break;
  default: MPI_Type_create_struct(DATA, ones, at, bytes, &inner); break;
  }
  MPI_Type_create_resized(inner, (int)roll(d, 41) - 20, l->extent, &l->type);
  MPI_Type_commit(&l->type);
  MPI_Type_free(&inner);
}

/* distinct: no byte is in two of n elements. */
static layout make(dice *d, int n, int distinct)
{
  layout l;
  int low = (int)roll(d, 61) - 30;
  if (n < 1) n = 1;
  if (roll(d, 6) == 0) { /* no gaps */
    l = (layout){{0, 1, 2, 3}, 4, MPI_DATATYPE_NULL};
    MPI_Type_contiguous(DATA, MPI_BYTE, &l.type);
    MPI_Type_commit(&l.type);
    return l;
  }
  if (roll(d, 2) == 0) { /* a column */
    int wide = 1 + (int)roll(d, 2), stride = wide * (n + (int)roll(d, 5));
    for (int i = 0; i < DATA; i++) l.off[i] = low + i / wide * stride + i % wide;
    l.extent = roll(d, 2) ? wide : -wide;
  } else {
    for (int i = 0; i < DATA; i++) {
      int used = 1;
      while (used) {
        l.off[i] = low + (int)roll(d, 24);
        used = 0;
        for (int k = 0; k < i; k++) used |= l.off[k] == l.off[i];
      }
    }
    int wide = greatest(&l) + 1 - least(&l);
    for (int tries = 0;; tries++) {
      l.extent = tries < 4 ? (int)roll(d, 4 * (uint32_t)wide) - 2 * wide : wide;
      if (!distinct || is_distinct(&l, n)) break;
    }
  }
  build(&l, d);
  return l;
}

/* ---- buffers -------------------------------------------------------------------------------------------------------- */

typedef struct {
  unsigned char *memory, *base;
  size_t bytes;
} buffer;

static buffer room(dice *d, const layout *l, int n)
{
  int lo, hi;
  span(l, n, &lo, &hi);
  buffer b = {.bytes = (size_t)(hi - lo) + 2 * AROUND};
  b.memory = malloc(b.bytes);
  b.base = b.memory + AROUND - lo;
  uint32_t first = roll(d, 251);
  for (size_t i = 0; i < b.bytes; i++) b.memory[i] = (unsigned char)((first + i * 7) % 251);
  return b;
}

static buffer copy_of(buffer b)
{
  buffer c = b;
  c.memory = malloc(b.bytes);
  memcpy(c.memory, b.memory, b.bytes);
  c.base = c.memory + (b.base - b.memory);
  return c;
}

/* Elements from element `at` on. */
static void put(buffer b, const layout *l, int at, int n, const unsigned char *data)
{
  for (int i = 0; i < n; i++)
    for (int k = 0; k < DATA; k++) b.base[(at + i) * l->extent + l->off[k]] = data[i * DATA + k];
}

static void get(buffer b, const layout *l, int at, int n, unsigned char *data)
{
  for (int i = 0; i < n; i++)
    for (int k = 0; k < DATA; k++) data[i * DATA + k] = b.base[(at + i) * l->extent + l->off[k]];
}

/* ---- operations ----------------------------------------------------------------------------------------------------- */

static const layout *reduced; /* of the call under way */

static void combine(unsigned char *lo, unsigned char *hi, int commutes)
{
  unsigned char r[DATA];
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 2; k++)
      r[2 * i + k] = commutes ? (unsigned char)(lo[2 * i + k] + hi[2 * i + k])
                              : (unsigned char)((lo[2 * i] * hi[k] + lo[2 * i + 1] * hi[2 + k]) % 251);
  memcpy(hi, r, DATA);
}

static void apply(void *in, void *inout, int n, int commutes)
{
  buffer lo = {.base = in}, hi = {.base = inout};
  for (int i = 0; i < n; i++) {
    unsigned char x[DATA], y[DATA];
    get(lo, reduced, i, 1, x);
    get(hi, reduced, i, 1, y);
    combine(x, y, commutes);
    put(hi, reduced, i, 1, y);
  }
}

static void adds(void *in, void *inout, int *n, MPI_Datatype *t)
{
  CHECK(*t == reduced->type);
  apply(in, inout, *n, 1);
}

static void multiplies(void *in, void *inout, int *n, MPI_Datatype *t)
{
  CHECK(*t == reduced->type);
  apply(in, inout, *n, 0);
}

/* What process i gives: n elements of block j. */
static void operand(uint64_t seed, int i, int j, int n, unsigned char *data)
{
  dice d = dice_of(seed, (uint64_t)(1000 + i * 64 + j));
  for (int k = 0; k < n * DATA; k++) data[k] = (unsigned char)roll(&d, 251);
}

enum {
  BCAST,
  GATHER,
  SCATTER,
  ALLGATHER,
  ALLTOALL,
  GATHERV,
  SCATTERV,
  ALLGATHERV,
  ALLTOALLV,
  ALLTOALLW,
  REDUCE,
  ALLREDUCE,
  SCAN,
  EXSCAN,
  REDUCE_SCATTER,
  REDUCE_SCATTER_BLOCK,
  KINDS
};
static const char *const names[] = {
    "Bcast",     "Gather",    "Scatter", "Allgather", "Alltoall", "Gatherv", "Scatterv",       "Allgatherv",
    "Alltoallv", "Alltoallw", "Reduce",  "Allreduce", "Scan",     "Exscan",  "Reduce_scatter", "Reduce_scatter_block"};

typedef struct {
  uint64_t seed;
  int kind, form, rank, size, root, in_place, commutes, c;
  int counts[MOST][MOST];                  /* of the block from i to j */
  int scounts[MOST], rcounts[MOST];        /* of this process */
  int sdispls[MOST], rdispls[MOST], total; /* in elements */
  layout s, r;
  layout ws[MOST], wr[MOST]; /* Alltoallw */
  int wsd[MOST], wrd[MOST];
  MPI_Datatype wst[MOST], wrt[MOST];
  buffer send, recv, want;
  MPI_Op op;
  MPI_Comm comm;
} call;

#define THREE(f, i, n, ...)                                                                                            \
  (form == 0   ? f(__VA_ARGS__, x->comm)                                                                               \
   : form == 1 ? i(__VA_ARGS__, x->comm, r)                                                                            \
               : n(__VA_ARGS__, x->comm, MPI_INFO_NULL, r))

static int start(call *x, MPI_Request *r)
{
  int form = x->form, c = x->c;
  const void *from = x->in_place ? MPI_IN_PLACE : x->send.base;
  void *to = x->recv.base;
  MPI_Datatype s = x->s.type, t = x->r.type;
  switch (x->kind) {
  case BCAST: return THREE(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, to, c, t, x->root);
  case GATHER: return THREE(MPI_Gather, MPI_Igather, MPI_Gather_init, from, c, s, to, c, t, x->root);
  case SCATTER:
    return THREE(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, x->send.base, c, s, x->in_place ? MPI_IN_PLACE : to, c, t,
                 x->root);
  case ALLGATHER: return THREE(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, from, c, s, to, c, t);
  case ALLTOALL: return THREE(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, from, c, s, to, c, t);
  case GATHERV:
    return THREE(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, from, x->scounts[x->root], s, to, x->rcounts, x->rdispls,
                 t, x->root);
  case SCATTERV:
    return THREE(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, x->send.base, x->scounts, x->sdispls, s,
                 x->in_place ? MPI_IN_PLACE : to, x->rcounts[x->root], t, x->root);
  case ALLGATHERV:
    return THREE(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, from, x->scounts[0], s, to, x->rcounts,
                 x->rdispls, t);
  case ALLTOALLV:
    return THREE(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, from, x->scounts, x->sdispls, s, to, x->rcounts,
                 x->rdispls, t);
  case ALLTOALLW:
    return THREE(MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, from, x->scounts, x->wsd, x->wst, to, x->rcounts,
                 x->wrd, x->wrt);
  case REDUCE: return THREE(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, from, to, c, t, x->op, x->root);
  case ALLREDUCE: return THREE(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, from, to, c, t, x->op);
  case SCAN: return THREE(MPI_Scan, MPI_Iscan, MPI_Scan_init, from, to, c, t, x->op);
  case EXSCAN: return THREE(MPI_Exscan, MPI_Iexscan, MPI_Exscan_init, from, to, c, t, x->op);
  case REDUCE_SCATTER:
    return THREE(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, from, to, x->rcounts, t, x->op);
  default:
    return THREE(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, from, to, c, t,
                 x->op);
  }
}

static int is_vector(int k) { return k >= GATHERV && k <= ALLTOALLW; }
static int is_reduction(int k) { return k >= REDUCE; }
static int is_rooted(int k)
{
  return k == BCAST || k == GATHER || k == SCATTER || k == GATHERV || k == SCATTERV || k == REDUCE;
}

static int some(dice *d)
{
  uint32_t w = roll(d, 8);
  return w == 0 ? 0 : w == 1 ? 20 + (int)roll(d, 60) : 1 + (int)roll(d, 6);
}

/* Lays blocks out, with room between them, in any order; returns the elements that they take. */
static int spread(dice *d, int n, const int *counts, int *displs)
{
  int at = 0, first = (int)roll(d, (uint32_t)n), up = roll(d, 2) == 0;
  for (int k = 0; k < n; k++) {
    int i = (first + (up ? k : n - k)) % n;
    at += (int)roll(d, 3);
    displs[i] = at;
    at += counts[i];
  }
  return at + 1;
}

/* Counts and displacements, and room in elements on both sides. */
static void shape(call *x, dice *all, dice *own, int *sroom, int *rroom)
{
  int n = x->size, k = x->kind;
  x->c = some(all);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      int c = some(all);
      if (!is_vector(k) && k != REDUCE_SCATTER) c = x->c;
      if ((k == GATHERV || k == ALLGATHERV) && j > 0) c = x->counts[i][0];
      if ((k == ALLTOALLV || k == ALLTOALLW) && x->in_place && j < i) c = x->counts[j][i];
      if (k == REDUCE_SCATTER && i > 0) c = x->counts[0][j];
      x->counts[i][j] = c;
    }
  x->total = 0;
  for (int j = 0; j < n; j++) {
    x->scounts[j] = x->counts[x->rank][j];
    x->rcounts[j] = k == REDUCE_SCATTER ? x->counts[0][j] : x->counts[j][x->rank];
    x->total += x->counts[0][j];
  }
  *sroom = spread(own, n, x->scounts, x->sdispls);
  *rroom = spread(own, n, x->rcounts, x->rdispls);
  if (!is_vector(k)) *sroom = *rroom = is_reduction(k) && k < REDUCE_SCATTER ? x->c : x->total + 1;
  if (is_vector(k)) /* the own side of GATHERV and SCATTERV is one block */
    *rroom += x->rcounts[x->root], *sroom += x->scounts[x->root];
}

static void type_blocks(call *x, dice *own)
{
  layout whole[2] = {{{0, 1, 2, 3}, 4, MPI_DATATYPE_NULL}, {{0, 1, 2, 3}, 4, MPI_DATATYPE_NULL}};
  int ends[2] = {0, 0};
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < x->size; i++) {
      int lo, hi, count = side ? x->rcounts[i] : x->scounts[i];
      layout *l = side ? &x->wr[i] : &x->ws[i];
      *l = make(own, count, side);
      span(l, count, &lo, &hi);
      (side ? x->wrd : x->wsd)[i] = ends[side] - lo;
      (side ? x->wrt : x->wst)[i] = l->type;
      ends[side] += hi - lo + (int)roll(own, 4);
    }
  x->send = room(own, &whole[0], ends[0] / 4 + 1);
  x->recv = room(own, &whole[1], ends[1] / 4 + 1);
}

static buffer moved(buffer b, int by)
{
  b.base += by;
  return b;
}

/* Puts block j of this process where it is sent from. */
static void give(call *x, int j, const unsigned char *data)
{
  int k = x->kind, own = x->in_place && k != SCATTER && k != SCATTERV, n = x->scounts[j];
  if (k == ALLTOALLW) {
    if (own)
      put(moved(x->recv, x->wrd[j]), &x->wr[j], 0, n, data);
    else
      put(moved(x->send, x->wsd[j]), &x->ws[j], 0, n, data);
    return;
  }
  buffer b = own ? x->recv : x->send;
  const layout *l = own ? &x->r : &x->s;
  int at = j * x->c;
  if (is_vector(k)) at = own ? x->rdispls[k == ALLTOALLV ? j : x->rank] : x->sdispls[j];
  if (k == GATHER || k == ALLGATHER) at = own ? x->rank * x->c : 0;
  if ((k == GATHERV || k == ALLGATHERV) && !own) at = 0;
  put(b, l, at, n, data);
}

/* The same after all were put: elements may overlap. */
static void given(call *x, int j, unsigned char *data)
{
  int k = x->kind;
  if (x->in_place && k != SCATTER && k != SCATTERV) return;
  if (k == ALLTOALLW) {
    get(moved(x->send, x->wsd[j]), &x->ws[j], 0, x->scounts[j], data);
    return;
  }
  int at = is_vector(k) ? x->sdispls[j] : j * x->c;
  if (k == GATHER || k == ALLGATHER || k == GATHERV || k == ALLGATHERV) at = 0;
  get(x->send, &x->s, at, x->scounts[j], data);
}

static void take(call *x, int i, const unsigned char *data)
{
  int k = x->kind, n = x->counts[i][x->rank];
  if (k == ALLTOALLW) {
    put(moved(x->want, x->wrd[i]), &x->wr[i], 0, n, data);
    return;
  }
  int at = is_vector(k) ? x->rdispls[i] : i * x->c;
  if (k == SCATTER || k == SCATTERV || k == BCAST) at = 0;
  put(x->want, &x->r, at, n, data);
}

/* Data that move. Senders' elements may overlap, so each tells the others what is there: by MPI_Allgather of bytes, which the model rests on. */
static void model_moves(call *x)
{
  enum { BLOCK = 80 * DATA };
  static unsigned char mine[MOST * BLOCK], all[MOST][MOST * BLOCK];
  int k = x->kind, n = x->size;
  memset(mine, 0, sizeof mine);
  int gives = !(k == SCATTER || k == SCATTERV || k == BCAST) || x->rank == x->root;
  int one = k == GATHER || k == ALLGATHER || k == GATHERV || k == ALLGATHERV || k == BCAST;
  for (int j = 0; j < (one ? 1 : n); j++) operand(x->seed, x->rank, j, x->scounts[j], mine + j * BLOCK);
  if (k == BCAST) {
    if (gives) put(x->recv, &x->r, 0, x->c, mine), get(x->recv, &x->r, 0, x->c, mine);
  } else if (gives) {
    for (int j = 0; j < (one ? 1 : n); j++) give(x, j, mine + j * BLOCK);
    for (int j = 0; j < (one ? 1 : n); j++) given(x, j, mine + j * BLOCK);
  }
  x->want = copy_of(x->recv);
  MPI_Allgather(mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  for (int i = 0; i < n; i++) {
    if ((k == SCATTER || k == SCATTERV || k == BCAST) && i != x->root) continue;
    if ((k == GATHER || k == GATHERV) && x->rank != x->root) continue;
    if ((k == SCATTER || k == SCATTERV) && x->rank == x->root && x->in_place) continue;
    if (k == BCAST && x->rank == x->root) continue;
    take(x, i, all[i] + (one ? 0 : x->rank * BLOCK));
  }
}

static void model_reduces(call *x)
{
  static unsigned char data[MOST * 80 * DATA], sum[MOST * 80 * DATA];
  int k = x->kind, n = k >= REDUCE_SCATTER ? x->total : x->c, from = 0, to = x->size, at = 0, got = n;
  operand(x->seed, x->rank, 0, n, data);
  put(x->in_place ? x->recv : x->send, &x->r, 0, n, data);
  x->want = copy_of(x->recv);
  if (k == SCAN) to = x->rank + 1;
  if (k == EXSCAN) to = x->rank;
  for (int i = from; i < to; i++) {
    operand(x->seed, i, 0, n, data);
    for (int e = 0; e < n && i > from; e++) combine(sum + e * DATA, data + e * DATA, x->commutes);
    memcpy(sum, data, (size_t)n * DATA);
  }
  if (k >= REDUCE_SCATTER) {
    for (int i = 0; i < x->rank; i++) at += x->counts[0][i];
    got = x->counts[0][x->rank];
  }
  if ((k == REDUCE && x->rank != x->root) || to == from) return;
  put(x->want, &x->r, 0, got, sum + at * DATA);
}

static void run(uint64_t seed, MPI_Comm comm, MPI_Op const *ops)
{
  call x = {.seed = seed, .comm = comm, .rank = world_rank, .size = world_size};
  dice all = dice_of(seed, 0), own = dice_of(seed, (uint64_t)world_rank + 1);
  int sroom, rroom;
  x.kind = (int)roll(&all, KINDS);
  x.form = (int)roll(&all, 3);
  x.root = (int)roll(&all, (uint32_t)x.size);
  x.commutes = (int)roll(&all, 2);
  x.op = ops[x.commutes];
  x.in_place = roll(&all, 3) == 0 && x.kind != BCAST;
  if (is_rooted(x.kind) && x.rank != x.root) x.in_place = 0;
  shape(&x, &all, &own, &sroom, &rroom);
  if (is_reduction(x.kind)) {
    dice common = all;
    int n = sroom > rroom ? sroom : rroom;
    x.r = make(&common, n, 1);
    x.s = x.r;
    reduced = &x.r;
  } else if (x.kind != ALLTOALLW) {
    x.s = make(&own, sroom, 0);
    x.r = make(&own, rroom, x.kind != BCAST || x.rank != x.root);
  }
  if (x.kind == ALLTOALLW)
    type_blocks(&x, &own);
  else
    x.send = room(&own, &x.s, sroom), x.recv = room(&own, &x.r, rroom);
  if (is_reduction(x.kind))
    model_reduces(&x);
  else
    model_moves(&x);
  buffer sent = copy_of(x.send);

  MPI_Request r = MPI_REQUEST_NULL;
  CHECK_CLASS(start(&x, &r), MPI_SUCCESS);
  if (x.form == 2) CHECK_CLASS(MPI_Start(&r), MPI_SUCCESS);
  if (x.form > 0) CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
  if (x.form == 2) MPI_Request_free(&r);
  if (memcmp(x.recv.memory, x.want.memory, x.recv.bytes) != 0 || memcmp(sent.memory, x.send.memory, sent.bytes) != 0) {
    fprintf(stderr, "rank %d: seed %llu: MPI_%s, form %d, root %d, in place %d, count %d: wrong\n", x.rank,
            (unsigned long long)seed, names[x.kind], x.form, x.root, x.in_place, x.c);
    check_failures++;
  }
  free(sent.memory);
  free(x.send.memory);
  free(x.recv.memory);
  free(x.want.memory);
  if (x.kind == ALLTOALLW) {
    for (int i = 0; i < x.size; i++) MPI_Type_free(&x.wst[i]), MPI_Type_free(&x.wrt[i]);
    return;
  }
  MPI_Type_free(&x.r.type);
  if (!is_reduction(x.kind)) MPI_Type_free(&x.s.type);
}

int main(int argc, char **argv)
{
  MPI_Op ops[2];
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  long cases = argc > 2 ? atol(argv[2]) : 1000;
  MPI_Op_create(multiplies, 0, &ops[0]);
  MPI_Op_create(adds, 1, &ops[1]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (long i = 0; i < cases && check_failures < 10; i++) run(seed * 1000000 + (uint64_t)i, comm, ops);
  MPI_Comm_free(&comm);
  MPI_Op_free(&ops[0]);
  MPI_Op_free(&ops[1]);
  MPI_Finalize();
  return check_status();
}
