/* nothing.c - null handles, MPI_PROC_NULL, counts of 0, empty groups, and windows and topologies without anything in them: what the standard says of them,
 * chapter by chapter (MPI-5.0; the sections stand at the functions). */
// run: n=1,3
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

#define OK(call) CHECK((call) == MPI_SUCCESS)

static int rank, size;

static int is_status(const MPI_Status *st, int source, int tag)
{
  int n = -1, cancelled = -1;
  MPI_Get_count(st, MPI_INT, &n);
  MPI_Test_cancelled(st, &cancelled);
  return st->MPI_SOURCE == source && st->MPI_TAG == tag && n == 0 && !cancelled;
}
static int is_empty(const MPI_Status *st) { return is_status(st, MPI_ANY_SOURCE, MPI_ANY_TAG) && !st->MPI_ERROR; }
static int is_null(const MPI_Status *st) { return is_status(st, MPI_PROC_NULL, MPI_ANY_TAG); }

/* 8.8 */
static void names(void)
{
  char name[MPI_MAX_OBJECT_NAME];
  int n = 0;
  OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &n));
  CHECK(strcmp(name, "MPI_COMM_NULL") == 0 && n == 13);
  OK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &n));
  CHECK(strcmp(name, "MPI_DATATYPE_NULL") == 0 && n == 17);
  OK(MPI_Win_get_name(MPI_WIN_NULL, name, &n));
  CHECK(strcmp(name, "MPI_WIN_NULL") == 0 && n == 12);
  MPI_Comm dup;
  MPI_Datatype type;
  MPI_Win win;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  OK(MPI_Comm_get_name(dup, name, &n));
  CHECK(n == 0 && name[0] == 0);
  MPI_Comm_free(&dup);
  OK(MPI_Type_dup(MPI_WCHAR, &type));
  OK(MPI_Type_get_name(type, name, &n));
  CHECK(n == 0 && name[0] == 0);
  MPI_Type_free(&type);
  OK(MPI_Type_get_name(MPI_WCHAR, name, &n));
  CHECK(strcmp(name, "MPI_WCHAR") == 0);
  OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_get_name(win, name, &n));
  CHECK(n == 0 && name[0] == 0);
  MPI_Win_free(&win);
  CHECK_CLASS(MPI_Comm_set_name(MPI_COMM_NULL, "x"), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Type_set_name(MPI_DATATYPE_NULL, "x"), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Win_set_name(MPI_WIN_NULL, "x"), MPI_ERR_WIN);
}

