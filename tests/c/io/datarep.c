// run: n=1,2
/* Data representations: external32 byte by byte, and one of the user's that stores ints as 8 bytes with all bits turned; its
 * functions may leave by longjmp. MPI-5.0, 15.5. */
#include "file.h"
#include <setjmp.h>
#include <stddef.h>

static int calls, leave;
static jmp_buf out;

static int extent(MPI_Datatype t, MPI_Aint *e, void *extra)
{
  CHECK(extra == &calls);
  CHECK(t == MPI_INT);
  *e = 8;
  return MPI_SUCCESS;
}

static int reading(void *user, MPI_Datatype t, int count, void *file, MPI_Offset position, void *extra)
{
  (void)t, (void)extra;
  CHECK(position == 0);
  calls++;
  for (int i = 0; i < count; i++) ((int *)user)[i] = (int)~((long long *)file)[i];
  return MPI_SUCCESS;
}

static int writing(void *user, MPI_Datatype t, int count, void *file, MPI_Offset position, void *extra)
{
  (void)t, (void)extra;
  CHECK(position == 0);
  calls++;
  if (leave == 1) longjmp(out, 1);
  if (leave == 2) return MPI_ERR_OTHER;
  for (int i = 0; i < count; i++) ((long long *)file)[i] = ~(long long)((int *)user)[i];
  return MPI_SUCCESS;
}

static void of_the_user(MPI_File f)
{
  int a[4] = {1, 2, rank, -4}, b[5] = {0};
  MPI_Status st;
  MPI_Datatype pair;
  MPI_Aint e;
  MPI_Offset at;
  OK(MPI_Register_datarep("turned", reading, writing, extent, &calls));
  CHECK_CLASS(MPI_Register_datarep("turned", reading, writing, extent, &calls), MPI_ERR_DUP_DATAREP);
  CHECK_CLASS(MPI_Register_datarep("native", reading, writing, extent, &calls), MPI_ERR_DUP_DATAREP);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  OK(MPI_File_set_view(f, rank * 32, MPI_INT, pair, "turned", MPI_INFO_NULL));
  OK(MPI_File_get_type_extent(f, pair, &e));
  CHECK(e == 16);
  MPI_Type_free(&pair);
  OK(MPI_File_write_all(f, a, 4, MPI_INT, &st));
  CHECK(count_of(&st, MPI_INT) == 4);
  OK(MPI_File_get_position(f, &at));
  CHECK(at == 4);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) {
    OK(MPI_File_read_at(f, 1, b, 5, MPI_INT, &st));
    CHECK(count_of(&st, MPI_INT) == 3);
    CHECK(b[0] == 2 && b[1] == rank && b[2] == -4 && b[3] == 0);
    CHECK(calls == 2);
  }
  leave = 2;
  CHECK_CLASS(MPI_File_write_at(f, 0, a, 4, MPI_INT, &st), MPI_ERR_CONVERSION);
  leave = 1;
  if (!setjmp(out)) {
    MPI_File_write_at(f, 0, a, 4, MPI_INT, &st);
    CHECK(!"came back");
  }
  leave = 0;
}

static void as_it_stands(MPI_File f)
{
  long long raw[4];
  MPI_Offset at;
  char name[MPI_MAX_DATAREP_STRING];
  MPI_Datatype etype, filetype;
  OK(MPI_File_get_view(f, &at, &etype, &filetype, name));
  CHECK(at == rank * 32 && etype == MPI_INT && strcmp(name, "turned") == 0);
  CHECK(filetype != MPI_INT);
  MPI_Type_free(&filetype);
  OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_read_at(f, rank * 32, raw, 4, MPI_LONG_LONG, MPI_STATUS_IGNORE));
  CHECK(raw[0] == ~1ll && raw[2] == ~(long long)rank && raw[3] == ~-4ll);
}

typedef struct {
  char c;
  int i;
  double d;
} mixed;

static void external32(MPI_File f)
{
  mixed x[3], y[3];
  memset(x, 0, sizeof x);
  memset(y, 0, sizeof y);
  MPI_Aint e, disps[3] = {offsetof(mixed, c), offsetof(mixed, i), offsetof(mixed, d)};
  int ones[3] = {1, 1, 1};
  MPI_Datatype types[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE}, t;
  MPI_Status st;
  for (int i = 0; i < 3; i++) {
    x[i].c = (char)('a' + i);
    x[i].i = 0x01020304 + i;
    x[i].d = 1.0 + i;
  }
  MPI_Type_create_struct(3, ones, disps, types, &t);
  MPI_Type_commit(&t);
  OK(MPI_File_set_view(f, rank * 100, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
  OK(MPI_File_get_type_extent(f, MPI_LONG_DOUBLE, &e));
  CHECK(e == 16);
  OK(MPI_File_write(f, x, 3, t, &st));
  CHECK(count_of(&st, t) == 3);
  OK(MPI_File_read_at(f, 0, y, 2, t, &st));
  CHECK(count_of(&st, t) == 2);
  CHECK(memcmp(y, x, 2 * sizeof x[0]) == 0);
  OK(MPI_File_set_view(f, rank * 100, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  unsigned char raw[13];
  const unsigned char want[13] = {'b', 1, 2, 3, 5, 0x40, 0, 0, 0, 0, 0, 0, 0};
  OK(MPI_File_read_at(f, 13, raw, 13, MPI_BYTE, &st));
  CHECK(memcmp(raw, want, 13) == 0);
  MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
  start(&argc, &argv);
  MPI_File f = open_new(test_file("datarep"), MPI_INFO_NULL);
  of_the_user(f);
  as_it_stands(f);
  OK(MPI_File_set_size(f, 0));
  external32(f);
  OK(MPI_File_close(&f));
  MPI_Finalize();
  return check_status();
}
