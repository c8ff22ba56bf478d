/* The collectives with arrays of counts, displacements and datatypes, in their blocking, nonblocking and persistent forms, with int
 * and large counts:
 *   gone     what a nonblocking or persistent call was given is overwritten and unmapped as soon as the call has returned, and datatypes
 *            are freed, before any process can complete the operation. MPI-5.0 6.12 and 6.13 want arrays to stay; programs free them.
 *   bottom   buffers are MPI_BOTTOM: the data are where displacements and datatypes say. MPI-5.0 5.1.12, 6.8, 9.6.
 *   one      both buffers are one address, and displacements or datatypes keep apart what is sent and what is received. */
// run: n=5 args=gone timeout=60
// run: n=1,2 args=gone timeout=60 full=1
// run: n=5 args=gone env=SPX_COLL_ALLTOALLV=shared env=SPX_COLL_ALLGATHERV=shared timeout=60
// run: n=5 args=bottom timeout=60
// run: n=1,2 args=bottom timeout=60 full=1
// run: n=4 args=one timeout=60
#include "../check.h"
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 16, ROOM = 1 << 16, BLOCKING = 0, NONBLOCKING, PERSISTENT, FORMS };
static int rank, size, root, gone, bottom;
static MPI_Comm graph; /* everybody is everybody's neighbour */
static int out[MOST], in[MOST];
static char *page;
static size_t used;
static MPI_Datatype made[2 * MOST];
static int nmade;

/* ---- what calls are given -------------------------------------------------------------------------------------- */

static void *array(size_t bytes)
{
  if (!page) {
    page = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    used = 0;
  }
  void *p = page + used;
  used += (bytes + 15) & ~(size_t)15;
  return p;
}

/* The call has returned. */
static void forget(void)
{
  if (!gone) return;
  memset(page, 0xff, ROOM);
  mprotect(page, ROOM, PROT_NONE);
  page = NULL;
  for (; nmade > 0; nmade--) CHECK_CLASS(MPI_Type_free(&made[nmade - 1]), MPI_SUCCESS);
}

static void release(void)
{
  if (page) munmap(page, ROOM);
  page = NULL;
  for (; nmade > 0; nmade--) MPI_Type_free(&made[nmade - 1]);
}

static int *ints(int step)
{
  int *p = array(sizeof *p * (size_t)size);
  for (int i = 0; i < size; i++) p[i] = step ? i * step : 1;
  return p;
}

static MPI_Count *ones(void)
{
  MPI_Count *p = array(sizeof *p * (size_t)size);
  for (int i = 0; i < size; i++) p[i] = 1;
  return p;
}

/* Displacements of the elements of v, in units. */
static MPI_Aint *places(const int *v, int unit)
{
  MPI_Aint *p = array(sizeof *p * (size_t)size);
  for (int i = 0; i < size; i++) p[i] = ((bottom ? (MPI_Aint)(intptr_t)v : 0) + i * (MPI_Aint)sizeof *v) / unit;
  return p;
}

/* An int of v as a datatype of its own: from v, or from MPI_BOTTOM. */
static MPI_Datatype element(const int *v)
{
  MPI_Aint at = bottom ? (MPI_Aint)(intptr_t)v : 0;
  MPI_Datatype *t = &made[nmade++];
  MPI_Type_create_hindexed_block(1, 1, &at, MPI_INT, t);
  MPI_Type_commit(t);
  return *t;
}

static MPI_Datatype *types(const int *v)
{
  MPI_Datatype *p = array(sizeof *p * (size_t)size), t = v ? element(v) : MPI_INT;
  for (int i = 0; i < size; i++) p[i] = t;
  return p;
}

static void *at(int *v) { return bottom ? MPI_BOTTOM : v; }

/* ---- the operations -------------------------------------------------------------------------------------------- */

#define THREE(f, i, n, ...)                                                                                            \
  return form == BLOCKING ? f(__VA_ARGS__) : form == NONBLOCKING ? i(__VA_ARGS__, r) : n(__VA_ARGS__, MPI_INFO_NULL, r)

