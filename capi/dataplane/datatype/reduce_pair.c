/* reduce_pair.c - MPI_MINLOC and MPI_MAXLOC for the pairs that MPI_Type_get_value_index makes
 * (MPI-5.0, 6.9.4): any value that has an order, any integer index. The named pairs have kernels of
 * their own. */
#include <string.h>
#include "reduce.h"

#define ORDER(type)                                                                                \
  do {                                                                                             \
    type x, y;                                                                                     \
    memcpy(&x, a, sizeof x);                                                                       \
    memcpy(&y, b, sizeof y);                                                                       \
    return x < y ? -1 : x == y ? 0 : x > y ? 1 : 2;                                                \
  } while (0)

/* -1, 0 or 1 as a is less than, equal to or greater than b; 2 when they have no order (a NaN). */
static int order(const spx_basic *t, const char *a, const char *b)
{
  int is_signed = t->cls == SPX_BC_INT;
  switch (t->format) {
  case SPX_BF_HALF: ORDER(spx_real2);
  case SPX_BF_SINGLE: ORDER(float);
  case SPX_BF_DOUBLE: ORDER(double);
  case SPX_BF_X87: ORDER(long double);
  case SPX_BF_QUAD: ORDER(spx_real16);
  default: break;
  }
  switch (t->size) {
  case 1:
    if (is_signed) ORDER(int8_t);
    ORDER(uint8_t);
  case 2:
    if (is_signed) ORDER(int16_t);
    ORDER(uint16_t);
  case 4:
    if (is_signed) ORDER(int32_t);
    ORDER(uint32_t);
  case 8:
    if (is_signed) ORDER(int64_t);
    ORDER(uint64_t);
  default: ORDER(spx_integer16);
  }
}

void spx_reduce_pair(const spx_basic *pair, int max, const void *in, void *inout, int64_t n)
{
  const spx_basic *value = &spx_basics[pair->value], *index = &spx_basics[pair->index];
  const char *a = in;
  char *b = inout;
  for (int64_t i = 0; i < n; i++, a += pair->extent, b += pair->extent) {
    int o = order(value, a, b);
    int take =
        o == (max ? 1 : -1) || (o == 0 && order(index, a + pair->index_at, b + pair->index_at) < 0);
    if (!take) continue;
    memcpy(b, a, value->size);
    memcpy(b + pair->index_at, a + pair->index_at, index->size);
  }
}
