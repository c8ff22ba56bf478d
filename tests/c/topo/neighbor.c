/* The neighbourhood collectives in all forms, on random distributed graphs, on graphs, and on grids down to rings of one and two
 * processes: every block arrives where the standard says, and nothing else is touched. MPI-5.0 9.6, 9.7, 9.8. */
// run: n=1,2,3,4,8,12 n.few=3,8 timeout=120
// run: n=4 args="5000" args.few="800" timeout=120
// run: n=4 args="20000" timeout=120 full=1
#include "../check.h"
#include <stdlib.h>
#include <string.h>

enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, OPS };
enum { BLOCKING, NONBLOCKING, PERSISTENT, LARGE, LARGE_NONBLOCKING, LARGE_PERSISTENT, FORMS };
enum { MOST = 256, GAP = -7 };

static uint64_t seed = 11;
static int rnd(int n)
{
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((seed >> 33) % (unsigned)n);
}

static int rank, size, scale = 3;
static MPI_Datatype spaced; /* an int and a gap of one */

/* Block out of one process's send buffer goes to block in of another's receive buffer. */
typedef struct {
  int from, to, out, in;
} edge;
static edge edges[MOST];
static int nedges, indegree, outdegree;

/* Element i of what is sent along edge k, or, when the same goes to all, by a process. */
static int value(int op, int k, int round, int i)
{
  int who = op == ALLGATHER || op == ALLGATHERV ? 1000 + edges[k].from : k;
  return (who * 7919 + round * 104729 + i * 31) & 0x3fffffff;
}
static int length(int op, int k)
{
  if (op == ALLGATHER || op == ALLTOALL) return 2 * scale;
  return (op == ALLGATHERV ? 5 * edges[k].from + 1 : 3 * k + 2) % 4 * scale;
}

/* My block sent along edge k (outgoing) or received (incoming), -1 for an edge of others. */
static int edge_of(int outgoing, int block)
{
  for (int k = 0; k < nedges; k++)
    if (outgoing ? edges[k].from == rank && edges[k].out == block : edges[k].to == rank && edges[k].in == block)
      return k;
  return -1;
}

typedef struct {
  int *mem, words;
  int counts[MOST], displs[MOST];
  MPI_Count wcounts[MOST];
  MPI_Aint wdispls[MOST], bytes[MOST];
  MPI_Datatype types[MOST];
} side;
static side out, in;

static int step(MPI_Datatype t) { return t == spaced ? 2 : 1; }

/* Lays the blocks of one side out, with room between them; all of type t, or, for the w form, of changing types. */
static void lay(side *s, int op, int outgoing, int blocks, MPI_Datatype t)
{
  int at = 0, equal = op == ALLGATHER || op == ALLTOALL;
  for (int b = 0; b < blocks; b++) {
    int k = edge_of(outgoing, b);
    s->counts[b] = k < 0 ? 2 * scale : length(op, k);
    s->types[b] = op == ALLTOALLW && b % 2 ? spaced : t;
    if (!equal) at += 1;
    s->displs[b] = at;
    s->bytes[b] = (MPI_Aint)sizeof(int) * (op == ALLTOALLW ? 2 * at : at * step(t));
    at += s->counts[b];
    s->wcounts[b] = s->counts[b];
    s->wdispls[b] = s->displs[b];
  }
  s->words = 2 * at + 2;
  if (s->words < 8 * scale + 8) s->words = 8 * scale + 8;
  s->mem = malloc((size_t)s->words * sizeof *s->mem);
  for (int i = 0; i < s->words; i++) s->mem[i] = GAP;
}

static int *place(side *s, int block, int i)
{
  return s->mem + s->bytes[block] / (MPI_Aint)sizeof(int) + i * step(s->types[block]);
}

static int sent_length(int op)
{
  if (op == ALLGATHER) return 2 * scale;
  for (int k = 0; k < nedges; k++)
    if (edges[k].from == rank) return length(op, k);
  return 0;
}

static void fill(int op, int round)
{
  int gathers = op == ALLGATHER || op == ALLGATHERV;
  for (int k = 0; k < nedges; k++)
    for (int i = 0; edges[k].from == rank && i < length(op, k); i++)
      *place(&out, gathers ? 0 : edges[k].out, i) = value(op, k, round, i);
}

static void verify(int op, int form, int round)
{
  int *want = malloc((size_t)in.words * sizeof *want);
  for (int i = 0; i < in.words; i++) want[i] = GAP;
  for (int k = 0; k < nedges; k++)
    for (int i = 0; edges[k].to == rank && i < length(op, k); i++)
      want[place(&in, edges[k].in, i) - in.mem] = value(op, k, round, i);
  int wrong = -1;
  for (int i = 0; i < in.words && wrong < 0; i++)
    if (want[i] != in.mem[i]) wrong = i;
  if (wrong >= 0) fprintf(stderr, "operation %d, form %d, round %d: word %d\n", op, form, round, wrong);
  CHECK(wrong < 0);
  free(want);
}