#define CASE(name) static int name(int form, MPI_Request *r)
#define W          MPI_COMM_WORLD

CASE(gatherv)
{
  THREE(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, out, 1, MPI_INT, in, ints(0), ints(1), MPI_INT, root, W);
}
CASE(gatherv_c)
{
  MPI_Datatype t = element(out);
  THREE(MPI_Gatherv_c, MPI_Igatherv_c, MPI_Gatherv_init_c, at(out), 1, t, at(in), ones(), places(in, 4), MPI_INT, root,
        W);
}
CASE(scatterv)
{
  THREE(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, out, ints(0), ints(1), MPI_INT, in, 1, MPI_INT, root, W);
}
CASE(scatterv_c)
{
  MPI_Datatype t = element(in);
  THREE(MPI_Scatterv_c, MPI_Iscatterv_c, MPI_Scatterv_init_c, at(out), ones(), places(out, 4), MPI_INT, at(in), 1, t,
        root, W);
}
CASE(allgatherv)
{
  THREE(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, out, 1, MPI_INT, in, ints(0), ints(1), MPI_INT, W);
}
CASE(allgatherv_c)
{
  MPI_Datatype t = element(out);
  THREE(MPI_Allgatherv_c, MPI_Iallgatherv_c, MPI_Allgatherv_init_c, at(out), 1, t, at(in), ones(), places(in, 4),
        MPI_INT, W);
}
CASE(alltoallv)
{
  THREE(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, out, ints(0), ints(1), MPI_INT, in, ints(0), ints(1),
        MPI_INT, W);
}
CASE(alltoallv_c)
{
  THREE(MPI_Alltoallv_c, MPI_Ialltoallv_c, MPI_Alltoallv_init_c, at(out), ones(), places(out, 4), MPI_INT, at(in),
        ones(), places(in, 4), MPI_INT, W);
}
CASE(alltoallw)
{
  THREE(MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, at(out), ints(0), ints(4), types(out), at(in), ints(0),
        ints(4), types(in), W);
}
CASE(alltoallw_c)
{
  THREE(MPI_Alltoallw_c, MPI_Ialltoallw_c, MPI_Alltoallw_init_c, at(out), ones(), places(out, 1), types(NULL), at(in),
        ones(), places(in, 1), types(NULL), W);
}
CASE(reduce_scatter)
{
  THREE(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, out, in, ints(0), MPI_INT, MPI_SUM, W);
}
CASE(reduce_scatter_c)
{
  THREE(MPI_Reduce_scatter_c, MPI_Ireduce_scatter_c, MPI_Reduce_scatter_init_c, out, in, ones(), MPI_INT, MPI_SUM, W);
}
CASE(n_allgatherv)
{
  THREE(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, MPI_Neighbor_allgatherv_init, out, 1, MPI_INT, in, ints(0),
        ints(1), MPI_INT, graph);
}
CASE(n_allgatherv_c)
{
  MPI_Datatype t = element(out);
  THREE(MPI_Neighbor_allgatherv_c, MPI_Ineighbor_allgatherv_c, MPI_Neighbor_allgatherv_init_c, at(out), 1, t, at(in),
        ones(), places(in, 4), MPI_INT, graph);
}
CASE(n_alltoallv)
{
  THREE(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, MPI_Neighbor_alltoallv_init, out, ints(0), ints(1), MPI_INT,
        in, ints(0), ints(1), MPI_INT, graph);
}
CASE(n_alltoallv_c)
{
  THREE(MPI_Neighbor_alltoallv_c, MPI_Ineighbor_alltoallv_c, MPI_Neighbor_alltoallv_init_c, at(out), ones(),
        places(out, 4), MPI_INT, at(in), ones(), places(in, 4), MPI_INT, graph);
}
CASE(n_alltoallw)
{
  THREE(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, MPI_Neighbor_alltoallw_init, at(out), ints(0), places(out, 1),
        types(NULL), at(in), ints(0), places(in, 1), types(NULL), graph);
}
CASE(n_alltoallw_c)
{
  THREE(MPI_Neighbor_alltoallw_c, MPI_Ineighbor_alltoallw_c, MPI_Neighbor_alltoallw_init_c, at(out), ones(),
        places(out, 1), types(NULL), at(in), ones(), places(in, 1), types(NULL), graph);
}