/* 3.7.3, 3.7.5, 3.7.6 */
static void requests(void)
{
  MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status st[3];
  int flag, n, index, list[3];
  for (int persistent = 0; persistent < 2; persistent++) { /* null, and persistent ones that are not active */
    for (int i = 0; persistent && i < 3; i++) OK(MPI_Recv_init(&n, 1, MPI_INT, rank, i, MPI_COMM_WORLD, &none[i]));
    memset(st, 1, sizeof st);
    OK(MPI_Wait(&none[0], st));
    CHECK(is_empty(st));
    memset(st, 1, sizeof st), flag = 0;
    OK(MPI_Test(&none[0], &flag, st));
    CHECK(flag && is_empty(st));
    memset(st, 1, sizeof st), index = 0;
    OK(MPI_Waitany(3, none, &index, st));
    CHECK(index == MPI_UNDEFINED && is_empty(st));
    memset(st, 1, sizeof st), index = flag = 0;
    OK(MPI_Testany(3, none, &index, &flag, st));
    CHECK(flag && index == MPI_UNDEFINED && is_empty(st));
    memset(st, 1, sizeof st);
    for (int i = 0; i < 3; i++) st[i].MPI_ERROR = 0;
    OK(MPI_Waitall(3, none, st));
    CHECK(is_empty(&st[0]) && is_empty(&st[2]));
    memset(st, 1, sizeof st), flag = 0;
    for (int i = 0; i < 3; i++) st[i].MPI_ERROR = 0;
    OK(MPI_Testall(3, none, &flag, st));
    CHECK(flag && is_empty(&st[0]) && is_empty(&st[2]));
    n = 0;
    OK(MPI_Waitsome(3, none, &n, list, st));
    CHECK(n == MPI_UNDEFINED);
    n = 0;
    OK(MPI_Testsome(3, none, &n, list, st));
    CHECK(n == MPI_UNDEFINED);
    memset(st, 1, sizeof st), flag = 0;
    OK(MPI_Request_get_status(none[0], &flag, st));
    CHECK(flag && is_empty(st));
    memset(st, 1, sizeof st), flag = 0, index = 0;
    OK(MPI_Request_get_status_any(3, none, &index, &flag, st));
    CHECK(flag && index == MPI_UNDEFINED && is_empty(st));
    flag = 0;
    OK(MPI_Request_get_status_all(3, none, &flag, st));
    CHECK(flag);
    n = 0;
    OK(MPI_Request_get_status_some(3, none, &n, list, st));
    CHECK(n == MPI_UNDEFINED);
    for (int i = 0; persistent && i < 3; i++) OK(MPI_Request_free(&none[i]));
  }
  OK(MPI_Waitany(0, NULL, &index, st));
  CHECK(index == MPI_UNDEFINED);
  OK(MPI_Testany(0, NULL, &index, &flag, st));
  CHECK(flag && index == MPI_UNDEFINED);
  OK(MPI_Waitall(0, NULL, NULL));
  OK(MPI_Testall(0, NULL, &flag, NULL));
  CHECK(flag);
  OK(MPI_Waitsome(0, NULL, &n, NULL, NULL));
  CHECK(n == MPI_UNDEFINED);
  OK(MPI_Startall(0, NULL));
  none[0] = MPI_REQUEST_NULL;
  CHECK_CLASS(MPI_Request_free(&none[0]), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Start(&none[0]), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&none[0]), MPI_ERR_REQUEST);
}

/* 3.10, 3.8, 4.2 */
static void no_process(void)
{
  MPI_Status st;
  MPI_Request r;
  MPI_Message m;
  int x = 7, flag;
  MPI_Comm w = MPI_COMM_WORLD;
  OK(MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, w));
  OK(MPI_Bsend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, w)); /* no buffer is attached */
  OK(MPI_Ssend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, w));
  OK(MPI_Rsend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, w));
  OK(MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, w, &st));
  CHECK(x == 7 && is_null(&st));
  OK(MPI_Probe(MPI_PROC_NULL, 1, w, &st));
  CHECK(is_null(&st));
  OK(MPI_Iprobe(MPI_PROC_NULL, 1, w, &flag, &st));
  CHECK(flag && is_null(&st));
  OK(MPI_Mprobe(MPI_PROC_NULL, 1, w, &m, &st));
  CHECK(m == MPI_MESSAGE_NO_PROC && is_null(&st));
  OK(MPI_Improbe(MPI_PROC_NULL, 1, w, &flag, &m, &st));
  CHECK(flag && m == MPI_MESSAGE_NO_PROC && is_null(&st));
  OK(MPI_Mrecv(&x, 1, MPI_INT, &m, &st));
  CHECK(m == MPI_MESSAGE_NULL && is_null(&st));
  m = MPI_MESSAGE_NO_PROC;
  OK(MPI_Imrecv(&x, 1, MPI_INT, &m, &r));
  CHECK(m == MPI_MESSAGE_NULL);
  OK(MPI_Wait(&r, &st));
  CHECK(is_null(&st));
  CHECK_CLASS(MPI_Mrecv(&x, 1, MPI_INT, &m, &st), MPI_ERR_REQUEST);
  OK(MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, w, &r));
  OK(MPI_Wait(&r, &st));
  CHECK(is_null(&st));
  OK(MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 4, w, &r));
  OK(MPI_Cancel(&r));
  OK(MPI_Wait(&r, &st));
  OK(MPI_Sendrecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, &x, 1, MPI_INT, MPI_PROC_NULL, 1, w, &st));
  CHECK(is_null(&st));
  OK(MPI_Sendrecv_replace(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_PROC_NULL, 1, w, &st));
  CHECK(x == 7 && is_null(&st));
  OK(MPI_Isendrecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, &x, 1, MPI_INT, MPI_PROC_NULL, 1, w, &r));
  OK(MPI_Wait(&r, &st));
  OK(MPI_Recv_init(&x, 1, MPI_INT, MPI_PROC_NULL, 1, w, &r));
  for (int i = 0; i < 2; i++) {
    OK(MPI_Start(&r));
    OK(MPI_Wait(&r, &st));
    CHECK(is_null(&st));
  }
  OK(MPI_Request_free(&r));
  OK(MPI_Precv_init(&x, 1, 1, MPI_INT, MPI_PROC_NULL, 1, w, MPI_INFO_NULL, &r));
  OK(MPI_Start(&r));
  OK(MPI_Parrived(r, 0, &flag));
  CHECK(flag);
  OK(MPI_Wait(&r, &st));
  CHECK(is_null(&st));
  OK(MPI_Parrived(r, 0, &flag)); /* not active: true */
  CHECK(flag);
  OK(MPI_Request_free(&r));
  OK(MPI_Psend_init(&x, 1, 1, MPI_INT, MPI_PROC_NULL, 1, w, MPI_INFO_NULL, &r));
  OK(MPI_Start(&r));
  OK(MPI_Pready(0, r));
  OK(MPI_Wait(&r, &st));
  OK(MPI_Request_free(&r));
  flag = 0;
  OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag)); /* 4.2.2 */
  CHECK(flag);
}

