/* Every collective operation, blocking, nonblocking and persistent, in the small and the large form, in place and not, over
 * derived datatypes and an operation that does not commute, on several communicators: the results of each call are worked out
 * here from the operands, which all ranks can compute. MPI-5.0 6.3 to 6.13. */
// run: n=1,2,5,16 n.few=2,5,8 timeout=120
// run: n=3,8 timeout=120 full=1
// run: n=7 args="150" env=SPX_COLL_BCAST=scatter_allgather env=SPX_COLL_ALLREDUCE=rabenseifner env=SPX_COLL_REDUCE=rabenseifner env=SPX_COLL_ALLTOALL=bruck env=SPX_COLL_GATHER=binomial env=SPX_COLL_SCATTER=binomial env=SPX_COLL_ALLGATHER=bruck env=SPX_COLL_SCAN=recursive_doubling env=SPX_COLL_REDUCE_SCATTER=pairwise timeout=120
// run: n=6 args="150" env=SPX_COLL_BCAST=chain env=SPX_COLL_ALLREDUCE=recursive_doubling env=SPX_COLL_ALLTOALL=pairwise env=SPX_COLL_ALLGATHER=ring env=SPX_COLL_ALLGATHERV=ring env=SPX_COLL_SCAN=linear env=SPX_COLL_EXSCAN=linear env=SPX_COLL_BARRIER=dissemination timeout=120
// run: n=16 n.few=9 args="150" env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:4 timeout=120
// run: n=20 n.few=12 args="150" env=SPX_COLL_ALLTOALL=by_switch env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:4 timeout=120
#include "../check.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCKING, NONBLOCKING, PERSISTENT, LARGE, FORMS };
enum { GAP = -12345 };

static uint64_t seed;
static unsigned rnd(unsigned n)
{
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(seed >> 33) % n;
}

/* The operand of a rank: pairs of int (a, b) stand for the map x -> a x + b modulo 9973; to compose them does not commute. */
typedef struct {
  int a, b;
} map;
enum { MOD = 9973 };
static map operand(int rank, int round, int64_t i)
{
  uint64_t h = (uint64_t)rank * 1000003u + (uint64_t)round * 7919u + (uint64_t)i * 104729u;
  h ^= h >> 13;
  h *= 0x9e3779b97f4a7c15ull;
  return (map){(int)((h >> 20) % (MOD - 1)) + 1, (int)((h >> 40) % MOD)};
}
/* First f, then g. */
static map after(map f, map g)
{
  return (map){(int)((int64_t)f.a * g.a % MOD), (int)(((int64_t)g.a * f.b + g.b) % MOD)};
}

static void compose(void *in, void *inout, int *len, MPI_Datatype *t)
{
  MPI_Aint lb, extent;
  MPI_Type_get_extent(*t, &lb, &extent);
  for (int i = 0; i < *len; i++) {
    map *f = (map *)((char *)in + i * extent), *g = (map *)((char *)inout + i * extent);
    *g = after(*f, *g);
  }
}

static void compose_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *t)
{
  int n = (int)*len;
  compose(in, inout, &n, t);
}

/* ---- buffers: elements of a map, with a gap of one int when spaced ---------------------------------------------- */
static MPI_Datatype plain, spaced;

typedef struct {
  int *mem;
  int step;
  MPI_Datatype type;
  int64_t n;
} vec;

static vec new_vec(int64_t n, int gaps)
{
  vec v = {.step = gaps ? 3 : 2, .type = gaps ? spaced : plain, .n = n};
  v.mem = malloc((size_t)(n * v.step + 1) * sizeof *v.mem);
  for (int64_t i = 0; i < n * v.step + 1; i++) v.mem[i] = GAP;
  return v;
}
static void put(vec v, int64_t i, map m) { v.mem[i * v.step] = m.a, v.mem[i * v.step + 1] = m.b; }
static map get(vec v, int64_t i) { return (map){v.mem[i * v.step], v.mem[i * v.step + 1]}; }
static int same(map x, map y) { return x.a == y.a && x.b == y.b; }
static int untouched(vec v, int64_t i) { return v.mem[i * v.step] == GAP; }
static void gaps_kept(vec v)
{
  for (int64_t i = 0; i < v.n && v.step == 3; i++) CHECK(v.mem[i * 3 + 2] == GAP);
  CHECK(v.mem[v.n * v.step] == GAP);
}

