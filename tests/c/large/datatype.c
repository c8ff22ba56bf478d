/* Datatypes of more than 2^31 elements or bytes: constructors, sizes, contents, packing. The small forms give MPI_UNDEFINED for
 * what does not fit an int. MPI-5.0 5.1, 5.2, 5.3 and 6.9.7. */
// run: n=1 args.few="constructors,nested,statuses" timeout=120 alone=1
#define _GNU_SOURCE
#include "large.h"

#define BIG ((MPI_Count)1 << 33)

/* size, lower bound and extent, by every form. */
static void check_type(MPI_Datatype t, MPI_Count size, MPI_Count lb, MPI_Count extent)
{
  MPI_Count c = -1, d = -1;
  MPI_Aint a = -1, b = -1;
  int n = -1;
  CHECK(MPI_Type_size_c(t, &c) == MPI_SUCCESS && c == size);
  CHECK(MPI_Type_size_x(t, &c) == MPI_SUCCESS && c == size);
  CHECK(MPI_Type_size(t, &n) == MPI_SUCCESS && n == (size > INT32_MAX ? MPI_UNDEFINED : (int)size));
  CHECK(MPI_Type_get_extent_c(t, &c, &d) == MPI_SUCCESS && c == lb && d == extent);
  CHECK(MPI_Type_get_extent_x(t, &c, &d) == MPI_SUCCESS && c == lb && d == extent);
  CHECK(MPI_Type_get_extent(t, &a, &b) == MPI_SUCCESS && a == lb && b == extent);
  CHECK(MPI_Type_commit(&t) == MPI_SUCCESS);
}

static void check_contents(MPI_Datatype t, int combiner, int counts, const MPI_Count *values)
{
  MPI_Count ints, addresses, large, types, got[16];
  MPI_Datatype old[4];
  MPI_Aint at[16];
  int numbers[16], which;
  CHECK(MPI_Type_get_envelope_c(t, &ints, &addresses, &large, &types, &which) == MPI_SUCCESS);
  CHECK(which == combiner && large == counts);
  CHECK(MPI_Type_get_contents_c(t, ints, addresses, large, types, numbers, at, got, old) == MPI_SUCCESS);
  for (int i = 0; i < counts; i++) CHECK(got[i] == values[i]);
}

static void constructors(void)
{
  MPI_Datatype t;
  MPI_Type_contiguous_c(BIG, MPI_INT, &t);
  check_type(t, 4 * BIG, 0, 4 * BIG);
  check_contents(t, MPI_COMBINER_CONTIGUOUS, 1, (MPI_Count[]){BIG});
  MPI_Type_free(&t);

  MPI_Type_vector_c(BIG, 2, 3, MPI_BYTE, &t);
  check_type(t, 2 * BIG, 0, 3 * BIG - 1);
  check_contents(t, MPI_COMBINER_VECTOR, 3, (MPI_Count[]){BIG, 2, 3});
  MPI_Type_free(&t);

  MPI_Type_create_hvector_c(3, BIG, 5 * BIG, MPI_BYTE, &t);
  check_type(t, 3 * BIG, 0, 11 * BIG);
  check_contents(t, MPI_COMBINER_HVECTOR, 3, (MPI_Count[]){3, BIG, 5 * BIG});
  MPI_Type_free(&t);

  MPI_Count lengths[2] = {BIG, 1}, places[2] = {1, 2 * BIG};
  MPI_Datatype parts[2] = {MPI_BYTE, MPI_INT};
  MPI_Type_indexed_c(2, lengths, places, MPI_SHORT, &t);
  check_type(t, 2 * BIG + 2, 2, 4 * BIG);
  MPI_Type_free(&t);
  MPI_Type_create_hindexed_c(2, lengths, places, MPI_SHORT, &t);
  check_type(t, 2 * BIG + 2, 1, 2 * BIG + 2); /* a multiple of the alignment of short */
  MPI_Type_free(&t);
  MPI_Type_create_indexed_block_c(2, BIG, places, MPI_BYTE, &t);
  check_type(t, 2 * BIG, 1, 3 * BIG - 1);
  MPI_Type_free(&t);
  MPI_Type_create_hindexed_block_c(2, BIG, places, MPI_BYTE, &t);
  check_type(t, 2 * BIG, 1, 3 * BIG - 1);
  MPI_Type_free(&t);
  places[0] = 0;
  MPI_Type_create_struct_c(2, lengths, places, parts, &t);
  check_type(t, BIG + 4, 0, 2 * BIG + 4);
  MPI_Type_free(&t);
  MPI_Type_create_resized_c(MPI_INT, -BIG, 3 * BIG, &t);
  check_type(t, 4, -BIG, 3 * BIG);
  MPI_Type_free(&t);

  MPI_Count sizes[2] = {BIG, 4}, subsizes[2] = {BIG - 2, 2}, starts[2] = {1, 1};
  MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_BYTE, &t);
  check_type(t, 2 * (BIG - 2), 0, 4 * BIG);
  MPI_Type_free(&t);
  MPI_Type_create_darray_c(2, 1, 1, sizes, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2},
                           MPI_ORDER_C, MPI_BYTE, &t);
  check_type(t, BIG / 2, 0, BIG);
  MPI_Type_free(&t);
}