typedef enum { GATHERS, AT_ROOT, FROM_ROOT, EXCHANGES, SUMS } effect;
static const struct {
  const char *name;
  int (*call)(int form, MPI_Request *r);
  effect effect;
} cases[] = {
    {"Gatherv", gatherv, AT_ROOT},
    {"Gatherv_c", gatherv_c, AT_ROOT},
    {"Scatterv", scatterv, FROM_ROOT},
    {"Scatterv_c", scatterv_c, FROM_ROOT},
    {"Allgatherv", allgatherv, GATHERS},
    {"Allgatherv_c", allgatherv_c, GATHERS},
    {"Alltoallv", alltoallv, EXCHANGES},
    {"Alltoallv_c", alltoallv_c, EXCHANGES},
    {"Alltoallw", alltoallw, EXCHANGES},
    {"Alltoallw_c", alltoallw_c, EXCHANGES},
    {"Reduce_scatter", reduce_scatter, SUMS},
    {"Reduce_scatter_c", reduce_scatter_c, SUMS},
    {"Neighbor_allgatherv", n_allgatherv, GATHERS},
    {"Neighbor_allgatherv_c", n_allgatherv_c, GATHERS},
    {"Neighbor_alltoallv", n_alltoallv, EXCHANGES},
    {"Neighbor_alltoallv_c", n_alltoallv_c, EXCHANGES},
    {"Neighbor_alltoallw", n_alltoallw, EXCHANGES},
    {"Neighbor_alltoallw_c", n_alltoallw_c, EXCHANGES},
};

static void fill(void)
{
  for (int i = 0; i < MOST; i++) out[i] = 100 * rank + i, in[i] = -1;
}

static void judge(const char *name, int form, effect e)
{
  int got = e == AT_ROOT && rank != root ? 0 : e == FROM_ROOT || e == SUMS ? 1 : size;
  for (int i = 0; i < MOST; i++) {
    int want = e == EXCHANGES ? 100 * i + rank : e == FROM_ROOT ? 100 * root + rank : 100 * i;
    if (e == SUMS) want = 100 * size * (size - 1) / 2 + size * rank;
    if (i >= got) want = -1;
    if (in[i] != want) fprintf(stderr, "%s, form %d: in[%d] = %d, not %d\n", name, form, i, in[i], want);
    CHECK(in[i] == want);
  }
}

/* Rank 0 calls when all others have called and given their arrays back: no operation that it takes part in is over before. */
static void run(unsigned k, int form)
{
  MPI_Request r = MPI_REQUEST_NULL;
  fill();
  if (form != BLOCKING && rank == 0)
    for (int i = 1; i < size; i++) MPI_Recv(NULL, 0, MPI_BYTE, i, 1, W, MPI_STATUS_IGNORE);
  int err = cases[k].call(form, &r);
  if (err != MPI_SUCCESS) fprintf(stderr, "%s, form %d fails\n", cases[k].name, form);
  CHECK_CLASS(err, MPI_SUCCESS);
  if (form != BLOCKING) {
    forget();
    if (form == PERSISTENT) CHECK_CLASS(MPI_Start(&r), MPI_SUCCESS);
    if (rank != 0) MPI_Send(NULL, 0, MPI_BYTE, 0, 1, W);
    CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
  }
  judge(cases[k].name, form, cases[k].effect);
  if (form == PERSISTENT) {
    fill();
    CHECK_CLASS(MPI_Start(&r), MPI_SUCCESS);
    CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
    judge(cases[k].name, form, cases[k].effect);
    MPI_Request_free(&r);
  }
  release();
}