#define COMPLETE(call)                                                                                                 \
  do {                                                                                                                 \
    MPI_Request r;                                                                                                     \
    call;                                                                                                              \
    MPI_Wait(&r, MPI_STATUS_IGNORE);                                                                                   \
  } while (0)
#define REPEAT(call)                                                                                                   \
  do {                                                                                                                 \
    MPI_Request r;                                                                                                     \
    call;                                                                                                              \
    for (int round = 0; round < 3; round++) {                                                                          \
      fill(op, round);                                                                                                 \
      MPI_Start(&r);                                                                                                   \
      MPI_Wait(&r, MPI_STATUS_IGNORE);                                                                                 \
      verify(op, form, round);                                                                                         \
    }                                                                                                                  \
    MPI_Request_free(&r);                                                                                              \
    fill(op, 0);                                                                                                       \
    MPI_Neighbor_alltoallw(out.mem, zeros, out.bytes, out.types, in.mem, zeros, in.bytes, in.types, comm);             \
    return;                                                                                                            \
  } while (0)
#define IN_FORM(name, narrow, wide)                                                                                    \
  switch (form) {                                                                                                      \
  case BLOCKING: MPI_Neighbor_##name(SPREAD narrow, comm); break;                                                      \
  case NONBLOCKING: COMPLETE(MPI_Ineighbor_##name(SPREAD narrow, comm, &r)); break;                                    \
  case PERSISTENT: REPEAT(MPI_Neighbor_##name##_init(SPREAD narrow, comm, MPI_INFO_NULL, &r));                         \
  case LARGE: MPI_Neighbor_##name##_c(SPREAD wide, comm); break;                                                       \
  case LARGE_NONBLOCKING: COMPLETE(MPI_Ineighbor_##name##_c(SPREAD wide, comm, &r)); break;                            \
  case LARGE_PERSISTENT: REPEAT(MPI_Neighbor_##name##_init_c(SPREAD wide, comm, MPI_INFO_NULL, &r));                   \
  }                                                                                                                    \
  break
#define SPREAD(...) __VA_ARGS__

static void call(int op, int form, MPI_Datatype st, MPI_Datatype rt, MPI_Comm comm)
{
  static const int zeros[MOST];
  int n = sent_length(op), m = 2 * scale;
  switch (op) {
  case ALLGATHER: IN_FORM(allgather, (out.mem, n, st, in.mem, m, rt), (out.mem, n, st, in.mem, m, rt));
  case ALLGATHERV:
    IN_FORM(allgatherv, (out.mem, n, st, in.mem, in.counts, in.displs, rt),
            (out.mem, n, st, in.mem, in.wcounts, in.wdispls, rt));
  case ALLTOALL: IN_FORM(alltoall, (out.mem, m, st, in.mem, m, rt), (out.mem, m, st, in.mem, m, rt));
  case ALLTOALLV:
    IN_FORM(alltoallv, (out.mem, out.counts, out.displs, st, in.mem, in.counts, in.displs, rt),
            (out.mem, out.wcounts, out.wdispls, st, in.mem, in.wcounts, in.wdispls, rt));
  case ALLTOALLW:
    IN_FORM(alltoallw, (out.mem, out.counts, out.bytes, out.types, in.mem, in.counts, in.bytes, in.types),
            (out.mem, out.wcounts, out.bytes, out.types, in.mem, in.wcounts, in.bytes, in.types));
  }
  verify(op, form, 0);
}

/* A communicator that has the topology in edges is put through everything. */
static void every_form(MPI_Comm comm)
{
  for (int op = 0; op < OPS; op++)
    for (int form = 0; form < FORMS; form++) {
      MPI_Datatype st = form % 2 ? spaced : MPI_INT, rt = (form + op) % 3 ? MPI_INT : spaced;
      int gathers = op == ALLGATHER || op == ALLGATHERV;
      lay(&out, op, 1, outdegree, st);
      lay(&in, op, 0, indegree, rt);
      if (gathers) out.bytes[0] = 0, out.types[0] = st;
      fill(op, 0);
      call(op, form, st, rt, comm);
      free(out.mem);
      free(in.mem);
    }
}

/* Edges between any processes, to themselves too, several of a kind: in the order in which they are drawn. */
static void on_random_graph(void)
{
  int ins[64] = {0}, outs[64] = {0}, src[MOST], dst[MOST];
  nedges = rnd(3 * size) + (size > 1);
  for (int k = 0; k < nedges; k++) {
    int from = rnd(size), to = rnd(size);
    if (to == rank) src[ins[to]] = from;
    if (from == rank) dst[outs[from]] = to;
    edges[k] = (edge){from, to, outs[from]++, ins[to]++};
  }
  indegree = ins[rank];
  outdegree = outs[rank];
  MPI_Comm g, dup;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, indegree, src, MPI_UNWEIGHTED, outdegree, dst, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &g);
  every_form(g);
  MPI_Comm_dup(g, &dup);
  MPI_Comm_free(&g);
  every_form(dup);
  MPI_Comm_free(&dup);
}

/* A ring as a graph: the neighbours of node i are i - 1 and i + 1. */
static void on_graph(void)
{
  int index[64], list[128];
  MPI_Comm g;
  nedges = 0;
  indegree = outdegree = 2;
  for (int i = 0; i < size; i++) {
    index[i] = 2 * i + 2;
    list[2 * i] = (i + size - 1) % size;
    list[2 * i + 1] = (i + 1) % size;
    /* Equal neighbours are told apart by their order alone. */
    edges[nedges++] = (edge){i, list[2 * i], 0, size > 2};
    edges[nedges++] = (edge){i, list[2 * i + 1], 1, size <= 2};
  }
  MPI_Graph_create(MPI_COMM_WORLD, size, index, list, 0, &g);
  every_form(g);
  MPI_Comm_free(&g);
}

/* What goes in negative direction comes in from the positive one, also where both neighbours are one process. */
static void on_grid(int n, const int *dims, const int *periods)
{
  MPI_Comm g;
  MPI_Cart_create(MPI_COMM_WORLD, n, dims, periods, 0, &g);
  nedges = 0;
  indegree = outdegree = 2 * n;
  int stride = size;
  for (int d = 0; d < n; d++) {
    stride /= dims[d];
    for (int r = 0; r < size; r++)
      for (int up = 0; up < 2; up++) {
        int x = r / stride % dims[d], y = up ? x + 1 : x - 1;
        if (!periods[d] && (y < 0 || y >= dims[d])) continue;
        y = (y + dims[d]) % dims[d];
        edges[nedges++] = (edge){r, r + (y - x) * stride, 2 * d + up, 2 * d + 1 - up};
      }
  }
  every_form(g);
  MPI_Comm_free(&g);
}

/* Two operations under way at once, collected in the other order; types freed meanwhile. */
static void overlapping(void)
{
  enum { N = 5000 };
  MPI_Comm ring;
  MPI_Request r[2];
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){1}, 0, &ring);
  int *a = malloc(sizeof(int) * 2 * N), *b = malloc(sizeof(int) * 4 * N), *c = malloc(sizeof(int) * 4 * N);
  for (int i = 0; i < 2 * N; i++) a[i] = rank * 10 + i / N;
  for (int i = 0; i < 4 * N; i++) b[i] = c[i] = GAP;
  MPI_Datatype mine, pair[2];
  MPI_Type_vector(N, 1, 2, MPI_INT, &mine);
  MPI_Type_commit(&mine);
  pair[0] = pair[1] = mine;
  MPI_Aint from[2] = {0, N * sizeof(int)}, to[2] = {0, 2 * N * sizeof(int)};
  MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
  int n[2] = {N, N}, one[2] = {1, 1};
  MPI_Ineighbor_alltoallw(a, n, from, ints, b, one, to, pair, ring, &r[0]);
  MPI_Ineighbor_allgather(a, N, MPI_INT, c, N, MPI_INT, ring, &r[1]);
  MPI_Type_free(&mine);
  MPI_Type_contiguous(3, MPI_CHAR, &mine); /* may take the freed one's place */
  MPI_Type_commit(&mine);
  MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  int down = (rank + size - 1) % size, up = (rank + 1) % size, wrong = 0;
  for (int i = 0; i < N; i++) {
    wrong += b[2 * i] != down * 10 + 1 || b[2 * N + 2 * i] != up * 10;
    wrong += b[2 * i + 1] != GAP || b[2 * N + 2 * i + 1] != GAP;
    wrong += c[i] != down * 10 || c[N + i] != up * 10;
  }
  CHECK(wrong == 0);
  MPI_Type_free(&mine);
  MPI_Comm_free(&ring);
  free(a);
  free(b);
  free(c);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  if (argc > 1) scale = atoi(argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Datatype t;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced);
  MPI_Type_commit(&spaced);
  for (int i = 0; i < (scale > 100 ? 2 : 8); i++) on_random_graph();
  on_graph();
  int two[2] = {0, 0}, four[4] = {1, 0, 1, 0};
  MPI_Dims_create(size, 2, two);
  MPI_Dims_create(size, 4, four);
  on_grid(1, &size, (int[]){1});
  on_grid(2, two, (int[]){0, 1});
  on_grid(4, four, (int[]){1, 1, 0, 0});
  on_grid(4, four, (int[]){1, 1, 1, 1});
  overlapping();
  t = spaced;
  MPI_Type_free(&t);
  MPI_Finalize();
  return check_status();
}