/* ---- one call in any form: NAME(args, comm) ---------------------------------------------------------------------- */
static void collect(MPI_Request *r, int persistent)
{
  int done = 0;
  while (rnd(2) && !done) MPI_Test(r, &done, MPI_STATUS_IGNORE);
  if (!done) MPI_Wait(r, MPI_STATUS_IGNORE);
  if (persistent) MPI_Request_free(r);
  CHECK(*r == MPI_REQUEST_NULL);
}
#define FORM(form, name, iname, comm, ...)                                                                             \
  do {                                                                                                                 \
    MPI_Request r_;                                                                                                    \
    if ((form) == BLOCKING)                                                                                            \
      name(__VA_ARGS__, comm);                                                                                         \
    else if ((form) == LARGE)                                                                                          \
      name##_c(__VA_ARGS__, comm);                                                                                     \
    else if ((form) == NONBLOCKING) {                                                                                  \
      iname(__VA_ARGS__, comm, &r_);                                                                                   \
      collect(&r_, 0);                                                                                                 \
    } else {                                                                                                           \
      name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &r_);                                                              \
      MPI_Start(&r_);                                                                                                  \
      collect(&r_, 1);                                                                                                 \
    }                                                                                                                  \
  } while (0)

static MPI_Comm comm;
static int rank, size, round_no;
static MPI_Op op, op_c;

static map fold(int from, int to, int64_t i)
{
  map m = operand(from, round_no, i);
  for (int r = from + 1; r <= to; r++) m = after(m, operand(r, round_no, i));
  return m;
}

/* ---- moving data -------------------------------------------------------------------------------------------------- */
static void bcast(int form, int n, int root)
{
  vec v = new_vec(n, (int)rnd(2) ^ (rank & 1));
  for (int i = 0; i < n && rank == root; i++) put(v, i, operand(root, round_no, i));
  FORM(form, MPI_Bcast, MPI_Ibcast, comm, v.mem, n, v.type, root);
  for (int i = 0; i < n; i++) CHECK(same(get(v, i), operand(root, round_no, i)));
  gaps_kept(v);
  free(v.mem);
}

static void gather(int form, int n, int root, int in_place)
{
  vec in = new_vec(n, rank & 1), out = new_vec((int64_t)n * size, rank & 2);
  int here = in_place && rank == root;
  for (int i = 0; i < n; i++) put(here ? out : in, here ? rank * n + i : i, operand(rank, round_no, i));
  FORM(form, MPI_Gather, MPI_Igather, comm, here ? MPI_IN_PLACE : (void *)in.mem, n, in.type, out.mem, n, out.type,
       root);
  for (int i = 0; i < n * size; i++)
    CHECK(rank == root ? same(get(out, i), operand(i / n, round_no, i % n)) : untouched(out, i));
  gaps_kept(out);
  free(in.mem);
  free(out.mem);
}

static void scatter(int form, int n, int root, int in_place)
{
  vec in = new_vec((int64_t)n * size, rank & 1), out = new_vec(n, rank & 2);
  int here = in_place && rank == root;
  for (int i = 0; i < n * size && rank == root; i++) put(in, i, operand(root, round_no, i));
  FORM(form, MPI_Scatter, MPI_Iscatter, comm, in.mem, n, in.type, here ? MPI_IN_PLACE : (void *)out.mem, n, out.type,
       root);
  for (int i = 0; i < n; i++)
    CHECK(here ? untouched(out, i) : same(get(out, i), operand(root, round_no, rank * n + i)));
  gaps_kept(out);
  free(in.mem);
  free(out.mem);
}

static void allgather(int form, int n, int in_place)
{
  vec in = new_vec(n, rank & 1), out = new_vec((int64_t)n * size, rank & 2);
  for (int i = 0; i < n; i++) put(in_place ? out : in, in_place ? rank * n + i : i, operand(rank, round_no, i));
  FORM(form, MPI_Allgather, MPI_Iallgather, comm, in_place ? MPI_IN_PLACE : (void *)in.mem, n, in.type, out.mem, n,
       out.type);
  for (int i = 0; i < n * size; i++) CHECK(same(get(out, i), operand(i / n, round_no, i % n)));
  gaps_kept(out);
  free(in.mem);
  free(out.mem);
}

static void alltoall(int form, int n, int in_place)
{
  vec in = new_vec((int64_t)n * size, rank & 1), out = new_vec((int64_t)n * size, rank & 2);
  for (int i = 0; i < n * size; i++) put(in_place ? out : in, i, operand(rank, round_no, i));
  FORM(form, MPI_Alltoall, MPI_Ialltoall, comm, in_place ? MPI_IN_PLACE : (void *)in.mem, n, in.type, out.mem, n,
       out.type);
  for (int i = 0; i < n * size; i++) CHECK(same(get(out, i), operand(i / n, round_no, rank * n + i % n)));
  gaps_kept(out);
  free(in.mem);
  free(out.mem);
}