/* NULL with no address is still found to be wrong, and right where nothing is there. */
static void null_buffers(void)
{
  MPI_Count ones[MOST], none[MOST] = {0};
  MPI_Aint zero[MOST] = {0}, from[MOST];
  MPI_Datatype ints[MOST], wrong[MOST];
  for (int i = 0; i < MOST; i++) ones[i] = 1, from[i] = i, ints[i] = MPI_INT, wrong[i] = MPI_DATATYPE_NULL;
  CHECK_CLASS(MPI_Allgatherv_c(out, 1, MPI_INT, NULL, ones, from, MPI_INT, W), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Alltoallv_c(NULL, ones, zero, MPI_INT, in, ones, from, MPI_INT, W), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Alltoallw_c(NULL, ones, zero, ints, in, ones, from, ints, W), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Neighbor_alltoallw_c(out, ones, zero, ints, NULL, ones, from, ints, graph), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Alltoallv_c(NULL, none, zero, MPI_INT, NULL, none, zero, MPI_INT, W), MPI_SUCCESS);
  CHECK_CLASS(MPI_Alltoallw_c(NULL, none, zero, wrong, NULL, none, zero, wrong, W), MPI_SUCCESS);
  CHECK_CLASS(MPI_Neighbor_alltoallw_c(NULL, none, zero, wrong, NULL, none, zero, wrong, graph), MPI_SUCCESS);
}

