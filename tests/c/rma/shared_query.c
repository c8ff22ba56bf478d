/* shared_query.c - MPI_Win_shared_query of windows of all flavors (MPI-5.0, 13.2.3): what can be reached by loads and stores, or size 0. */
// run: n=1,3
#include <stdlib.h>
#include "../check.h"

static int rank, size;

typedef struct {
  MPI_Aint size;
  int unit;
  char *base;
} segment;

static segment query(MPI_Win win, int of)
{
  segment s = {-1, -1, (char *)&rank};
  MPI_Aint size_c = -1, unit_c = -1;
  char *base_c;
  CHECK(MPI_Win_shared_query(win, of, &s.size, &s.unit, &s.base) == MPI_SUCCESS);
  CHECK(MPI_Win_shared_query_c(win, of, &size_c, &unit_c, &base_c) == MPI_SUCCESS);
  CHECK(size_c == s.size && unit_c == s.unit && base_c == s.base);
  CHECK((s.size == 0) == (s.base == NULL)); /* as MPI_Alloc_mem with size 0 */
  return s;
}

int main(int argc, char **argv)
{
  MPI_Win win;
  segment s;
  int *mine;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  int memory[10];
  MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  for (int i = 0; i < size; i++) {
    s = query(win, i);
    if (i == rank) CHECK(s.base == (char *)memory && s.size == (MPI_Aint)sizeof memory && s.unit == 4);
    if (i != rank) CHECK(s.size == 0 || s.size == (MPI_Aint)sizeof memory);
  }
  s = query(win, MPI_PROC_NULL);
  CHECK(s.size == (MPI_Aint)sizeof memory && s.unit == 4);
  CHECK_CLASS(MPI_Win_shared_query(win, size, &s.size, &s.unit, &s.base), MPI_ERR_RANK);
  MPI_Win_free(&win);

  MPI_Win_create(NULL, 0, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  for (int i = 0; i < size; i++) CHECK(query(win, i).size == 0);
  CHECK(query(win, MPI_PROC_NULL).size == 0);
  MPI_Win_free(&win);

  MPI_Comm near;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  for (int shared = 0; shared < 2; shared++) { /* the first process has none */
    MPI_Comm comm = shared ? near : MPI_COMM_WORLD;
    MPI_Group all, reached;
    int me, n, first = MPI_PROC_NULL;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Comm_group(comm, &all);
    MPI_Comm_group(near, &reached);
    MPI_Aint bytes = me == 0 ? 0 : 40;
    if (shared)
      MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, comm, &mine, &win);
    else
      MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, comm, &mine, &win);
    for (int i = 0; i < n; i++) {
      int there;
      MPI_Group_translate_ranks(all, 1, &i, reached, &there);
      s = query(win, i);
      CHECK(s.size == (i == 0 || there == MPI_UNDEFINED ? 0 : 40));
      CHECK(s.unit == 4 || there == MPI_UNDEFINED);
      if (i == me && i > 0) CHECK(s.base == (char *)mine);
      if (s.size && first < 0) first = i;
    }
    s = query(win, MPI_PROC_NULL);
    CHECK(s.size == (first < 0 ? 0 : 40) && s.base == (first < 0 ? NULL : query(win, first).base));
    MPI_Win_free(&win);
    MPI_Group_free(&all);
    MPI_Group_free(&reached);
  }
  MPI_Comm_free(&near);

  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Win_shared_query(win, rank, &s.size, &s.unit, &s.base), MPI_ERR_RMA_FLAVOR);
  MPI_Win_free(&win);
  MPI_Finalize();
  return check_status();
}
