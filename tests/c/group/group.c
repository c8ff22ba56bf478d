/* Groups (MPI-5.0, 7.3) through the C interface; the set algebra itself is tested in core/group. */
// run: n=4
#include "../check.h"

int main(int argc, char **argv)
{
  MPI_Group all, odd, rest, both, none, again;
  int rank, size, n, r, result, ranks[] = {3, 1}, out[3], triple[1][3] = {{3, 1, -2}}, bad[1][3] = {{0, 3, 0}};
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_rank(all, &r);
  MPI_Group_size(all, &n);
  CHECK(r == rank && n == size);
  MPI_Group_incl(all, 2, ranks, &odd);
  MPI_Group_rank(odd, &r);
  CHECK(r == (rank == 3 ? 0 : rank == 1 ? 1 : MPI_UNDEFINED));
  MPI_Group_range_incl(all, 1, triple, &again);
  MPI_Group_compare(odd, again, &result);
  CHECK(result == MPI_IDENT);
  MPI_Group_excl(all, 2, ranks, &rest);
  MPI_Group_union(odd, rest, &both);
  MPI_Group_compare(both, all, &result);
  CHECK(result == MPI_SIMILAR);
  MPI_Group_difference(odd, all, &none);
  CHECK(none == MPI_GROUP_EMPTY);
  int ask[] = {0, 3, MPI_PROC_NULL};
  MPI_Group_translate_ranks(all, 3, ask, odd, out);
  CHECK(out[0] == MPI_UNDEFINED && out[1] == 0 && out[2] == MPI_PROC_NULL);
  MPI_Group_translate_ranks(all, 0, NULL, odd, NULL);
  int wrong[] = {0, 0};
  CHECK_CLASS(MPI_Group_incl(all, 2, wrong, &none), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_incl(all, -1, ranks, &none), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_incl(all, 2, NULL, &none), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_incl(MPI_GROUP_NULL, 2, ranks, &none), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_range_incl(all, 1, bad, &none), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_translate_ranks(odd, 1, &ask[1], all, out), MPI_ERR_RANK);
  again = MPI_GROUP_EMPTY;
  CHECK_CLASS(MPI_Group_free(&again), MPI_SUCCESS);
  CHECK(again == MPI_GROUP_NULL);
  CHECK_CLASS(MPI_Group_free(&again), MPI_ERR_GROUP);
  MPI_Group_free(&all);
  MPI_Group_free(&odd);
  MPI_Group_free(&rest);
  MPI_Group_free(&both);
  MPI_Finalize();
  return check_status();
}
