/* Graphs and distributed graphs: random ones are made, and every process is told of its own edges, with their weights, however they
 * were contributed. MPI-5.0 9.5.3, 9.5.4, 9.5.5. */
// run: n=1,2,5,9,16 n.few=1,5,9 timeout=60
#include "../check.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static uint64_t seed = 7;
static int rnd(int n)
{
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((seed >> 33) % (unsigned)n);
}

static int rank, size;

/* A graph that all processes know, from the common seed: its edges, and who contributes each. */
typedef struct {
  int from, to, weight, by;
} edge;
static edge edges[MOST];
static int nedges;

static void draw(void)
{
  nedges = rnd(MOST < 4 * size ? MOST : 4 * size);
  for (int i = 0; i < nedges; i++) edges[i] = (edge){rnd(size), rnd(size), rnd(1000), rnd(size)};
}

static int order(const void *a, const void *b) { return memcmp(a, b, 2 * sizeof(int)); }

/* The neighbours that comm tells of are those of the graph, in any order. */
static void check_ends(MPI_Comm comm, int weighted)
{
  int in, out, flag, kind, k = 0, src[MOST], srcw[MOST], dst[MOST], dstw[MOST];
  int got[MOST][2], want[MOST][2];
  MPI_Topo_test(comm, &kind);
  CHECK(kind == MPI_DIST_GRAPH);
  MPI_Dist_graph_neighbors_count(comm, &in, &out, &flag);
  CHECK(flag == weighted);
  memset(srcw, 0, sizeof srcw);
  memset(dstw, 0, sizeof dstw);
  MPI_Dist_graph_neighbors(comm, in, src, weighted ? srcw : MPI_UNWEIGHTED, out, dst, weighted ? dstw : MPI_UNWEIGHTED);
  for (int side = 0; side < 2; side++) {
    k = 0;
    for (int i = 0; i < nedges; i++) {
      int mine = side ? edges[i].from : edges[i].to, other = side ? edges[i].to : edges[i].from;
      if (mine == rank) want[k][0] = other, want[k++][1] = weighted ? edges[i].weight : 0;
    }
    CHECK(k == (side ? out : in));
    for (int i = 0; i < k; i++) got[i][0] = side ? dst[i] : src[i], got[i][1] = side ? dstw[i] : srcw[i];
    qsort(got, (size_t)k, sizeof *got, order);
    qsort(want, (size_t)k, sizeof *want, order);
    CHECK(memcmp(got, want, (size_t)k * sizeof *got) == 0);
  }
  if (in > 1) { /* as many as there is room for */
    int first = src[0], second = src[1];
    src[0] = src[1] = -1;
    MPI_Dist_graph_neighbors(comm, 1, src, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED);
    CHECK(src[0] == first && src[1] == -1 && second >= 0);
  }
}

static void distributed(int weighted)
{
  int src[MOST], degree[MOST], dst[MOST], w[MOST], n = 0;
  for (int i = 0; i < nedges; i++)
    if (edges[i].by == rank) src[n] = edges[i].from, degree[n] = 1, dst[n] = edges[i].to, w[n++] = edges[i].weight;
  MPI_Comm g, dup;
  MPI_Dist_graph_create(MPI_COMM_WORLD, n, src, degree, dst,
                        !weighted ? MPI_UNWEIGHTED
                        : n       ? w
                                  : MPI_WEIGHTS_EMPTY,
                        MPI_INFO_NULL, rnd(2), &g);
  check_ends(g, weighted);
  MPI_Comm_dup(g, &dup);
  MPI_Comm_free(&g);
  check_ends(dup, weighted);
  MPI_Comm_free(&dup);
}

static void adjacent(int weighted)
{
  int src[MOST], srcw[MOST], dst[MOST], dstw[MOST], in = 0, out = 0;
  for (int i = 0; i < nedges; i++) {
    if (edges[i].to == rank) src[in] = edges[i].from, srcw[in++] = edges[i].weight;
    if (edges[i].from == rank) dst[out] = edges[i].to, dstw[out++] = edges[i].weight;
  }
  MPI_Comm g;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, src,
                                 !weighted ? MPI_UNWEIGHTED
                                 : in      ? srcw
                                           : MPI_WEIGHTS_EMPTY,
                                 out, dst,
                                 !weighted ? MPI_UNWEIGHTED
                                 : out     ? dstw
                                           : MPI_WEIGHTS_EMPTY,
                                 MPI_INFO_NULL, 0, &g);
  check_ends(g, weighted);
  MPI_Comm_free(&g);
}

/* One source with several destinations at once. */
static void fan(void)
{
  int *all = malloc((size_t)size * sizeof *all), in, out, flag;
  for (int i = 0; i < size; i++) all[i] = i;
  MPI_Comm g;
  MPI_Dist_graph_create(MPI_COMM_WORLD, rank == size - 1, (int[]){0}, &size, all, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g);
  MPI_Dist_graph_neighbors_count(g, &in, &out, &flag);
  CHECK(in == 1 && out == (rank == 0 ? size : 0) && !flag);
  MPI_Comm_free(&g);
  free(all);
}

static void plain(void)
{
  int nodes = 1 + rnd(size), index[MOST], list[MOST], n = 0, mapped, kind, count, got[MOST], gi[MOST], ge[MOST];
  for (int i = 0; i < nodes; i++) {
    for (int k = rnd(4); k > 0; k--) list[n++] = rnd(nodes);
    index[i] = n;
  }
  MPI_Comm g, dup;
  MPI_Graph_create(MPI_COMM_WORLD, nodes, index, list, rnd(2), &g);
  MPI_Graph_map(MPI_COMM_WORLD, nodes, index, list, &mapped);
  CHECK((g == MPI_COMM_NULL) == (rank >= nodes));
  CHECK(mapped == (rank < nodes ? rank : MPI_UNDEFINED));
  if (g == MPI_COMM_NULL) return;
  MPI_Comm_dup(g, &dup);
  MPI_Comm_free(&g);
  MPI_Topo_test(dup, &kind);
  CHECK(kind == MPI_GRAPH);
  MPI_Graphdims_get(dup, &kind, &count);
  CHECK(kind == nodes && count == n);
  MPI_Graph_get(dup, nodes, n, gi, ge);
  CHECK(memcmp(gi, index, (size_t)nodes * sizeof *gi) == 0 && memcmp(ge, list, (size_t)n * sizeof *ge) == 0);
  for (int i = 0; i < nodes; i++) {
    int first = i ? index[i - 1] : 0;
    MPI_Graph_neighbors_count(dup, i, &count);
    CHECK(count == index[i] - first);
    MPI_Graph_neighbors(dup, i, count, got);
    CHECK(memcmp(got, list + first, (size_t)count * sizeof *got) == 0);
  }
  MPI_Comm_free(&dup);
}

int main(int argc, char **argv)
{
  MPI_Comm none;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 20; i++) {
    draw();
    distributed(i % 2);
    adjacent(i % 2);
    plain();
  }
  nedges = 0;
  distributed(0);
  distributed(1);
  adjacent(1);
  fan();
  MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &none);
  CHECK(none == MPI_COMM_NULL);
  MPI_Finalize();
  return check_status();
}