/* ---- v forms: rank i's block for rank j has (i + 2 j + round) % 4 elements ------------------------------------------ */
static int block(int i, int j) { return (i + 2 * j + round_no) % 4; }

typedef struct {
  int *n, *d;
  MPI_Count *nc;
  MPI_Aint *dc;
  MPI_Datatype *t;
  int total;
} blocks;
static blocks new_blocks(int sends, int scale, MPI_Datatype type)
{
  blocks b = {malloc((size_t)size * 4),
              malloc((size_t)size * 4),
              malloc((size_t)size * 8),
              malloc((size_t)size * 8),
              malloc((size_t)size * sizeof(MPI_Datatype)),
              0};
  for (int i = 0; i < size; i++) {
    b.n[i] = sends ? block(rank, i) : block(i, rank);
    b.nc[i] = b.n[i];
    b.dc[i] = b.d[i] = scale * b.total;
    b.t[i] = type;
    b.total += b.n[i] + 1; /* a hole after each */
  }
  return b;
}
static void free_blocks(blocks b) { free(b.n), free(b.d), free(b.nc), free(b.dc), free(b.t); }

static void finish(int form, MPI_Request *r)
{
  if (form == PERSISTENT) MPI_Start(r);
  if (form == PERSISTENT || form == NONBLOCKING) collect(r, form == PERSISTENT);
}

/* One all-to-all of blocks; w: with a datatype for each, displacements in bytes. */
static void alltoallv(int form, int w)
{
  int gaps_in = rank & 1, gaps_out = rank & 2;
  vec probe_in = new_vec(0, gaps_in), probe_out = new_vec(0, gaps_out);
  blocks s = new_blocks(1, w ? probe_in.step * 4 : 1, probe_in.type),
         d = new_blocks(0, w ? probe_out.step * 4 : 1, probe_out.type);
  vec in = new_vec(s.total, gaps_in), out = new_vec(d.total, gaps_out);
  MPI_Request r;
  for (int j = 0, at = 0; j < size; at += s.n[j] + 1, j++)
    for (int i = 0; i < s.n[j]; i++) put(in, at + i, operand(rank, round_no, 100 * j + i));
  if (w) {
    if (form == BLOCKING) MPI_Alltoallw(in.mem, s.n, s.d, s.t, out.mem, d.n, d.d, d.t, comm);
    if (form == LARGE) MPI_Alltoallw_c(in.mem, s.nc, s.dc, s.t, out.mem, d.nc, d.dc, d.t, comm);
    if (form == NONBLOCKING) MPI_Ialltoallw(in.mem, s.n, s.d, s.t, out.mem, d.n, d.d, d.t, comm, &r);
    if (form == PERSISTENT) MPI_Alltoallw_init(in.mem, s.n, s.d, s.t, out.mem, d.n, d.d, d.t, comm, MPI_INFO_NULL, &r);
  } else {
    if (form == BLOCKING) MPI_Alltoallv(in.mem, s.n, s.d, in.type, out.mem, d.n, d.d, out.type, comm);
    if (form == LARGE) MPI_Alltoallv_c(in.mem, s.nc, s.dc, in.type, out.mem, d.nc, d.dc, out.type, comm);
    if (form == NONBLOCKING) MPI_Ialltoallv(in.mem, s.n, s.d, in.type, out.mem, d.n, d.d, out.type, comm, &r);
    if (form == PERSISTENT)
      MPI_Alltoallv_init(in.mem, s.n, s.d, in.type, out.mem, d.n, d.d, out.type, comm, MPI_INFO_NULL, &r);
  }
  finish(form, &r);
  for (int j = 0, at = 0; j < size; at += d.n[j] + 1, j++) {
    for (int i = 0; i < d.n[j]; i++) CHECK(same(get(out, at + i), operand(j, round_no, 100 * rank + i)));
    CHECK(untouched(out, at + d.n[j]));
  }
  gaps_kept(out);
  free_blocks(s), free_blocks(d);
  free(in.mem), free(out.mem), free(probe_in.mem), free(probe_out.mem);
}