/* 3.2, 5.1 */
static void no_data(void)
{
  MPI_Datatype t[6];
  MPI_Status st;
  MPI_Aint lb, extent;
  int n, bytes;
  MPI_Comm self = MPI_COMM_SELF;
  OK(MPI_Type_contiguous(0, MPI_INT, &t[0]));
  OK(MPI_Type_vector(0, 3, 4, MPI_INT, &t[1]));
  OK(MPI_Type_indexed(0, NULL, NULL, MPI_INT, &t[2]));
  OK(MPI_Type_create_struct(0, NULL, NULL, NULL, &t[3]));
  OK(MPI_Type_create_indexed_block(0, 5, NULL, MPI_INT, &t[4]));
  OK(MPI_Type_create_resized(t[0], -4, 16, &t[5]));
  for (int i = 0; i < 6; i++) {
    OK(MPI_Type_commit(&t[i]));
    OK(MPI_Type_size(t[i], &bytes));
    OK(MPI_Type_get_extent(t[i], &lb, &extent));
    CHECK(bytes == 0 && (i == 5 ? lb == -4 && extent == 16 : extent == 0));
    OK(MPI_Sendrecv(NULL, 7, t[i], 0, 1, NULL, 2, t[i], 0, 1, self, &st));
    OK(MPI_Get_count(&st, t[i], &n));
    CHECK(n == 0);
    OK(MPI_Get_elements(&st, t[i], &n));
    CHECK(n == 0);
    OK(MPI_Bcast(NULL, 3, t[i], 0, MPI_COMM_WORLD));
    OK(MPI_Allgather(NULL, 3, t[i], NULL, 3, t[i], MPI_COMM_WORLD));
    OK(MPI_Pack_size(3, t[i], self, &n));
    int at = 0;
    char buf[64];
    OK(MPI_Pack(NULL, 3, t[i], buf, 64, &at, self));
    at = 0;
    OK(MPI_Unpack(buf, 64, &at, NULL, 3, t[i], self));
    OK(MPI_Type_free(&t[i]));
  }
  OK(MPI_Sendrecv(NULL, 0, MPI_DOUBLE, 0, 1, NULL, 0, MPI_DOUBLE, 0, 1, self, &st));
  CHECK(st.MPI_SOURCE == 0 && st.MPI_TAG == 1);
  OK(MPI_Reduce_local(NULL, NULL, 0, MPI_INT, MPI_SUM));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
  OK(MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
  OK(MPI_Scatter(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
  OK(MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, MPI_COMM_WORLD));
  OK(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  OK(MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
  OK(MPI_Scan(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  OK(MPI_Exscan(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  OK(MPI_Reduce_scatter_block(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_CLASS(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, 0, 0, self), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Send(NULL, -1, MPI_INT, 0, 0, self), MPI_ERR_COUNT);
  MPI_Datatype none = MPI_DATATYPE_NULL, basic = MPI_INT;
  CHECK_CLASS(MPI_Type_free(&none), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_free(&basic), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_commit(&none), MPI_ERR_TYPE);
  MPI_Op op = MPI_OP_NULL, sum = MPI_SUM;
  CHECK_CLASS(MPI_Op_free(&op), MPI_ERR_OP);
  CHECK_CLASS(MPI_Op_free(&sum), MPI_ERR_OP);
  CHECK_CLASS(MPI_Allreduce(&n, &bytes, 1, MPI_INT, MPI_OP_NULL, self), MPI_ERR_OP);
}

/* 7.3, 7.4 */
static void groups(void)
{
  MPI_Group world, g, none = MPI_GROUP_NULL;
  MPI_Comm c;
  int n, where[2] = {0, MPI_PROC_NULL}, there[2], result;
  int range[1][3] = {{0, size - 1, 1}};
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_size(MPI_GROUP_EMPTY, &n));
  CHECK(n == 0);
  OK(MPI_Group_rank(MPI_GROUP_EMPTY, &n));
  CHECK(n == MPI_UNDEFINED);
  OK(MPI_Group_translate_ranks(world, 2, where, MPI_GROUP_EMPTY, there));
  CHECK(there[0] == MPI_UNDEFINED && there[1] == MPI_PROC_NULL);
  OK(MPI_Group_translate_ranks(world, 0, NULL, MPI_GROUP_EMPTY, NULL));
  OK(MPI_Group_incl(world, 0, NULL, &g));
  CHECK(g == MPI_GROUP_EMPTY);
  OK(MPI_Group_range_incl(world, 0, NULL, &g));
  CHECK(g == MPI_GROUP_EMPTY);
  OK(MPI_Group_range_excl(world, 1, range, &g));
  CHECK(g == MPI_GROUP_EMPTY);
  OK(MPI_Group_intersection(world, MPI_GROUP_EMPTY, &g));
  CHECK(g == MPI_GROUP_EMPTY);
  OK(MPI_Group_difference(world, world, &g));
  CHECK(g == MPI_GROUP_EMPTY);
  OK(MPI_Group_union(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY, &g));
  CHECK(g == MPI_GROUP_EMPTY);
  OK(MPI_Group_compare(g, MPI_GROUP_EMPTY, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_excl(world, 0, NULL, &g));
  OK(MPI_Group_compare(g, world, &result));
  CHECK(result == MPI_IDENT);
  MPI_Group_free(&g);
  CHECK_CLASS(MPI_Group_free(&none), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
  OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c));
  CHECK(c == MPI_COMM_NULL);
  OK(MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_EMPTY, 0, &c));
  CHECK(c == MPI_COMM_NULL);
  OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
  CHECK(c == MPI_COMM_NULL);
  OK(MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &c));
  CHECK(c == MPI_COMM_NULL);
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &c));
  CHECK(c == MPI_COMM_NULL);
  OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &c));
  MPI_Comm_free(&c);
  CHECK(c == MPI_COMM_NULL);
  CHECK_CLASS(MPI_Comm_free(&c), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_disconnect(&c), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_compare(MPI_COMM_NULL, MPI_COMM_WORLD, &result), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_size(MPI_COMM_NULL, &n), MPI_ERR_COMM);
  OK(MPI_Comm_get_parent(&c));
  CHECK(c == MPI_COMM_NULL);
  MPI_Group_free(&world);
  CHECK(world == MPI_GROUP_NULL);
}

/* 7.7 */
static void attributes(void)
{
  int key = MPI_KEYVAL_INVALID, flag, *value;
  CHECK_CLASS(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_get_attr(MPI_COMM_NULL, MPI_TAG_UB, &value, &flag), MPI_ERR_COMM);
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
  int kept = key;
  OK(MPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &flag));
  CHECK(!flag);
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL));
  OK(MPI_Comm_free_keyval(&key));
  CHECK(key == MPI_KEYVAL_INVALID);
  OK(MPI_Comm_get_attr(MPI_COMM_SELF, kept, &value, &flag)); /* freed, but still in use */
  CHECK(flag && value == NULL);
  OK(MPI_Comm_delete_attr(MPI_COMM_SELF, kept));
}

