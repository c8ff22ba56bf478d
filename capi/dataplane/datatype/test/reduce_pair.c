/* MPI_MINLOC and MPI_MAXLOC over every pair that MPI_Type_get_value_index can make, against the
 * definition in MPI-5.0, 6.9.4. */
// sanitize: address,undefined
#include "reduce.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

spx_obj *spx_predef[SPX_K_COUNT][0x300];
_Noreturn void spx_fatal(int code, const char *fmt, ...)
{
  (void)fmt;
  exit(code);
}

static int failures;

/* Stores a small number as a value of a basic type. */
static void put(const spx_basic *b, char *at, int x)
{
#define PUT(type)                                                                                  \
  do {                                                                                             \
    type v_ = (type)x;                                                                             \
    memcpy(at, &v_, sizeof v_);                                                                    \
    return;                                                                                        \
  } while (0)
  switch (b->format) {
  case SPX_BF_HALF: PUT(spx_real2);
  case SPX_BF_SINGLE: PUT(float);
  case SPX_BF_DOUBLE: PUT(double);
  case SPX_BF_X87: PUT(long double);
  case SPX_BF_QUAD: PUT(spx_real16);
  default: break;
  }
  switch (b->size) {
  case 1: PUT(int8_t);
  case 2: PUT(int16_t);
  case 4: PUT(int32_t);
  case 8: PUT(int64_t);
  default: PUT(spx_integer16);
  }
#undef PUT
}

typedef struct {
  int value, index;
} pair;

static pair best(pair a, pair b, int max)
{
  if (a.value != b.value) return (a.value < b.value) != max ? a : b;
  return a.index < b.index ? a : b;
}

static void test_pair(int value, int index)
{
  const spx_basic *p = &spx_basics[spx_basic_pair(value, index)], *v = &spx_basics[value],
                  *x = &spx_basics[index];
  int low = v->cls == SPX_BC_UINT ? 0 : -2, ilow = x->cls == SPX_BC_UINT ? 0 : -1;
  enum { N = 5 * 5 * 9 };
  char *in = calloc(N, p->extent), *io[2] = {calloc(N, p->extent), calloc(N, p->extent)},
       *want = calloc(1, p->extent);
  pair a[N], b[N];
  for (int i = 0; i < N; i++) {
    a[i] = (pair){low + i % 5, ilow + i / 25 % 3};
    b[i] = (pair){low + i / 5 % 5, ilow + i / 75 % 3};
    put(v, in + i * p->extent, a[i].value);
    put(x, in + i * p->extent + p->index_at, a[i].index);
    for (int max = 0; max < 2; max++) {
      put(v, io[max] + i * p->extent, b[i].value);
      put(x, io[max] + i * p->extent + p->index_at, b[i].index);
    }
  }
  for (int max = 0; max < 2; max++) {
    spx_reduce_pair(p, max, in, io[max], N);
    for (int i = 0; i < N; i++) {
      pair r = best(a[i], b[i], max);
      put(v, want, r.value);
      put(x, want + p->index_at, r.index);
      if (memcmp(want, io[max] + i * p->extent,
                 v->size == 16 && v->format == SPX_BF_X87 ? 10 : v->size) ||
          memcmp(want + p->index_at, io[max] + i * p->extent + p->index_at, x->size)) {
        printf("%s, %s: %s of (%d, %d) and (%d, %d)\n", v->name, x->name, max ? "MAXLOC" : "MINLOC",
               a[i].value, a[i].index, b[i].value, b[i].index);
        failures++;
        i = N;
      }
    }
  }
  free(in), free(io[0]), free(io[1]), free(want);
}

int main(void)
{
  static const int values[] = {SPX_B_INT8_T,      SPX_B_UINT8_T,  SPX_B_INT16_T, SPX_B_UINT16_T,
                               SPX_B_INT32_T,     SPX_B_UINT32_T, SPX_B_INT64_T, SPX_B_UINT64_T,
                               SPX_B_INTEGER16,   SPX_B_REAL2,    SPX_B_FLOAT,   SPX_B_DOUBLE,
                               SPX_B_LONG_DOUBLE, SPX_B_REAL16};
  static const int indices[] = {SPX_B_INT8_T, SPX_B_UINT16_T, SPX_B_UINT64_T, SPX_B_INTEGER16};
  spx_basic_init();
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    for (size_t k = 0; k < sizeof indices / sizeof *indices; k++) test_pair(values[i], indices[k]);
  /* The order of unsigned numbers is not that of signed ones. */
  struct {
    uint32_t v;
    int64_t i;
  } big = {0x80000000u, 1}, small = {1, 2};
  spx_reduce_pair(&spx_basics[spx_basic_pair(SPX_B_UINT32_T, SPX_B_INT64_T)], 1, &big, &small, 1);
  if (small.v != big.v || small.i != 1) failures++;
  /* A full table answers 0, and what is in it is still found. */
  int made = 0;
  for (int v = 1; v < SPX_B_FLOAT_INT; v++)
    for (int x = 1; x < SPX_B_FLOAT_INT; x++) made += spx_basic_pair(v, x) > 0;
  if (spx_basic_pair(SPX_B_UINT64_T, SPX_B_AINT) != 0 ||
      spx_basic_pair(SPX_B_UINT32_T, SPX_B_INT64_T) == 0 || made == 0)
    failures++;
  for (int i = 1; i < SPX_B_COUNT_OF; i++) spx_type_release(&spx_basic_types[i]);
  return failures;
}
