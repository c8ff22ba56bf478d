/* Wrong arguments of the functions for topologies: the right class, at all processes of a creation that one process spoils, and the
 * communicator can be used afterwards. MPI-5.0 9.5, 9.6. */
// run: n=1,2,5
#include "../check.h"

static int rank, size;

static void creations(void)
{
  MPI_Comm c = MPI_COMM_WORLD;
  int dims[2] = {size, 2}, periods[2] = {0, 0}, bad = rank == size - 1, r;
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &c), MPI_ERR_DIMS);
  CHECK(c == MPI_COMM_NULL);
  dims[1] = bad ? -1 : 1;
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &c), MPI_ERR_DIMS);
  dims[1] = 1;
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, bad ? -2 : 2, dims, periods, 0, &c), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, bad ? NULL : dims, periods, 0, &c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, NULL, 0, &c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_create(MPI_COMM_NULL, 2, dims, periods, 0, &c), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Cart_map(MPI_COMM_WORLD, 2, (int[]){size, 2}, periods, &r), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Cart_map(MPI_COMM_WORLD, -1, dims, periods, &r), MPI_ERR_DIMS);
  int index[2] = {1, 2}, edges[2] = {0, 0}, many[8] = {0};
  CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, size + 1, many, edges, 0, &c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, -1, index, edges, 0, &c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, 1, index, (int[]){1}, 0, &c), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]){-1}, edges, 0, &c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, 1, index, NULL, 0, &c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_map(MPI_COMM_WORLD, 1, index, (int[]){5}, &r), MPI_ERR_RANK);
  int other = bad ? size : 0, one = 1, weight = bad ? -1 : 1;
  CHECK_CLASS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &other, &one, &edges[0], MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c),
              MPI_ERR_RANK);
  CHECK_CLASS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c),
              MPI_ERR_RANK);
  CHECK_CLASS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &weight, &rank, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c),
              MPI_ERR_ARG);
  CHECK_CLASS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &rank, &weight, MPI_INFO_NULL, 0, &c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &rank, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &c),
              MPI_ERR_ARG);
  if (size > 1)
    CHECK_CLASS(
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &rank, bad ? MPI_UNWEIGHTED : &one, MPI_INFO_NULL, 0, &c),
        MPI_ERR_ARG);
  CHECK_CLASS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                             MPI_INFO_NULL, 0, &c),
              MPI_ERR_RANK);
  CHECK_CLASS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, bad ? -1 : 0, NULL,
                                             MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c),
              MPI_ERR_ARG);
  CHECK_CLASS(
      MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 1, &rank, &weight, MPI_INFO_NULL, 0, &c),
      MPI_ERR_ARG);
  CHECK(c == MPI_COMM_NULL);
}