/* The small constructors over large datatypes. */
static void nested(void)
{
  MPI_Datatype giga, t;
  int n;
  MPI_Type_contiguous(1 << 30, MPI_BYTE, &giga);
  MPI_Type_contiguous(1 << 30, giga, &t);
  check_type(t, (MPI_Count)1 << 60, 0, (MPI_Count)1 << 60);
  MPI_Type_free(&t);
  MPI_Type_vector(3, 1, 2, giga, &t);
  check_type(t, (MPI_Count)3 << 30, 0, (MPI_Count)5 << 30);
  MPI_Count large;
  CHECK(MPI_Pack_size(1, t, MPI_COMM_SELF, &n) == MPI_SUCCESS && n == MPI_UNDEFINED);
  CHECK(MPI_Pack_size_c(2, t, MPI_COMM_SELF, &large) == MPI_SUCCESS && large >= (MPI_Count)6 << 30);
  CHECK(MPI_Pack_external_size_c("external32", 2, t, &large) == MPI_SUCCESS && large == (MPI_Count)6 << 30);
  MPI_Type_free(&t);
  MPI_Type_free(&giga);
}

/* A status for more elements than an int counts. */
static void statuses(void)
{
  MPI_Status s;
  MPI_Count large = -1;
  int small = -1;
  memset(&s, 0, sizeof s);
  CHECK(MPI_Status_set_elements_c(&s, MPI_DOUBLE, BIG) == MPI_SUCCESS);
  CHECK(MPI_Get_elements_c(&s, MPI_DOUBLE, &large) == MPI_SUCCESS && large == BIG);
  CHECK(MPI_Get_count_c(&s, MPI_DOUBLE, &large) == MPI_SUCCESS && large == BIG);
  CHECK(MPI_Get_count(&s, MPI_DOUBLE, &small) == MPI_SUCCESS && small == MPI_UNDEFINED);
  CHECK(MPI_Status_set_elements_x(&s, MPI_INT, BIG + 1) == MPI_SUCCESS);
  CHECK(MPI_Get_elements_x(&s, MPI_INT, &large) == MPI_SUCCESS && large == BIG + 1);
}

/* Packs and unpacks more than 2^31 bytes; all but the last 7 by one type, so that the position is large when they follow. */
static void packing(void)
{
  char *from = large(N), *packed = large(N), *to = large(N);
  MPI_Count at = 0;
  fill(from, N, 1);
  CHECK(MPI_Pack_c(from, N - 7, MPI_BYTE, packed, N, &at, MPI_COMM_SELF) == MPI_SUCCESS && at == N - 7);
  CHECK(MPI_Pack_c(from + N - 7, 7, MPI_BYTE, packed, N, &at, MPI_COMM_SELF) == MPI_SUCCESS && at == N);
  CHECK(same(packed, N, 1));
  at = 0;
  CHECK(MPI_Unpack_c(packed, N, &at, to, N - 7, MPI_BYTE, MPI_COMM_SELF) == MPI_SUCCESS && at == N - 7);
  CHECK(MPI_Unpack_c(packed, N, &at, to + N - 7, 7, MPI_BYTE, MPI_COMM_SELF) == MPI_SUCCESS && at == N);
  CHECK(same(to, N, 1));
  at = 0;
  fill(to, N, 5);
  CHECK(MPI_Pack_external_c("external32", from, N, MPI_BYTE, packed, N, &at) == MPI_SUCCESS && at == N);
  at = 0;
  CHECK(MPI_Unpack_external_c("external32", packed, N, &at, to, N, MPI_BYTE) == MPI_SUCCESS && at == N);
  CHECK(same(to, N, 1));
  fill(to, N, 3);
  CHECK(MPI_Reduce_local_c(from, to, N, MPI_BYTE, MPI_BOR) == MPI_SUCCESS);
  CHECK((unsigned char)to[N - 1] == (pattern(2, N - 1) | pattern(4, N - 1)));
  CHECK((unsigned char)to[5] == (pattern(1, 5) | pattern(3, 5)));
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  small_memory();
  const struct {
    const char *name;
    void (*run)(void);
  } steps[] = {{"constructors", constructors}, {"nested", nested}, {"statuses", statuses}, {"packing", packing}};
  for (int i = 0; i < 4; i++) {
    if (argc > 1 && !strstr(argv[1], steps[i].name)) continue;
    double start = MPI_Wtime();
    steps[i].run();
    printf("%s: %.1f s\n", steps[i].name, MPI_Wtime() - start);
    fflush(stdout);
  }
  MPI_Finalize();
  return check_status();
}