/* 9.5 to 9.7 */
static void topologies(void)
{
  MPI_Comm c, part;
  int n, dims[2] = {1, 1}, periods[2] = {0, 0}, remain[2] = {0, 0}, x = 1;
  OK(MPI_Topo_test(MPI_COMM_WORLD, &n));
  CHECK(n == MPI_UNDEFINED);
  CHECK_CLASS(MPI_Topo_test(MPI_COMM_NULL, &n), MPI_ERR_COMM);
  OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &c));
  CHECK((c == MPI_COMM_NULL) == (rank != 0));
  if (c != MPI_COMM_NULL) {
    OK(MPI_Topo_test(c, &n));
    CHECK(n == MPI_CART);
    OK(MPI_Cartdim_get(c, &n));
    CHECK(n == 0);
    OK(MPI_Cart_get(c, 0, NULL, NULL, NULL));
    n = 7;
    OK(MPI_Cart_rank(c, NULL, &n));
    CHECK(n == 0);
    OK(MPI_Cart_coords(c, 0, 0, NULL));
    OK(MPI_Neighbor_allgather(&x, 1, MPI_INT, NULL, 1, MPI_INT, c));
    OK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, c));
    MPI_Comm_free(&c);
  }
  OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &c));
  CHECK((c == MPI_COMM_NULL) == (rank != 0));
  if (c != MPI_COMM_NULL) {
    int from, to;
    OK(MPI_Cart_shift(c, 0, 1, &from, &to));
    CHECK(from == MPI_PROC_NULL && to == MPI_PROC_NULL);
    OK(MPI_Cart_sub(c, remain, &part));
    OK(MPI_Cartdim_get(part, &n));
    CHECK(n == 0);
    MPI_Comm_free(&part);
    MPI_Comm_free(&c);
  }
  OK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &c));
  CHECK(c == MPI_COMM_NULL);
  OK(MPI_Dims_create(1, 0, NULL));
  for (int weighted = 0; weighted < 2; weighted++) {
    int *w = weighted ? MPI_WEIGHTS_EMPTY : MPI_UNWEIGHTED, in, out, flag;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, w, 0, NULL, w, MPI_INFO_NULL, 0, &c));
    OK(MPI_Dist_graph_neighbors_count(c, &in, &out, &flag));
    CHECK(in == 0 && out == 0 && flag == weighted);
    OK(MPI_Dist_graph_neighbors(c, 0, NULL, w, 0, NULL, w));
    OK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, c));
    OK(MPI_Neighbor_allgatherv(NULL, 0, MPI_INT, NULL, NULL, NULL, MPI_INT, c));
    OK(MPI_Neighbor_alltoallw(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, c));
    MPI_Comm_free(&c);
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, w, MPI_INFO_NULL, 0, &c));
    MPI_Comm_free(&c);
  }
}

