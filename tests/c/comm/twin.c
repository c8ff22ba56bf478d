// Duplicates that are made without the engine: what it is asked about them later, and processes that have different things to copy.
//
// run: n=1,2,4
// run: n=16 timeout=60
#include <string.h>
#include "../check.h"

static int copied, deleted;

static int copy(MPI_Comm c, int keyval, void *extra, void *in, void *out, int *flag)
{
  (void)c, (void)keyval, (void)extra;
  *(void **)out = in;
  *flag = 1;
  copied++;
  return MPI_SUCCESS;
}

static int gone(MPI_Comm c, int keyval, void *value, void *extra)
{
  (void)c, (void)keyval, (void)value, (void)extra;
  deleted++;
  return MPI_SUCCESS;
}

static int rank, size;

/* All talk on c, and get the same sum. */
static void use(MPI_Comm c)
{
  int sum = 0, left = -1;
  CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c) == MPI_SUCCESS && sum == size * (size - 1) / 2);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &left, 1, MPI_INT, (rank + size - 1) % size, 1, c,
               MPI_STATUS_IGNORE);
  CHECK(left == (rank + size - 1) % size);
}

static int has_hint(MPI_Comm c)
{
  MPI_Info in;
  char value[16] = "";
  int n = sizeof value, found = 0;
  MPI_Comm_get_info(c, &in);
  MPI_Info_get_string(in, "mpi_assert_no_any_tag", &n, value, &found);
  MPI_Info_free(&in);
  return found && !strcmp(value, "true");
}

/* What only the engine knows. */
static void ask(MPI_Comm twin)
{
  MPI_Group a, b;
  MPI_Comm part, again;
  int relation = -1, n = -1;
  MPI_Comm_compare(twin, MPI_COMM_WORLD, &relation);
  CHECK(relation == MPI_CONGRUENT);
  MPI_Comm_group(twin, &a);
  MPI_Comm_group(MPI_COMM_WORLD, &b);
  MPI_Group_compare(a, b, &relation);
  CHECK(relation == MPI_IDENT);
  MPI_Group_free(&a);
  MPI_Group_free(&b);
  MPI_Comm_split(twin, rank % 2, rank, &part);
  MPI_Comm_size(part, &n);
  CHECK(n == (size + 1 - rank % 2) / 2);
  MPI_Comm_free(&part);
  MPI_Comm_dup(twin, &again); /* of one that the engine knows */
  use(again);
  MPI_Comm_free(&again);
  CHECK(!has_hint(twin));
}

/* Only some ranks have an attribute or a hint: each duplicates what it has. */
static void mixed(MPI_Comm twin, int keyval)
{
  MPI_Comm made, third;
  MPI_Info in;
  void *value = NULL;
  int found = -1, mine = rank % 2;
  if (mine) MPI_Comm_set_attr(twin, keyval, &size);
  MPI_Info_create(&in);
  MPI_Info_set(in, "mpi_assert_no_any_tag", "true");
  if (rank % 3 == 1) MPI_Comm_set_info(twin, in);
  MPI_Info_free(&in);
  copied = deleted = 0;
  MPI_Comm_dup(twin, &made);
  CHECK(copied == mine);
  MPI_Comm_get_attr(made, keyval, &value, &found);
  CHECK(found == mine && (!mine || value == &size));
  CHECK(has_hint(made) == (rank % 3 == 1));
  use(made);
  MPI_Comm_dup(made, &third);
  CHECK(has_hint(third) == (rank % 3 == 1));
  MPI_Comm_free(&third);
  MPI_Comm_free(&made);
  CHECK(deleted == 2 * mine);
}

int main(int argc, char **argv)
{
  MPI_Comm twin, of_cart, cart, self;
  int keyval, kind = 0, period = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 200; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    if (i % 50 == 0) use(twin);
    MPI_Comm_free(&twin);
    CHECK(twin == MPI_COMM_NULL);
  }
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  MPI_Comm_free(&self);
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  ask(twin);
  MPI_Comm_create_keyval(copy, gone, &keyval, NULL);
  mixed(twin, keyval);
  MPI_Cart_create(twin, 1, &size, &period, 0, &cart);
  MPI_Comm_dup(cart, &of_cart);
  MPI_Topo_test(of_cart, &kind);
  CHECK(kind == MPI_CART);
  use(of_cart);
  MPI_Comm_free(&of_cart);
  MPI_Comm_free(&cart);
  MPI_Comm_disconnect(&twin);
  MPI_Comm_free_keyval(&keyval);
  MPI_Finalize();
  return check_status();
}