/* Buffers that are not significant may be NULL: of MPI_Exscan at rank 0, of MPI_Reduce_scatter where the own block is empty, and not in place. */
static void not_significant(void)
{
  int x = rank + 1, y = -1, counts[MOST] = {0}, err;
  for (int form = 0; form < FORMS; form++) {
    MPI_Request request = MPI_REQUEST_NULL, *r = &request;
    err = form == BLOCKING      ? MPI_Exscan(&x, rank ? &y : NULL, 1, MPI_INT, MPI_SUM, W)
          : form == NONBLOCKING ? MPI_Iexscan(&x, rank ? &y : NULL, 1, MPI_INT, MPI_SUM, W, r)
                                : MPI_Exscan_init(&x, rank ? &y : NULL, 1, MPI_INT, MPI_SUM, W, MPI_INFO_NULL, r);
    CHECK_CLASS(err, MPI_SUCCESS);
    if (form == PERSISTENT) CHECK_CLASS(MPI_Start(r), MPI_SUCCESS);
    CHECK_CLASS(MPI_Wait(r, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK(y == (rank ? rank * (rank + 1) / 2 : -1));
    if (form == PERSISTENT) MPI_Request_free(r);
  }
  MPI_Comm apart; /* rank 0 goes on where the others get an error: nothing else is done there */
  MPI_Request r0 = MPI_REQUEST_NULL;
  MPI_Comm_dup(W, &apart);
  err = MPI_Exscan_init(&x, NULL, 1, MPI_INT, MPI_SUM, apart, MPI_INFO_NULL, &r0);
  CHECK_CLASS(err, rank ? MPI_ERR_BUFFER : MPI_SUCCESS);
  if (rank == 0) MPI_Request_free(&r0);
  MPI_Comm_free(&apart);
  counts[root] = 1;
  CHECK_CLASS(MPI_Reduce_scatter(&x, rank == root ? &y : NULL, counts, MPI_INT, MPI_SUM, W), MPI_SUCCESS);
  CHECK(rank != root || y == size * (size + 1) / 2);
  counts[root] = 0;
  CHECK_CLASS(MPI_Reduce_scatter(NULL, NULL, counts, MPI_INT, MPI_SUM, W), MPI_SUCCESS);
  counts[0] = 1;
  CHECK_CLASS(MPI_Reduce_scatter(MPI_IN_PLACE, NULL, counts, MPI_INT, MPI_SUM, W), MPI_ERR_BUFFER);
}

/* All in one buffer: what is sent has the even ints of it or its first half, what is received the others. */
static void one_buffer(void)
{
  int v[4 * MOST], counts[MOST], low[MOST], high[MOST], four[MOST], bytes[MOST];
  MPI_Datatype pair, even, odd, ints[MOST];
  for (int i = 0; i < size; i++)
    counts[i] = 1, low[i] = i, high[i] = size + i, four[i] = i * 4, bytes[i] = (size + i) * 4, ints[i] = MPI_INT;
  MPI_Type_create_resized(MPI_INT, 0, 8, &even);
  MPI_Type_create_indexed_block(1, 1, &counts[0], MPI_INT, &pair);
  MPI_Type_create_resized(pair, 0, 8, &odd);
  MPI_Type_commit(&even);
  MPI_Type_commit(&odd);
#define PREPARE(step)                                                                                                  \
  for (int i = 0; i < size; i++) v[i * (step)] = 100 * rank + i
#define JUDGE(at, want)                                                                                                \
  for (int i = 0; i < size; i++) CHECK(v[at] == (want))
  PREPARE(1);
  CHECK_CLASS(MPI_Alltoallv(v, counts, low, MPI_INT, v, counts, high, MPI_INT, W), MPI_SUCCESS);
  JUDGE(size + i, 100 * i + rank);
  PREPARE(1);
  CHECK_CLASS(MPI_Alltoallw(v, counts, four, ints, v, counts, bytes, ints, W), MPI_SUCCESS);
  JUDGE(size + i, 100 * i + rank);
  PREPARE(2);
  CHECK_CLASS(MPI_Alltoall(v, 1, even, v, 1, odd, W), MPI_SUCCESS);
  JUDGE(2 * i + 1, 100 * i + rank);
  PREPARE(2);
  CHECK_CLASS(MPI_Allgather(v + 2 * rank, 1, even, v, 1, odd, W), MPI_SUCCESS);
  JUDGE(2 * i + 1, 100 * i + i);
  PREPARE(2);
  CHECK_CLASS(MPI_Allgatherv(v + 2 * rank, 1, even, v, counts, low, odd, W), MPI_SUCCESS);
  JUDGE(2 * i + 1, 100 * i + i);
  PREPARE(2);
  CHECK_CLASS(MPI_Gather(v + 2 * rank, 1, even, v, 1, odd, root, W), MPI_SUCCESS);
  if (rank == root) JUDGE(2 * i + 1, 100 * i + i);
  PREPARE(2);
  CHECK_CLASS(MPI_Scatter(v, 1, even, v + 2 * rank, 1, odd, root, W), MPI_SUCCESS);
  CHECK(v[2 * rank + 1] == 100 * root + rank);
  CHECK_CLASS(MPI_Alltoallv(v, counts, low, MPI_INT, v, counts, low, MPI_INT, W), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Alltoallw(v, counts, four, ints, v, counts, four, ints, W), MPI_ERR_BUFFER);
  MPI_Type_free(&pair);
  MPI_Type_free(&even);
  MPI_Type_free(&odd);
}

int main(int argc, char **argv)
{
  int all[MOST];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(W, &rank);
  MPI_Comm_size(W, &size);
  for (int i = 0; i < size; i++) all[i] = i;
  MPI_Dist_graph_create_adjacent(W, size, all, all, size, all, all, MPI_INFO_NULL, 0, &graph);
  MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
  root = size - 1;
  gone = argc > 1 && strcmp(argv[1], "gone") == 0;
  bottom = argc > 1 && strcmp(argv[1], "bottom") == 0;
  if (argc > 1 && strcmp(argv[1], "one") == 0)
    one_buffer();
  else
    for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++)
      for (int form = 0; form < FORMS; form++) run(k, form);
  if (bottom) {
    null_buffers();
    not_significant();
  }
  MPI_Comm_free(&graph);
  MPI_Finalize();
  return check_status();
}
