/* external32 (MPI-5.0, 14.5.2): sizes, bytes and the way back, for a type of every class. */
// sanitize: address,undefined
#include "basic.h"
#include "pack.h"
#include <complex.h>
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

/* Packs count elements of a basic type, compares with bytes in hexadecimal, and unpacks again. */
static void check(const char *what, int id, const void *value, int64_t count, const char *hex,
                  const void *back)
{
  const spx_type *t = &spx_basic_types[id];
  int64_t n = spx_external_size(t) * count;
  size_t here = (size_t)(count * t->extent);
  unsigned char *out = malloc((size_t)n), *again = malloc(here);
  char text[200] = "";
  spx_external_pack(value, count, t, out);
  for (int64_t i = 0; i < n; i++) sprintf(text + 2 * i, "%02x", out[i]);
  if (strcmp(text, hex) != 0) {
    printf("%s: %s, want %s\n", what, text, hex);
    failures++;
  }
  /* a gap stays as it is: 0, as in the value */
  memset(again, t->flags & SPX_T_CONTIG ? 0x55 : 0, here);
  spx_external_unpack(again, count, t, out);
  if (memcmp(again, back ? back : value, here) != 0) {
    printf("%s: another value came back\n", what);
    failures++;
  }
  free(out);
  free(again);
}
#define ONE(id, type, v, hex)                                                                      \
  do {                                                                                             \
    type x_ = (v);                                                                                 \
    check(#id " " #v, SPX_B_##id, &x_, 1, hex, NULL);                                              \
  } while (0)

static void integers(void)
{
  ONE(CHAR, char, 'A', "41");
  ONE(BYTE, unsigned char, 0xfe, "fe");
  ONE(SHORT, short, -2, "fffe");
  ONE(UNSIGNED_SHORT, unsigned short, 0x1234, "1234");
  ONE(INT, int, 0x12345678, "12345678");
  ONE(INT, int, -3, "fffffffd");
  ONE(LONG, long, 0x12345678, "12345678");
  ONE(LONG, long, -5, "fffffffb");
  ONE(UNSIGNED_LONG, unsigned long, 0xfffffffbul, "fffffffb");
  ONE(LONG_LONG, long long, 0x123456789abcdef0ll, "123456789abcdef0");
  ONE(INT64_T, int64_t, -1, "ffffffffffffffff");
  ONE(AINT, MPI_Aint, 1, "0000000000000001");
  ONE(INTEGER16, spx_integer16, -2, "fffffffffffffffffffffffffffffffe");
  ONE(INTEGER1, int8_t, -2, "fe");
  ONE(WCHAR, wchar_t, 0x20ac, "20ac");
  ONE(WCHAR, wchar_t, 0x8001, "8001");
  ONE(LOGICAL, int32_t, 1, "00000001");
  ONE(C_BOOL, _Bool, 1, "01");
  long lost = 0x1122334455667788, back = 0x55667788; /* only the low bytes are moved */
  check("long", SPX_B_LONG, &lost, 1, "55667788", &back);
}

static void floats(void)
{
  ONE(FLOAT, float, 1.0f, "3f800000");
  ONE(DOUBLE, double, -2.0, "c000000000000000");
  ONE(REAL2, spx_real2, 1.5f16, "3e00");
  ONE(REAL16, spx_real16, -1.0, "bfff0000000000000000000000000000");
  long double x[2];
  memset(x, 0, sizeof x);
  x[0] = 1.5L;
  x[1] = -INFINITY;
  check("long double", SPX_B_LONG_DOUBLE, x, 2,
        "3fff8000000000000000000000000000"
        "ffff0000000000000000000000000000",
        NULL);
  check("long double complex", SPX_B_C_LONG_DOUBLE_COMPLEX, x, 1,
        "3fff8000000000000000000000000000"
        "ffff0000000000000000000000000000",
        NULL);
  _Complex double z[2] = {1.0 + 2.0 * _Complex_I, -1.0};
  check("double complex", SPX_B_C_DOUBLE_COMPLEX, z, 2,
        "3ff00000000000004000000000000000"
        "bff00000000000000000000000000000",
        NULL);
}

static void pairs(void)
{
  struct {
    short v;
    int i;
  } s[2];
  memset(s, 0, sizeof s);
  s[0].v = 1, s[0].i = 2, s[1].v = -1, s[1].i = -2;
  check("short_int", SPX_B_SHORT_INT, s, 2,
        "000100000002"
        "fffffffffffe",
        NULL);
  struct {
    long v;
    int i;
  } l;
  memset(&l, 0, sizeof l);
  l.v = 7, l.i = 8;
  check("long_int", SPX_B_LONG_INT, &l, 1, "0000000700000008", NULL);
  int two[2] = {3, 4};
  check("2int", SPX_B_2INT, two, 1, "0000000300000004", NULL);
}

int main(void)
{
  spx_basic_init();
  integers();
  floats();
  pairs();
  if (spx_external_size(&spx_basic_types[SPX_B_LONG_DOUBLE_INT]) != 20) failures++;
  int id = spx_basic_pair(SPX_B_DOUBLE, SPX_B_UINT64_T);
  if (id < SPX_B_COUNT_OF || spx_basics[id].size != 16 || spx_basics[id].index_at != 8 ||
      spx_basic_pair(SPX_B_DOUBLE, SPX_B_UINT64_T) != id)
    failures++;
  if (spx_basic_pair(SPX_B_DOUBLE, SPX_B_INT) != SPX_B_DOUBLE_INT ||
      spx_basic_pair(SPX_B_REAL, SPX_B_REAL) != SPX_B_2REAL)
    failures++;
  if (spx_basic_pair(SPX_B_DOUBLE, SPX_B_FLOAT) || spx_basic_pair(SPX_B_COMPLEX, SPX_B_INT) ||
      spx_basic_pair(SPX_B_BYTE, SPX_B_INT))
    failures++;
  for (int i = 1; i < SPX_B_COUNT_OF; i++) spx_type_release(&spx_basic_types[i]);
  return failures;
}
