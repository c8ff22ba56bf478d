/* Creation of intracommunicators (MPI-5.0, 7.4.2): groups, ranks, isolation of contexts, use after a handle was freed. */
// run: n=1,2,3,4,7
#include "../check.h"
#include <string.h>

static int rank, size;

/* Every member hears of every other: a ring, once around. */
static void usable(MPI_Comm c)
{
  int r, n, token = -1;
  MPI_Comm_rank(c, &r);
  MPI_Comm_size(c, &n);
  MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % n, 5, &token, 1, MPI_INT, (r + n - 1) % n, 5, c, MPI_STATUS_IGNORE);
  CHECK(token == (r + n - 1) % n);
}

static void duplicates(void)
{
  MPI_Comm a, b;
  int result, n = -1;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_dup(a, &b);
  MPI_Comm_compare(a, b, &result);
  CHECK(result == MPI_CONGRUENT);
  MPI_Comm_compare(a, a, &result);
  CHECK(result == MPI_IDENT);
  MPI_Comm_compare(MPI_COMM_SELF, a, &result);
  CHECK(result == (size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL));
  MPI_Comm_get_name(a, name, &n);
  CHECK(n == 0 && name[0] == 0);
  MPI_Comm_get_name(MPI_COMM_WORLD, name, &n);
  CHECK(n == 14 && strcmp(name, "MPI_COMM_WORLD") == 0);
  usable(b);
  /* Messages of a and b do not mix, whatever their order. */
  int x = 1, y = 2, gx = 0, gy = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Request q[4];
  MPI_Isend(&x, 1, MPI_INT, to, 0, a, &q[0]);
  MPI_Isend(&y, 1, MPI_INT, to, 0, b, &q[1]);
  MPI_Irecv(&gy, 1, MPI_INT, from, 0, b, &q[2]);
  MPI_Irecv(&gx, 1, MPI_INT, from, 0, a, &q[3]);
  MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
  CHECK(gx == 1 && gy == 2);
  MPI_Comm_free(&a);
  CHECK(a == MPI_COMM_NULL);
  MPI_Comm_free(&b);
}

static void splits(void)
{
  MPI_Comm c;
  int r, n;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &c);
  MPI_Comm_rank(c, &r);
  MPI_Comm_size(c, &n);
  int members = (size + 1 - rank % 2) / 2;
  CHECK(n == members && r == members - 1 - rank / 2);
  usable(c);
  MPI_Comm_free(&c);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 3, 0, &c);
  CHECK((c == MPI_COMM_NULL) == (rank == 0));
  if (c != MPI_COMM_NULL) {
    usable(c);
    MPI_Comm_free(&c);
  }
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c);
  MPI_Comm_size(c, &n);
  CHECK(n >= 1 && n <= size);
  usable(c);
  MPI_Comm_free(&c);
}

static void subsets(void)
{
  MPI_Group all, mine;
  MPI_Comm c;
  int halves[2][3] = {{0, (size - 1) / 2 * 2, 2}, {1, size > 1 ? 1 + (size - 2) / 2 * 2 : 1, 2}}, r, n;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_range_incl(all, 1, &halves[rank % 2], &mine); /* two disjoint groups in one call */
  MPI_Comm_create(MPI_COMM_WORLD, mine, &c);
  MPI_Comm_rank(c, &r);
  CHECK(r == rank / 2);
  usable(c);
  MPI_Comm_free(&c);
  MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c);
  CHECK(c == MPI_COMM_NULL);
  if (rank % 2 == 0) { /* only the members call */
    MPI_Comm_create_group(MPI_COMM_WORLD, mine, 7, &c);
    MPI_Comm_size(c, &n);
    CHECK(n == (size + 1) / 2);
    usable(c);
    MPI_Comm_free(&c);
  }
  MPI_Group_free(&mine);
  MPI_Group_free(&all);
}

/* MPI_Comm_free only marks: what is pending completes. */
static void freed_while_pending(void)
{
  MPI_Comm c;
  MPI_Request q[2];
  int out = rank, in = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 1, c, &q[0]);
  MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 1, c, &q[1]);
  MPI_Comm_free(&c);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  CHECK(in == (rank + size - 1) % size);
}

static void hints(void)
{
  MPI_Info in, out;
  MPI_Comm c;
  char value[16];
  int flag, len = sizeof value;
  MPI_Info_create(&in);
  MPI_Info_set(in, "mpi_assert_no_any_tag", "true");
  MPI_Info_set(in, "nobody knows this", "x");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, in, &c);
  MPI_Comm_get_info(c, &out);
  MPI_Info_get_string(out, "mpi_assert_no_any_tag", &len, value, &flag);
  CHECK(flag && strcmp(value, "true") == 0 && len == 5);
  MPI_Info_get_string(out, "nobody knows this", &len, value, &flag);
  CHECK(!flag);
  MPI_Info_free(&in);
  MPI_Info_free(&out);
  MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  duplicates();
  splits();
  subsets();
  freed_while_pending();
  hints();
  MPI_Finalize();
  return check_status();
}
