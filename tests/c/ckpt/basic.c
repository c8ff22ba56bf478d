/* Saving, committing and restoring on the same processes: regions of several datatypes, versions that are kept and that go, going back to an older
 * one; parts of others' regions; and every call with something wrong. */
// run: n=1,2,5
// run: n=4 args="files" timeout=40
// run: n=3 args="files only" timeout=40
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { N = 1000, COLUMN = 7, SCALAR = 9, NEVER = 77 };

static int me, size;
static double grid[N][4], before[N][4];
static int step;

static void fill(int version)
{
  for (int i = 0; i < N; i++)
    for (int k = 0; k < 4; k++) grid[i][k] = version * 1e6 + me * 1e4 + i + k * 0.25;
  step = version;
}

/* The second column is as version left it, and nothing else has been touched. */
static int is(int version)
{
  int good = step == version;
  for (int i = 0; i < N; i++)
    for (int k = 0; k < 4; k++)
      good = good && grid[i][k] == (k == 1 ? version * 1e6 + me * 1e4 + i + 0.25 : before[i][k]);
  return good;
}

static void save(MPIX_Checkpoint c, int version)
{
  fill(version);
  MUST(MPIX_Checkpoint_save(c, version));
  MUST(MPIX_Checkpoint_commit(c));
}

static int restore(MPIX_Checkpoint c, int version)
{
  int restored = -1;
  fill(999);
  memcpy(before, grid, sizeof grid);
  step = -1;
  MUST(MPIX_Checkpoint_restore(c, version, &restored));
  return restored;
}

/* What stands in versions, newest first. */
static void has(MPIX_Checkpoint c, int n, int first, int second)
{
  int v[4] = {-1, -1, -1, -1}, num = -1;
  MUST(MPIX_Checkpoint_get_versions(c, 4, v, &num));
  CHECK(num == n && (n < 1 || v[0] == first) && (n < 2 || v[1] == second));
}

static void wrong(MPIX_Checkpoint c, MPI_Datatype column)
{
  int v, n;
  double d;
  MPI_Count bytes;
  MPI_Info info;
  MPIX_Checkpoint none;
  CHECK_CLASS(MPIX_Checkpoint_commit(c), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_register(c, -1, grid, 1, column), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_register(c, 1, grid, -1, column), MPI_ERR_COUNT);
  CHECK_CLASS(MPIX_Checkpoint_register(c, 1, grid, 1, MPI_DATATYPE_NULL), MPI_ERR_TYPE);
  CHECK_CLASS(MPIX_Checkpoint_unregister(c, NEVER), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_save(c, -1), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_save(MPIX_CHECKPOINT_NULL, 1), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_restore(c, NEVER, &v), MPIX_ERR_CHECKPOINT);
  CHECK_CLASS(MPIX_Checkpoint_delete(c, NEVER), MPIX_ERR_CHECKPOINT);
  CHECK_CLASS(MPIX_Checkpoint_fetch(c, 0, SCALAR, 0, &v, 1, MPI_INT), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_get_bytes(c, 0, SCALAR, &bytes), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_restore_end(c), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_get_versions(c, -1, &v, &n), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_get_versions(c, 1, NULL, &n), MPI_ERR_ARG);
  MUST(MPI_Info_create(&info));
  MUST(MPI_Info_set(info, "mpix_copies", "many"));
  CHECK_CLASS(MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &none), MPI_ERR_INFO_VALUE);
  MUST(MPI_Info_set(info, "mpix_copies", "1"));
  MUST(MPI_Info_set(info, "mpix_name", "a/b"));
  CHECK_CLASS(MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &none), MPI_ERR_INFO_VALUE);
  MUST(MPI_Info_delete(info, "mpix_name"));
  MUST(MPI_Info_set(info, "mpix_directory", "/nowhere/at/all"));
  CHECK_CLASS(MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &none), MPI_ERR_NO_SUCH_FILE);
  MUST(MPI_Info_delete(info, "mpix_directory"));
  if (size > 1) {
    MUST(MPI_Info_set(info, "mpix_versions", me ? "1" : "3"));
    CHECK_CLASS(MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &none), MPI_ERR_INFO_VALUE);
    CHECK_CLASS(MPIX_Checkpoint_save(c, 1000 + me), MPI_SUCCESS);
    CHECK_CLASS(MPIX_Checkpoint_commit(c), MPI_ERR_ARG); /* not the same at all */
  }
  CHECK(none == MPIX_CHECKPOINT_NULL);
  MUST(MPI_Info_free(&info));
  MUST(MPIX_Checkpoint_restore_begin(c, MPIX_CHECKPOINT_NEWEST, &v, &n));
  CHECK_CLASS(MPIX_Checkpoint_save(c, 2000), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_delete(c, v), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Checkpoint_fetch(c, n, SCALAR, 0, &v, 1, MPI_INT), MPI_ERR_RANK);
  CHECK_CLASS(MPIX_Checkpoint_fetch(c, -1, SCALAR, 0, &v, 1, MPI_INT), MPI_ERR_RANK);
  CHECK_CLASS(MPIX_Checkpoint_fetch(c, 0, NEVER, 0, &v, 1, MPI_INT), MPIX_ERR_CHECKPOINT);
  CHECK_CLASS(MPIX_Checkpoint_fetch(c, 0, -1, 0, &v, 1, MPI_INT), MPIX_ERR_CHECKPOINT);
  CHECK_CLASS(MPIX_Checkpoint_fetch(c, 0, SCALAR, 1, &v, 1, MPI_INT), MPI_ERR_TRUNCATE);
  CHECK_CLASS(MPIX_Checkpoint_fetch(c, 0, COLUMN, 8 * (N - 1), &d, 2, MPI_DOUBLE), MPI_ERR_TRUNCATE);
  CHECK_CLASS(MPIX_Checkpoint_fetch(c, 0, COLUMN, -1, &d, 1, MPI_DOUBLE), MPI_ERR_TRUNCATE);
  MUST(MPIX_Checkpoint_get_bytes(c, 0, COLUMN, &bytes));
  CHECK(bytes == N * 8);
  MUST(MPIX_Checkpoint_get_bytes(c, 0, NEVER, &bytes));
  CHECK(bytes == MPI_UNDEFINED);
  MUST(MPIX_Checkpoint_restore_end(c));
}