/* 10.2, 10.3, chapter 11 */
static void environment(void)
{
  MPI_Info info = MPI_INFO_NULL;
  MPI_Errhandler h = MPI_ERRHANDLER_NULL;
  char value[8] = "before";
  int n = 0, flag = 1;
  CHECK_CLASS(MPI_Info_free(&info), MPI_ERR_INFO);
  CHECK_CLASS(MPI_Info_get_nkeys(MPI_INFO_NULL, &n), MPI_ERR_INFO);
  OK(MPI_Info_create(&info));
  OK(MPI_Info_get_string(info, "none", &n, value, &flag));
  CHECK(!flag && strcmp(value, "before") == 0);
  OK(MPI_Info_set(info, "key", ""));
  n = sizeof value, flag = 0;
  OK(MPI_Info_get_string(info, "key", &n, value, &flag));
  CHECK(flag && n == 1 && value[0] == 0);
  OK(MPI_Info_set(info, "key", "longer"));
  n = 0;
  OK(MPI_Info_get_string(info, "key", &n, NULL, &flag)); /* how long is it? */
  CHECK(flag && n == 7);
  n = 3;
  OK(MPI_Info_get_string(info, "key", &n, value, &flag));
  CHECK(n == 7 && strcmp(value, "lo") == 0);
  OK(MPI_Info_get_valuelen(info, "key", &n, &flag));
  CHECK(flag && n == 6);
  CHECK_CLASS(MPI_Info_delete(info, "none"), MPI_ERR_INFO_NOKEY);
  CHECK_CLASS(MPI_Info_set(info, "", "x"), MPI_ERR_INFO_KEY);
  OK(MPI_Info_free(&info));
  CHECK(info == MPI_INFO_NULL);
  CHECK_CLASS(MPI_Errhandler_free(&h), MPI_ERR_ERRHANDLER);
  CHECK_CLASS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
  CHECK_CLASS(MPI_Comm_get_errhandler(MPI_COMM_NULL, &h), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Win_get_errhandler(MPI_WIN_NULL, &h), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Session_get_errhandler(MPI_SESSION_NULL, &h), MPI_ERR_SESSION);
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &h)); /* 14.7: the handler that files begin with */
  CHECK(h == MPI_ERRORS_RETURN);
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, h));
  OK(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_FILE));
  OK(MPI_Errhandler_free(&h));
  CHECK(h == MPI_ERRHANDLER_NULL);
  OK(MPI_Free_mem(NULL));
}