/* MPI_Gatherv (all = 0) and MPI_Allgatherv: rank i gives block(i, 0) elements. */
static void gatherv(int form, int root, int all)
{
  int *n = malloc((size_t)size * 4), *d = malloc((size_t)size * 4), total = 0, mine = block(rank, 0),
      gets = all || rank == root;
  MPI_Count *nc = malloc((size_t)size * 8);
  MPI_Aint *dc = malloc((size_t)size * 8);
  MPI_Request r;
  for (int i = 0; i < size; i++) nc[i] = n[i] = block(i, 0), dc[i] = d[i] = total, total += n[i] + 1;
  vec in = new_vec(mine, rank & 1), out = new_vec(total, rank & 2);
  for (int i = 0; i < mine; i++) put(in, i, operand(rank, round_no, i));
  if (all) {
    if (form == BLOCKING) MPI_Allgatherv(in.mem, mine, in.type, out.mem, n, d, out.type, comm);
    if (form == LARGE) MPI_Allgatherv_c(in.mem, mine, in.type, out.mem, nc, dc, out.type, comm);
    if (form == NONBLOCKING) MPI_Iallgatherv(in.mem, mine, in.type, out.mem, n, d, out.type, comm, &r);
    if (form == PERSISTENT)
      MPI_Allgatherv_init(in.mem, mine, in.type, out.mem, n, d, out.type, comm, MPI_INFO_NULL, &r);
  } else {
    if (form == BLOCKING) MPI_Gatherv(in.mem, mine, in.type, out.mem, n, d, out.type, root, comm);
    if (form == LARGE) MPI_Gatherv_c(in.mem, mine, in.type, out.mem, nc, dc, out.type, root, comm);
    if (form == NONBLOCKING) MPI_Igatherv(in.mem, mine, in.type, out.mem, n, d, out.type, root, comm, &r);
    if (form == PERSISTENT)
      MPI_Gatherv_init(in.mem, mine, in.type, out.mem, n, d, out.type, root, comm, MPI_INFO_NULL, &r);
  }
  finish(form, &r);
  for (int j = 0; j < size; j++) {
    for (int i = 0; i < n[j]; i++)
      CHECK(gets ? same(get(out, d[j] + i), operand(j, round_no, i)) : untouched(out, d[j] + i));
    CHECK(untouched(out, d[j] + n[j]));
  }
  gaps_kept(out);
  free(n), free(d), free(nc), free(dc), free(in.mem), free(out.mem);
}

static void scatterv(int form, int root)
{
  int *n = malloc((size_t)size * 4), *d = malloc((size_t)size * 4), total = 0, mine = block(rank, 0);
  MPI_Count *nc = malloc((size_t)size * 8);
  MPI_Aint *dc = malloc((size_t)size * 8);
  MPI_Request r;
  for (int i = 0; i < size; i++) nc[i] = n[i] = block(i, 0), dc[i] = d[i] = total, total += n[i] + 1;
  vec in = new_vec(total, rank & 1), out = new_vec(mine, rank & 2);
  for (int j = 0; j < size && rank == root; j++)
    for (int i = 0; i < n[j]; i++) put(in, d[j] + i, operand(j, round_no, i));
  if (form == BLOCKING) MPI_Scatterv(in.mem, n, d, in.type, out.mem, mine, out.type, root, comm);
  if (form == LARGE) MPI_Scatterv_c(in.mem, nc, dc, in.type, out.mem, mine, out.type, root, comm);
  if (form == NONBLOCKING) MPI_Iscatterv(in.mem, n, d, in.type, out.mem, mine, out.type, root, comm, &r);
  if (form == PERSISTENT)
    MPI_Scatterv_init(in.mem, n, d, in.type, out.mem, mine, out.type, root, comm, MPI_INFO_NULL, &r);
  finish(form, &r);
  for (int i = 0; i < mine; i++) CHECK(same(get(out, i), operand(rank, round_no, i)));
  gaps_kept(out);
  free(n), free(d), free(nc), free(dc), free(in.mem), free(out.mem);
}

/* ---- reductions ------------------------------------------------------------------------------------------------------ */
enum { REDUCE, ALLREDUCE, SCAN, EXSCAN, BLOCK, SCATTER };