static void dims_create(void)
{
  int dims[2] = {0, 4};
  CHECK_CLASS(MPI_Dims_create(6, 2, dims), MPI_ERR_DIMS);
  CHECK(dims[0] == 0 && dims[1] == 4);
  dims[1] = -1;
  CHECK_CLASS(MPI_Dims_create(6, 2, dims), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Dims_create(6, -2, dims), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Dims_create(0, 1, dims), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Dims_create(6, 2, NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Dims_create(6, 0, NULL), MPI_ERR_DIMS);
  CHECK(MPI_Dims_create(1, 0, NULL) == MPI_SUCCESS);
}

static void inquiries(MPI_Comm cart, MPI_Comm graph)
{
  int a, b, c[2] = {0, 0};
  CHECK_CLASS(MPI_Cart_coords(cart, size, 2, c), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Cart_coords(cart, -1, 2, c), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Cart_coords(cart, 0, 1, c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_coords(cart, 0, -1, c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_coords(cart, 0, 2, NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_rank(cart, (int[]){size, 0}, &a), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_rank(cart, NULL, &a), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_shift(cart, 2, 1, &a, &b), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Cart_shift(cart, -1, 1, &a, &b), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Cart_shift(cart, 0, 1, NULL, &b), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_get(cart, 1, c, c, c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graphdims_get(cart, &a, &b), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Graph_get(cart, 1, 1, c, c), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Graph_neighbors_count(cart, 0, &a), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Dist_graph_neighbors_count(cart, &a, &b, c), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Graph_neighbors_count(graph, 1, &a), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Graph_neighbors(graph, 0, 0, &a), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_get(graph, 1, 0, c, c), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cartdim_get(graph, &a), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Cart_sub(graph, c, &graph), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Cartdim_get(MPI_COMM_WORLD, &a), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Cart_rank(MPI_COMM_WORLD, c, &a), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Topo_test(MPI_COMM_NULL, &a), MPI_ERR_COMM);
}

static void collectives(MPI_Comm cart)
{
  int buf[8] = {0}, n[4] = {1, 1, 1, 1}, zero[4] = {0};
  MPI_Aint at[4] = {0};
  MPI_Request r;
  MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT}, none[4];
  for (int i = 0; i < 4; i++) none[i] = MPI_DATATYPE_NULL;
  CHECK_CLASS(MPI_Neighbor_allgather(buf, 1, MPI_INT, buf, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Neighbor_alltoallw(buf, n, at, types, buf, n, at, types, MPI_COMM_WORLD), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Ineighbor_alltoallv(buf, n, zero, MPI_INT, buf, n, zero, MPI_INT, MPI_COMM_WORLD, &r),
              MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, buf, 1, MPI_INT, cart), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Neighbor_allgatherv(buf, 1, MPI_INT, MPI_IN_PLACE, n, zero, MPI_INT, cart), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, buf, 1, MPI_INT, cart), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Neighbor_alltoallv(buf, n, zero, MPI_INT, NULL, n, zero, MPI_INT, cart), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Neighbor_alltoall(buf, -1, MPI_INT, buf, 1, MPI_INT, cart), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Neighbor_alltoall(buf, 1, MPI_DATATYPE_NULL, buf, 1, MPI_INT, cart), MPI_ERR_TYPE);
  n[3] = -1;
  CHECK_CLASS(MPI_Neighbor_alltoallv(buf, n, zero, MPI_INT, buf, n, zero, MPI_INT, cart), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Neighbor_allgatherv(buf, 1, MPI_INT, buf, n, zero, MPI_INT, cart), MPI_ERR_COUNT);
  n[3] = 1;
  CHECK_CLASS(MPI_Neighbor_alltoallw(buf, n, at, none, buf, n, at, types, cart), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Neighbor_alltoallv_init(buf, NULL, zero, MPI_INT, buf, n, zero, MPI_INT, cart, MPI_INFO_NULL, &r),
              MPI_ERR_ARG);
  /* Beside the count 0 anything goes. */
  CHECK(MPI_Neighbor_alltoallw(buf, zero, at, none, buf, zero, at, none, cart) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
  MPI_Comm cart, graph, inter, half;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  creations();
  dims_create();
  MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){size, 1}, (int[]){0, 1}, 0, &cart);
  MPI_Graph_create(MPI_COMM_SELF, 1, (int[]){2}, (int[]){0, 0}, 0, &graph);
  inquiries(cart, graph);
  collectives(cart);
  if (size > 1) {
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &inter);
    MPI_Comm c;
    CHECK_CLASS(MPI_Cart_create(inter, 1, (int[]){1}, (int[]){0}, 0, &c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Dist_graph_create(inter, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Neighbor_alltoall(&rank, 1, MPI_INT, &size, 1, MPI_INT, inter), MPI_ERR_TOPOLOGY);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
  }
  int sum = 0;
  MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, cart);
  CHECK(sum == size);
  MPI_Comm_free(&cart);
  MPI_Comm_free(&graph);
  MPI_Finalize();
  return check_status();
}