/* 13.2 to 13.5 */
static void windows(void)
{
  MPI_Win win = MPI_WIN_NULL;
  MPI_Request r;
  int x = 1, y = 2, z = 3, flag = 0;
  CHECK_CLASS(MPI_Win_free(&win), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
  OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&x, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, win));
  OK(MPI_Get(&x, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, win));
  OK(MPI_Accumulate(&x, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, MPI_SUM, win));
  OK(MPI_Get_accumulate(&x, 1, MPI_INT, &y, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, MPI_SUM, win));
  OK(MPI_Fetch_and_op(&x, &y, MPI_INT, MPI_PROC_NULL, 5, MPI_SUM, win));
  OK(MPI_Compare_and_swap(&x, &y, &z, MPI_INT, MPI_PROC_NULL, 5, win));
  OK(MPI_Put(NULL, 0, MPI_INT, rank, 0, 0, MPI_INT, win));
  OK(MPI_Get(NULL, 0, MPI_INT, rank, 0, 0, MPI_INT, win));
  OK(MPI_Accumulate(NULL, 0, MPI_INT, rank, 0, 0, MPI_INT, MPI_SUM, win));
  OK(MPI_Win_fence(0, win));
  CHECK(x == 1 && y == 2 && z == 3);
  OK(MPI_Win_lock_all(0, win));
  OK(MPI_Rput(&x, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, win, &r));
  OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
  OK(MPI_Rget(&x, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, win, &r));
  OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
  OK(MPI_Raccumulate(&x, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, MPI_SUM, win, &r));
  OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
  OK(MPI_Win_flush(MPI_PROC_NULL, win));
  OK(MPI_Win_flush_local(MPI_PROC_NULL, win));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
  OK(MPI_Put(&x, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, win));
  OK(MPI_Win_unlock(MPI_PROC_NULL, win));
  OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
  OK(MPI_Win_complete(win));
  OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
  OK(MPI_Win_test(win, &flag));
  CHECK(flag);
  OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
  OK(MPI_Win_wait(win));
  OK(MPI_Win_free(&win));
  CHECK(win == MPI_WIN_NULL);
}

