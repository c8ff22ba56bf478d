/* Wrong arguments of the datatype functions raise the right class and leave their results alone. */
// run: n=1
#include "typemap.h"

static void expect(int line, int code, int class)
{
  int got;
  MPI_Error_class(code, &got);
  if (got == class) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int len;
  MPI_Error_string(code, text, &len);
  fprintf(stderr, "errors.c:%d: class %d, want %d: %s\n", line, got, class, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define EXPECT(class, call) expect(__LINE__, call, class)

static void constructors(void)
{
  MPI_Datatype t = MPI_BYTE, two[2] = {MPI_INT, MPI_DATATYPE_NULL};
  int one[1] = {1}, bad[1] = {-1}, zero[1] = {0};
  MPI_Aint at[2] = {0, 8};
  int lens[2] = {1, 1};
  MPI_Count c = 1;
  EXPECT(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &t));
  EXPECT(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
  EXPECT(MPI_ERR_COUNT, MPI_Type_vector(-1, 1, 1, MPI_INT, &t));
  EXPECT(MPI_ERR_TYPE, MPI_Type_vector(1, 1, 1, MPI_DATATYPE_NULL, &t));
  EXPECT(MPI_ERR_COUNT, MPI_Type_create_hvector_c(-1, 1, 1, MPI_INT, &t));
  EXPECT(MPI_ERR_COUNT, MPI_Type_indexed(-1, one, one, MPI_INT, &t));
  EXPECT(MPI_ERR_TYPE, MPI_Type_create_struct(2, lens, at, two, &t));
  EXPECT(MPI_ERR_TYPE, MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 8, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_subarray(1, one, one, one, MPI_ORDER_C, MPI_INT, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_subarray(1, one, one, zero, 77, MPI_INT, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_subarray(1, bad, one, zero, MPI_ORDER_C, MPI_INT, &t));
  EXPECT(MPI_ERR_COUNT, MPI_Type_contiguous_c(INT64_MAX / 2, MPI_DOUBLE, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_hindexed(1, one, NULL, MPI_INT, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_indexed(1, NULL, one, MPI_INT, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_indexed_block(1, 1, NULL, MPI_INT, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_struct(1, one, at, NULL, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_subarray(-1, one, one, zero, MPI_ORDER_C, MPI_INT, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_subarray(1, NULL, one, zero, MPI_ORDER_C, MPI_INT, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_create_darray(1, 0, -2, one, one, one, one, MPI_ORDER_C, MPI_INT, &t));
  EXPECT(MPI_ERR_COUNT, MPI_Type_indexed_c(INT64_MAX, &c, &c, MPI_INT, &t));
  EXPECT(MPI_ERR_ARG, MPI_Type_contiguous(1, MPI_INT, NULL));
  EXPECT(MPI_ERR_TYPE, MPI_Type_contiguous(1, (MPI_Datatype)0x12345678, &t));
  EXPECT(MPI_ERR_TYPE, MPI_Type_contiguous(1, (MPI_Datatype)MPI_COMM_WORLD, &t));
  CHECK(t == MPI_BYTE);
}

static void lives(void)
{
  MPI_Datatype t = MPI_INT, gone, large;
  int n;
  EXPECT(MPI_ERR_TYPE, MPI_Type_free(&t));
  CHECK(t == MPI_INT);
  t = MPI_DATATYPE_NULL;
  EXPECT(MPI_ERR_TYPE, MPI_Type_free(&t));
  EXPECT(MPI_ERR_TYPE, MPI_Type_commit(&t));
  MPI_Type_contiguous(2, MPI_INT, &t);
  int buf[2] = {0}, pos = 0;
  EXPECT(MPI_ERR_TYPE, MPI_Pack(buf, 1, t, buf, sizeof buf, &pos, MPI_COMM_WORLD)); /* not committed */
  gone = t;
  MPI_Type_free(&t);
  CHECK(t == MPI_DATATYPE_NULL);
  EXPECT(MPI_ERR_TYPE, MPI_Type_size(gone, &n));
  EXPECT(MPI_ERR_TYPE, MPI_Type_free(&gone));
  MPI_Type_contiguous(2, MPI_INT, &t);
  EXPECT(MPI_ERR_TYPE, MPI_Type_size(gone, &n)); /* the slot is used again, the old handle is not */
  MPI_Type_free(&t);
  MPI_Type_vector_c(3, 1, 2, MPI_INT, &large);
  int na, nd, comb, ints[8];
  MPI_Datatype types[2];
  MPI_Aint addrs[2];
  EXPECT(MPI_ERR_TYPE, MPI_Type_get_envelope(large, &n, &na, &nd, &comb));
  EXPECT(MPI_ERR_TYPE, MPI_Type_get_contents(large, 8, 2, 2, ints, addrs, types));
  EXPECT(MPI_ERR_TYPE, MPI_Type_get_contents(MPI_INT, 8, 2, 2, ints, addrs, types));
  MPI_Type_free(&large);
  MPI_Type_vector(3, 1, 2, MPI_INT, &t);
  EXPECT(MPI_ERR_ARG, MPI_Type_get_contents(t, 2, 0, 1, ints, addrs, types));
  MPI_Type_free(&t);
}

static void packing(void)
{
  int in[4] = {1, 2, 3, 4}, pos = 0;
  char out[12];
  EXPECT(MPI_ERR_ARG, MPI_Pack(in, 4, MPI_INT, out, sizeof out, &pos, MPI_COMM_WORLD));
  CHECK(pos == 0);
  EXPECT(MPI_ERR_COUNT, MPI_Pack(in, -1, MPI_INT, out, sizeof out, &pos, MPI_COMM_WORLD));
  EXPECT(MPI_ERR_COMM, MPI_Pack(in, 1, MPI_INT, out, sizeof out, &pos, MPI_COMM_NULL));
  pos = 13;
  EXPECT(MPI_ERR_ARG, MPI_Pack(in, 1, MPI_INT, out, sizeof out, &pos, MPI_COMM_WORLD));
  pos = 4;
  EXPECT(MPI_ERR_TRUNCATE, MPI_Unpack(out, sizeof out, &pos, in, 3, MPI_INT, MPI_COMM_WORLD));
  MPI_Aint at = 0;
  EXPECT(MPI_ERR_ARG, MPI_Pack_external("native", in, 1, MPI_INT, out, sizeof out, &at));
  EXPECT(MPI_ERR_ARG, MPI_Pack_external("external32", in, 4, MPI_INT, out, sizeof out, &at));
}

/* What does not fit into an int is MPI_UNDEFINED there. */
static void too_large(void)
{
  MPI_Datatype t;
  int n;
  MPI_Count c, lb, extent;
  MPI_Type_contiguous_c(3000000000, MPI_INT, &t);
  MPI_Type_size(t, &n);
  CHECK(n == MPI_UNDEFINED);
  MPI_Type_size_c(t, &c);
  CHECK(c == 12000000000);
  MPI_Type_get_extent_c(t, &lb, &extent);
  CHECK(lb == 0 && extent == 12000000000);
  MPI_Type_commit(&t);
  MPI_Pack_size(2, t, MPI_COMM_WORLD, &n);
  CHECK(n == MPI_UNDEFINED);
  MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  constructors();
  lives();
  packing();
  too_large();
  MPI_Finalize();
  return 0;
}
