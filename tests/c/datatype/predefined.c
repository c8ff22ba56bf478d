/* The predefined datatypes: sizes, names, Fortran kinds by precision, types by size, and value-index pairs.
 * MPI-5.0: 3.2.2, 6.9.4, 19.1.9. */
// run: n=1
#include "typemap.h"
#include <stddef.h>

static void check_type(MPI_Datatype t, const char *name, int size, MPI_Aint extent)
{
  char got[MPI_MAX_OBJECT_NAME];
  int len, n;
  MPI_Aint lb, ex;
  MPI_Type_size(t, &n);
  MPI_Type_get_extent(t, &lb, &ex);
  MPI_Type_get_name(t, got, &len);
  if (strcmp(got, name) != 0 || n != size || ex != extent || lb != 0 || len != (int)strlen(name)) {
    fprintf(stderr, "%s: name %s, size %d, extent %ld, lb %ld\n", name, got, n, (long)ex, (long)lb);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
#define SIMPLE(t, ctype) check_type(t, #t, (int)sizeof(ctype), sizeof(ctype))
#define PAIR(t, vt, it)                                                                                                \
  check_type(t, #t, (int)(sizeof(vt) + sizeof(it)), sizeof(struct {                                                    \
               vt v;                                                                                                   \
               it i;                                                                                                   \
             }))

static void sizes(void)
{
  SIMPLE(MPI_CHAR, char);
  SIMPLE(MPI_WCHAR, wchar_t);
  SIMPLE(MPI_UNSIGNED_SHORT, short);
  SIMPLE(MPI_LONG, long);
  SIMPLE(MPI_LONG_DOUBLE, long double);
  SIMPLE(MPI_AINT, MPI_Aint);
  SIMPLE(MPI_COUNT, MPI_Count);
  SIMPLE(MPI_OFFSET, MPI_Offset);
  SIMPLE(MPI_C_BOOL, _Bool);
  SIMPLE(MPI_C_DOUBLE_COMPLEX, double _Complex);
  SIMPLE(MPI_INTEGER, int);
  SIMPLE(MPI_DOUBLE_PRECISION, double);
  check_type(MPI_REAL2, "MPI_REAL2", 2, 2);
  check_type(MPI_INTEGER16, "MPI_INTEGER16", 16, 16);
  check_type(MPI_COMPLEX32, "MPI_COMPLEX32", 32, 32);
  check_type(MPI_LOGICAL8, "MPI_LOGICAL8", 8, 8);
  PAIR(MPI_FLOAT_INT, float, int);
  PAIR(MPI_DOUBLE_INT, double, int);
  PAIR(MPI_LONG_INT, long, int);
  PAIR(MPI_SHORT_INT, short, int);
  PAIR(MPI_LONG_DOUBLE_INT, long double, int);
  PAIR(MPI_2INT, int, int);
}

static void kinds(void)
{
  MPI_Datatype a, b;
  int ni, na, nd, comb, pr[2], size;
  MPI_Type_create_f90_real(15, 307, &a);
  MPI_Type_create_f90_real(15, 307, &b);
  CHECK(a == b && a != MPI_DOUBLE);
  MPI_Type_get_envelope(a, &ni, &na, &nd, &comb);
  CHECK(ni == 2 && na == 0 && nd == 0 && comb == MPI_COMBINER_F90_REAL);
  MPI_Type_get_contents(a, 2, 0, 0, pr, NULL, NULL);
  CHECK(pr[0] == 15 && pr[1] == 307);
  double in[2] = {1, 5}, io[2] = {2, 3};
  MPI_Reduce_local(in, io, 2, a, MPI_SUM);
  CHECK(io[0] == 3 && io[1] == 8);
  MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &a);
  MPI_Type_size(a, &size);
  CHECK(size == 8);
  MPI_Type_create_f90_integer(18, &a);
  MPI_Type_size(a, &size);
  CHECK(size == 8);
  MPI_Type_create_f90_integer(19, &b);
  MPI_Type_size(b, &size);
  CHECK(size == 16 && a != b);
  MPI_Datatype v; /* made of an unnamed type: the very same comes back */
  MPI_Type_contiguous(3, a, &v);
  MPI_Type_get_contents(v, 1, 0, 1, pr, NULL, &b);
  CHECK(b == a);
  MPI_Type_free(&v);
  static const int classes[] = {MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_REAL, MPI_TYPECLASS_COMPLEX}, from[] = {1, 4, 8},
                   to[] = {16, 16, 32};
  for (int c = 0; c < 3; c++)
    for (int s = from[c]; s <= to[c]; s *= 2) {
      MPI_Type_match_size(classes[c], s, &a);
      MPI_Type_size(a, &size);
      CHECK(size == s);
    }
}

static void pairs(void)
{
  MPI_Datatype t, u, parts[2];
  MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &t);
  CHECK(t == MPI_DOUBLE_INT);
  MPI_Type_get_value_index(MPI_DOUBLE, MPI_FLOAT, &t);
  CHECK(t == MPI_DATATYPE_NULL);
  MPI_Type_get_value_index(MPI_BYTE, MPI_INT, &t);
  CHECK(t == MPI_DATATYPE_NULL);
  struct pair {
    int16_t v;
    uint64_t i;
  };
  MPI_Type_get_value_index(MPI_INT16_T, MPI_UINT64_T, &t);
  MPI_Type_get_value_index(MPI_INT16_T, MPI_UINT64_T, &u);
  CHECK(t == u && t != MPI_DATATYPE_NULL);
  int ni, na, nd, comb, size;
  MPI_Aint lb, extent;
  MPI_Type_get_envelope(t, &ni, &na, &nd, &comb);
  CHECK(ni == 0 && na == 0 && nd == 2 && comb == MPI_COMBINER_VALUE_INDEX);
  MPI_Type_get_contents(t, 0, 0, 2, NULL, NULL, parts);
  CHECK(parts[0] == MPI_INT16_T && parts[1] == MPI_UINT64_T);
  MPI_Type_size(t, &size);
  MPI_Type_get_extent(t, &lb, &extent);
  CHECK(size == 10 && lb == 0 && extent == sizeof(struct pair));
  struct pair in[4] = {{-5, 1}, {7, 9}, {7, 2}, {0, 1ull << 63}}, io[4] = {{3, 0}, {7, 4}, {7, 4}, {0, 1}}, copy[4];
  memcpy(copy, io, sizeof io);
  MPI_Reduce_local(in, io, 4, t, MPI_MINLOC);
  CHECK(io[0].v == -5 && io[0].i == 1 && io[1].i == 4 && io[2].i == 2 && io[3].i == 1);
  MPI_Reduce_local(in, copy, 4, t, MPI_MAXLOC);
  CHECK(copy[0].v == 3 && copy[0].i == 0 && copy[1].i == 4 && copy[2].i == 2 && copy[3].i == 1);
  char packed[64];
  int pos = 0;
  MPI_Pack(in, 2, t, packed, sizeof packed, &pos, MPI_COMM_WORLD);
  CHECK(pos == 20 && memcmp(packed + 12, &in[1].i, 8) == 0);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  sizes();
  kinds();
  pairs();
  MPI_Finalize();
  return 0;
}