/* 14.2 to 14.4 */
static void files(void)
{
  MPI_File f = MPI_FILE_NULL;
  MPI_Status st;
  MPI_Request r;
  MPI_Offset size_of;
  char path[] = "/tmp/spx-nothing-XXXXXX";
  int x = 7, fd = mkstemp(path), n;
  CHECK_CLASS(MPI_File_close(&f), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_get_size(MPI_FILE_NULL, &size_of), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_delete("/tmp/spx-nothing-is-here", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &f));
  OK(MPI_File_read(f, NULL, 0, MPI_INT, &st));
  OK(MPI_Get_count(&st, MPI_INT, &n));
  CHECK(n == 0);
  OK(MPI_File_read(f, &x, 1, MPI_INT, &st)); /* at the end */
  OK(MPI_Get_count(&st, MPI_INT, &n));
  CHECK(n == 0 && x == 7);
  OK(MPI_File_write_at(f, 0, NULL, 0, MPI_INT, &st));
  OK(MPI_File_write_all(f, NULL, 0, MPI_INT, &st));
  OK(MPI_File_iread(f, NULL, 0, MPI_INT, &r));
  OK(MPI_Wait(&r, &st));
  OK(MPI_File_preallocate(f, 0));
  OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_get_size(f, &size_of));
  CHECK(size_of == 0);
  OK(MPI_File_close(&f));
  CHECK(f == MPI_FILE_NULL);
  close(fd);
  unlink(path);
}

/* 12.3, chapter 15 */
static void sessions_and_tools(void)
{
  MPI_Session s = MPI_SESSION_NULL;
  int n, level, kinds, v, verbosity, bind, scope, length;
  MPI_T_enum e;
  MPI_Datatype type;
  CHECK_CLASS(MPI_Session_finalize(&s), MPI_ERR_SESSION);
  CHECK_CLASS(MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &n), MPI_ERR_SESSION);
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
  OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
  CHECK(n >= 2);
  length = 0;
  OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &length, NULL)); /* how long is it? */
  CHECK(length > 1);
  OK(MPI_Session_finalize(&s));
  CHECK(s == MPI_SESSION_NULL);
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
  OK(MPI_T_cvar_get_num(&kinds));
  if (kinds > 0) { /* 15.3.6: what is not wanted may be NULL */
    OK(MPI_T_cvar_get_info(0, NULL, NULL, &verbosity, &type, &e, NULL, NULL, &bind, &scope));
    OK(MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    length = 0;
    OK(MPI_T_cvar_get_info(0, NULL, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(length > 1);
  }
  OK(MPI_T_pvar_get_num(&kinds));
  if (kinds > 0) OK(MPI_T_pvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  OK(MPI_T_category_get_num(&kinds));
  if (kinds > 0) OK(MPI_T_category_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  CHECK(MPI_T_cvar_get_info(1 << 20, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_cvar_get_index("spx no such variable", &v) == MPI_T_ERR_INVALID_NAME);
  OK(MPI_T_finalize());
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  names();
  requests();
  no_process();
  no_data();
  groups();
  attributes();
  topologies();
  environment();
  windows();
  files();
  sessions_and_tools();
  MPI_Finalize();
  return check_status();
}