static void reduction(int kind, int form, int n, int root, int in_place)
{
  int64_t length = kind == BLOCK ? (int64_t)n * size : n, mine = n, first = 0;
  int *counts = malloc((size_t)size * 4);
  MPI_Count *counts_c = malloc((size_t)size * 8);
  if (kind == SCATTER) length = 0;
  for (int i = 0; i < size; i++) {
    counts_c[i] = counts[i] = (n + i) % 5;
    if (kind == SCATTER && i == rank) first = length, mine = counts[i];
    if (kind == SCATTER) length += counts[i];
  }
  if (kind == BLOCK) first = (int64_t)rank * n;
  int here = in_place && (kind != REDUCE || rank == root), gaps = (int)(n & 1); /* the same type at all */
  vec in = new_vec(length, gaps), out = new_vec(length, gaps);
  MPI_Op o = form == LARGE ? op_c : op;
  MPI_Request r;
  for (int64_t i = 0; i < length; i++) put(here ? out : in, i, operand(rank, round_no, i));
  void *send = here ? MPI_IN_PLACE : (void *)in.mem;
  switch (kind) {
  case REDUCE: FORM(form, MPI_Reduce, MPI_Ireduce, comm, send, out.mem, n, in.type, o, root); break;
  case ALLREDUCE: FORM(form, MPI_Allreduce, MPI_Iallreduce, comm, send, out.mem, n, in.type, o); break;
  case SCAN: FORM(form, MPI_Scan, MPI_Iscan, comm, send, out.mem, n, in.type, o); break;
  case EXSCAN: FORM(form, MPI_Exscan, MPI_Iexscan, comm, send, out.mem, n, in.type, o); break;
  case BLOCK:
    FORM(form, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, comm, send, out.mem, n, in.type, o);
    break;
  case SCATTER:
    if (form == BLOCKING) MPI_Reduce_scatter(send, out.mem, counts, in.type, o, comm);
    if (form == LARGE) MPI_Reduce_scatter_c(send, out.mem, counts_c, in.type, o, comm);
    if (form == NONBLOCKING) MPI_Ireduce_scatter(send, out.mem, counts, in.type, o, comm, &r);
    if (form == PERSISTENT) MPI_Reduce_scatter_init(send, out.mem, counts, in.type, o, comm, MPI_INFO_NULL, &r);
    finish(form, &r);
  }
  int to = kind == SCAN ? rank : kind == EXSCAN ? rank - 1 : size - 1;
  for (int64_t i = 0; i < mine && to >= 0 && (kind != REDUCE || rank == root); i++)
    CHECK(same(get(out, i), fold(0, to, first + i)));
  gaps_kept(out);
  free(in.mem), free(out.mem), free(counts), free(counts_c);
}

static void barrier(int form)
{
  MPI_Request r;
  if (form == NONBLOCKING)
    MPI_Ibarrier(comm, &r);
  else if (form == PERSISTENT)
    MPI_Barrier_init(comm, MPI_INFO_NULL, &r);
  else
    MPI_Barrier(comm);
  finish(form, &r);
}

static void one(void)
{
  static const int lengths[] = {0, 1, 2, 3, 8, 33, 500, 3000, 20000};
  int what = (int)rnd(19), form = (int)rnd(FORMS), n = lengths[rnd(what < 12 ? 9 : 8)], root = (int)rnd((unsigned)size),
      in_place = rnd(3) == 0;
  if (size > 8 && n > 500) n = 500;
  switch (what) {
  case 0: barrier(form); break;
  case 1: bcast(form, n, root); break;
  case 2: gather(form, n, root, in_place); break;
  case 3: scatter(form, n, root, in_place); break;
  case 4: allgather(form, n, in_place); break;
  case 5: alltoall(form, n, in_place); break;
  case 6: alltoallv(form, 0); break;
  case 7: alltoallv(form, 1); break;
  case 8: gatherv(form, root, 0); break;
  case 9: gatherv(form, root, 1); break;
  case 10: scatterv(form, root); break;
  default: reduction((what - 11) % 6, form, n, root, in_place);
  }
}

int main(int argc, char **argv)
{
  MPI_Comm comms[3];
  int world_rank, world_size, rounds = argc > 1 ? atoi(argv[1]) : 300;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Type_contiguous(2, MPI_INT, &plain);
  MPI_Type_create_resized(plain, 0, 12, &spaced);
  MPI_Type_commit(&plain);
  MPI_Type_commit(&spaced);
  MPI_Op_create(compose, 0, &op);
  MPI_Op_create_c(compose_c, 0, &op_c);
  comms[0] = MPI_COMM_WORLD;
  MPI_Comm_split(MPI_COMM_WORLD, 0, world_size - world_rank, &comms[1]); /* in the other order */
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &comms[2]);
  for (int c = 0; c < 3; c++) {
    comm = comms[c];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    seed = 1000 + (uint64_t)c * 17 + (uint64_t)(c == 2 ? world_rank % 2 : 0);
    for (round_no = 0; round_no < rounds; round_no++) {
      uint64_t mark = seed;
      one();
      seed = mark;
      for (int i = 0; i < 8; i++) rnd(2); /* ranks draw different numbers of times */
    }
  }
  MPI_Op_free(&op);
  MPI_Op_free(&op_c);
  CHECK(op == MPI_OP_NULL);
  MPI_Type_free(&plain);
  MPI_Type_free(&spaced);
  MPI_Comm_free(&comms[1]);
  MPI_Comm_free(&comms[2]);
  MPI_Finalize();
  return check_status();
}
