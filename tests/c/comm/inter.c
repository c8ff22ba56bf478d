/* Intercommunicators (MPI-5.0, 7.6): creation, messages, duplicates, split, create, merge. */
// run: n=2,3,6,9
#include "../check.h"

static int rank, size;

static MPI_Comm halves(MPI_Comm *local)
{
  MPI_Comm inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, local);
  /* The leaders: the last of the even ranks, the first of the odd ones. */
  int evens = (size + 1) / 2, leader = rank % 2 ? 0 : evens - 1, remote = rank % 2 ? 2 * (evens - 1) : 1;
  MPI_Intercomm_create(*local, leader, MPI_COMM_WORLD, remote, 99, &inter);
  return inter;
}

/* Everybody tells everybody on the other side who it is. */
static void usable(MPI_Comm c)
{
  int n, flag, me, mine[1], got;
  MPI_Comm_test_inter(c, &flag);
  CHECK(flag);
  MPI_Comm_remote_size(c, &n);
  MPI_Comm_rank(c, &me);
  mine[0] = me;
  for (int k = 0; k < n; k++) {
    MPI_Request q;
    MPI_Status st;
    MPI_Isend(mine, 1, MPI_INT, k, 3, c, &q);
    MPI_Recv(&got, 1, MPI_INT, k, 3, c, &st);
    CHECK(got == k && st.MPI_SOURCE == k);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  }
}

static void groups(MPI_Comm c)
{
  MPI_Group mine, theirs, both;
  int n, m, k;
  MPI_Comm_group(c, &mine);
  MPI_Comm_remote_group(c, &theirs);
  MPI_Group_size(mine, &n);
  MPI_Group_size(theirs, &m);
  CHECK(n + m == size && n == (rank % 2 ? size / 2 : (size + 1) / 2));
  MPI_Group_intersection(mine, theirs, &both);
  MPI_Group_size(both, &k);
  CHECK(k == 0 && both == MPI_GROUP_EMPTY);
  MPI_Group_free(&both);
  MPI_Group_free(&mine);
  MPI_Group_free(&theirs);
}

static void merged(MPI_Comm c)
{
  MPI_Comm all;
  int r, result;
  MPI_Intercomm_merge(c, rank % 2 == 0, &all); /* even ranks last */
  MPI_Comm_rank(all, &r);
  CHECK(r == (rank % 2 ? rank / 2 : size / 2 + rank / 2));
  MPI_Comm_compare(all, MPI_COMM_WORLD, &result);
  CHECK(result == MPI_SIMILAR);
  MPI_Comm_compare(all, c, &result);
  CHECK(result == MPI_UNEQUAL);
  MPI_Comm_free(&all);
}

static void parts(MPI_Comm c)
{
  MPI_Comm p;
  MPI_Group mine, one;
  int n, zero = 0;
  MPI_Comm_split(c, rank / 2 % 2, 0, &p); /* a color that only one side has gives nothing */
  int mates = 0;
  for (int k = 0; k < size; k++) mates += k / 2 % 2 == rank / 2 % 2 && k % 2 != rank % 2;
  CHECK((p == MPI_COMM_NULL) == (mates == 0));
  if (p != MPI_COMM_NULL) {
    MPI_Comm_remote_size(p, &n);
    CHECK(n == mates);
    usable(p);
    MPI_Comm_free(&p);
  }
  MPI_Comm_group(c, &mine);
  MPI_Group_incl(mine, 1, &zero, &one);
  MPI_Comm_create(c, one, &p);
  CHECK((p == MPI_COMM_NULL) == (rank > 1));
  if (p != MPI_COMM_NULL) {
    usable(p);
    MPI_Comm_free(&p);
  }
  MPI_Comm_create(c, rank % 2 ? one : MPI_GROUP_EMPTY, &p);
  CHECK(p == MPI_COMM_NULL);
  MPI_Group_free(&one);
  MPI_Group_free(&mine);
}

int main(int argc, char **argv)
{
  MPI_Comm local, inter, dup, idup;
  MPI_Request q;
  int result;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  inter = halves(&local);
  usable(inter);
  groups(inter);
  MPI_Comm_dup(inter, &dup);
  MPI_Comm_compare(inter, dup, &result);
  CHECK(result == MPI_CONGRUENT);
  usable(dup);
  MPI_Comm_idup(dup, &idup, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  usable(idup);
  merged(idup);
  parts(dup);
  MPI_Comm_free(&idup);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&local);
  MPI_Finalize();
  return check_status();
}