/* Every process gets two elements of every other. */
static void of_others(MPIX_Checkpoint c, int version)
{
  int v, n, *steps = calloc((size_t)size, sizeof *steps);
  double(*d)[2] = calloc((size_t)size, sizeof *d);
  MUST(MPIX_Checkpoint_restore_begin(c, version, &v, &n));
  CHECK(v == version && n == size);
  for (int r = 0; r < size; r++) {
    MUST(MPIX_Checkpoint_fetch(c, r, COLUMN, 8 * (10 + r), d[r], 2, MPI_DOUBLE));
    MUST(MPIX_Checkpoint_fetch(c, r, SCALAR, 0, &steps[r], 1, MPI_INT));
  }
  MUST(MPIX_Checkpoint_restore_end(c));
  for (int r = 0; r < size; r++)
    CHECK(steps[r] == v && d[r][0] == v * 1e6 + r * 1e4 + 10 + r + 0.25 && d[r][1] == d[r][0] + 1);
  free(steps);
  free(d);
}

int main(int argc, char **argv)
{
  MPIX_Checkpoint c;
  MPI_Datatype column;
  MPI_Info info = MPI_INFO_NULL;
  char dir[] = "spx-ckpt-XXXXXX", none[1];
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1) {
    MPI_Info_create(&info);
    if (me == 0) CHECK(mkdtemp(dir) != NULL);
    MPI_Bcast(dir, sizeof dir, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Info_set(info, "mpix_directory", dir);
    if (argc > 2) MPI_Info_set(info, "mpix_copies", "0");
  }
  MUST(MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &c));
  has(c, 0, 0, 0);
  MPI_Type_vector(N, 1, 4, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MUST(MPIX_Checkpoint_register(c, COLUMN, &grid[0][1], 1, column));
  MUST(MPIX_Checkpoint_register(c, SCALAR, none, 1, MPI_CHAR));
  MUST(MPIX_Checkpoint_register(c, SCALAR, &step, 1, MPI_INT)); /* in place of it */
  MUST(MPIX_Checkpoint_register(c, NEVER, none, 0, MPI_CHAR));
  MUST(MPIX_Checkpoint_unregister(c, NEVER));
  save(c, 3);
  has(c, 1, 3, 0);
  CHECK(restore(c, MPIX_CHECKPOINT_NEWEST) == 3 && is(3));
  wrong(c, column);
  save(c, 5);
  save(c, 8);
  has(c, 2, 8, 5); /* 3 has gone */
  CHECK_CLASS(MPIX_Checkpoint_save(c, 8), MPI_ERR_ARG);
  MUST(MPIX_Checkpoint_save(c, 9)); /* and not committed: replaced by the next */
  save(c, 11);
  has(c, 2, 11, 8);
  of_others(c, 11);
  CHECK(restore(c, 8) == 8 && is(8));
  has(c, 1, 8, 0); /* what is later has gone */
  save(c, 11);
  CHECK(restore(c, MPIX_CHECKPOINT_NEWEST) == 11 && is(11));
  MUST(MPIX_Checkpoint_delete(c, 11));
  has(c, 1, 8, 0);
  MPI_Type_free(&column); /* what is registered keeps it */
  CHECK(restore(c, MPIX_CHECKPOINT_NEWEST) == 8 && is(8));
  MUST(MPIX_Checkpoint_register(c, NEVER, none, 1, MPI_CHAR));
  int v;
  CHECK_CLASS(MPIX_Checkpoint_restore(c, 8, &v), MPIX_ERR_CHECKPOINT); /* it was not registered then */
  MUST(MPIX_Checkpoint_unregister(c, NEVER));
  if (argc > 1) { /* the files are there for who comes later */
    MUST(MPIX_Checkpoint_free(&c));
    MUST(MPIX_Checkpoint_create(MPI_COMM_WORLD, info, &c));
    MUST(MPIX_Checkpoint_register(c, SCALAR, &step, 1, MPI_INT));
    has(c, 1, 8, 0);
    step = 0;
    MUST(MPIX_Checkpoint_restore(c, 8, &v));
    CHECK(step == 8);
    MUST(MPIX_Checkpoint_delete(c, 8));
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) CHECK(rmdir(dir) == 0); /* nothing is left in it */
    MPI_Info_free(&info);
  }
  MUST(MPIX_Checkpoint_free(&c));
  CHECK(c == MPIX_CHECKPOINT_NULL);
  CHECK_CLASS(MPIX_Checkpoint_free(&c), MPI_ERR_ARG);
  MPI_Finalize();
  return check_status();
}
