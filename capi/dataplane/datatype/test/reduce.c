/* Every predefined operation over every predefined datatype, by both sets of kernels, against
 * arithmetic written out here; and which pairs are allowed. MPI-5.0 6.9.2 to 6.9.5. */
// sanitize: address,undefined
#include "reduce.h"
#include "pack.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 70 };

/* ---- what the shims give ---- */
spx_obj *spx_predef[SPX_K_COUNT][0x300];
_Noreturn void spx_fatal(int code, const char *fmt, ...)
{
  fprintf(stderr, "fatal %d: %s\n", code, fmt);
  abort();
}
void spx_detail(const char *fmt, ...) { (void)fmt; }

static int bad;
#define CHECK(ok, ...)                                                                             \
  do {                                                                                             \
    if (!(ok)) {                                                                                   \
      bad++;                                                                                       \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #ok);                                     \
      fprintf(stderr, __VA_ARGS__);                                                                \
      fputc('\n', stderr);                                                                         \
    }                                                                                              \
  } while (0)

static const struct {
  MPI_Op op;
  const char *name;
} ops[] = {{MPI_SUM, "SUM"},   {MPI_MIN, "MIN"},   {MPI_MAX, "MAX"},       {MPI_PROD, "PROD"},
           {MPI_BAND, "BAND"}, {MPI_BOR, "BOR"},   {MPI_BXOR, "BXOR"},     {MPI_LAND, "LAND"},
           {MPI_LOR, "LOR"},   {MPI_LXOR, "LXOR"}, {MPI_MINLOC, "MINLOC"}, {MPI_MAXLOC, "MAXLOC"}};
enum { NOPS = sizeof ops / sizeof *ops };

static const spx_op *op_of(int i)
{
  return (const spx_op *)spx_predef[SPX_K_OP][(intptr_t)ops[i].op];
}

/* ---- the table of the standard: letters are the groups of 6.9.2 ---- */
static const char *const allowed[NOPS] = {
    [0] = "ifrxm", [1] = "ifrm",
    [2] = "ifrm",  [3] = "ifrxm",
    [4] = "ifbm",  [5] = "ifbm",
    [6] = "ifbm",  [7] = "iflm" /* f and m: more than the standard asks for */,
    [8] = "iflm",  [9] = "iflm",
    [10] = "p",    [11] = "p"};

static char group(const spx_basic *b)
{
  if (b->cls == SPX_BC_PAIR) return 'p'; /* named (6.9.4) and unnamed (MPI_Type_get_value_index) */
  static const struct {
    const char *names;
    char letter;
  } groups[] = {{" INT LONG SHORT UNSIGNED_SHORT UNSIGNED UNSIGNED_LONG LONG_LONG_INT LONG_LONG "
                 "UNSIGNED_LONG_LONG "
                 "CHAR SIGNED_CHAR UNSIGNED_CHAR INT8_T INT16_T INT32_T "
                 "INT64_T UINT8_T UINT16_T UINT32_T UINT64_T ",
                 'i'},
                {" INTEGER INTEGER1 INTEGER2 INTEGER4 INTEGER8 INTEGER16 ", 'f'},
                {" FLOAT DOUBLE REAL DOUBLE_PRECISION LONG_DOUBLE REAL2 REAL4 REAL8 REAL16 ", 'r'},
                {" LOGICAL C_BOOL CXX_BOOL LOGICAL1 LOGICAL2 LOGICAL4 LOGICAL8 LOGICAL16 ", 'l'},
                {" COMPLEX C_COMPLEX C_FLOAT_COMPLEX C_DOUBLE_COMPLEX C_LONG_DOUBLE_COMPLEX "
                 "CXX_FLOAT_COMPLEX "
                 "CXX_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX "
                 "DOUBLE_COMPLEX COMPLEX4 COMPLEX8 COMPLEX16 COMPLEX32 ",
                 'x'},
                {" BYTE ", 'b'},
                {" AINT OFFSET COUNT ", 'm'}};
  char word[64];
  snprintf(word, sizeof word, " %s ", b->name + 4);
  for (unsigned i = 0; i < sizeof groups / sizeof *groups; i++)
    if (strstr(groups[i].names, word)) return groups[i].letter;
  return '-';
}

/* ---- reference arithmetic on one element ---- */
static __int128 get_int(const void *p, int size, int is_signed)
{
  unsigned __int128 v = 0;
  memcpy(&v, p, (size_t)size);
  if (is_signed && size < 16 && (v >> (8 * size - 1) & 1)) v |= ~(unsigned __int128)0 << (8 * size);
  return (__int128)v;
}

static __float128 get_real(const void *p, int format)
{
  switch (format) {
  case SPX_BF_HALF: {
    _Float16 v;
    memcpy(&v, p, 2);
    return v;
  }
  case SPX_BF_SINGLE: {
    float v;
    memcpy(&v, p, 4);
    return v;
  }
  case SPX_BF_DOUBLE: {
    double v;
    memcpy(&v, p, 8);
    return v;
  }
  case SPX_BF_X87: {
    long double v;
    memcpy(&v, p, sizeof v);
    return v;
  }
  default: {
    __float128 v;
    memcpy(&v, p, 16);
    return v;
  }
  }
}

static void put_real(void *p, int format, __float128 x)
{
  switch (format) {
  case SPX_BF_HALF: {
    _Float16 v = (_Float16)x;
    memcpy(p, &v, 2);
    break;
  }
  case SPX_BF_SINGLE: {
    float v = (float)x;
    memcpy(p, &v, 4);
    break;
  }
  case SPX_BF_DOUBLE: {
    double v = (double)x;
    memcpy(p, &v, 8);
    break;
  }
  case SPX_BF_X87: {
    long double v = (long double)x;
    memcpy(p, &v, 10);
    break;
  }
  default: memcpy(p, &x, 16);
  }
}

static __int128 integer(int op, __int128 a, __int128 b)
{
  switch (op) {
  case 0: return (__int128)((unsigned __int128)a + (unsigned __int128)b);
  case 1: return a < b ? a : b;
  case 2: return a > b ? a : b;
  case 3: return (__int128)((unsigned __int128)a * (unsigned __int128)b);
  case 4: return a & b;
  case 5: return a | b;
  case 6: return a ^ b;
  case 7: return a && b;
  case 8: return a || b;
  default: return !a != !b;
  }
}

static __float128 real(int op, __float128 a, __float128 b)
{
  return op == 0 ? a + b : op == 3 ? a * b : op == 1 ? (a < b ? a : b) : (a > b ? a : b);
}

/* inout = in op inout. The values are small integers where rounding would differ. */
static void reference(int op, const spx_basic *b, const char *in, char *inout)
{
  if (b->cls == SPX_BC_PAIR) {
    const spx_basic *v = &spx_basics[b->value], *x = &spx_basics[b->index];
    __float128 a =
        v->cls == SPX_BC_FLOAT ? get_real(in, v->format) : (__float128)get_int(in, v->size, 1);
    __float128 c = v->cls == SPX_BC_FLOAT ? get_real(inout, v->format)
                                          : (__float128)get_int(inout, v->size, 1);
    __float128 i = x->cls == SPX_BC_FLOAT ? get_real(in + b->index_at, x->format)
                                          : (__float128)get_int(in + b->index_at, x->size, 1);
    __float128 j = x->cls == SPX_BC_FLOAT ? get_real(inout + b->index_at, x->format)
                                          : (__float128)get_int(inout + b->index_at, x->size, 1);
    if ((op == 10 ? a < c : a > c) || (a == c && i < j)) {
      memcpy(inout, in, v->cls == SPX_BC_FLOAT && v->format == SPX_BF_X87 ? 10 : v->size);
      memcpy(inout + b->index_at, in + b->index_at, x->size);
    }
  } else if (b->cls == SPX_BC_FLOAT)
    put_real(inout, b->format, real(op, get_real(in, b->format), get_real(inout, b->format)));
  else if (b->cls == SPX_BC_COMPLEX) {
    int half = b->size / 2;
    __float128 ar = get_real(in, b->format), ai = get_real(in + half, b->format),
               br = get_real(inout, b->format), bi = get_real(inout + half, b->format);
    put_real(inout, b->format, op == 0 ? ar + br : ar * br - ai * bi);
    put_real(inout + half, b->format, op == 0 ? ai + bi : ar * bi + ai * br);
  } else {
    int is_signed = b->cls == SPX_BC_INT || (b->cls == SPX_BC_CHAR && CHAR_MIN < 0);
    __int128 r = integer(op, get_int(in, b->size, is_signed), get_int(inout, b->size, is_signed));
    memcpy(inout, &r, b->size);
  }
}

/* ---- random operands ---- */
static uint64_t seed = 12345;
static uint32_t rnd(void)
{
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(seed >> 33);
}

static void fill(const spx_basic *b, char *p)
{
  if (b->cls == SPX_BC_PAIR) {
    const spx_basic *v = &spx_basics[b->value], *x = &spx_basics[b->index];
    int value = (int)(rnd() % 5) - 2, index = (int)(rnd() % 9);
    if (v->cls == SPX_BC_FLOAT)
      put_real(p, v->format, value);
    else {
      int64_t w = value;
      memcpy(p, &w, v->size);
    }
    if (x->cls == SPX_BC_FLOAT)
      put_real(p + b->index_at, x->format, index);
    else
      memcpy(p + b->index_at, &index, x->size);
  } else if (b->cls == SPX_BC_FLOAT || b->cls == SPX_BC_COMPLEX) {
    int half = b->cls == SPX_BC_COMPLEX ? b->size / 2 : b->size;
    for (int at = 0; at < b->size; at += half) put_real(p + at, b->format, (int)(rnd() % 25) - 12);
  } else if (b->cls == SPX_BC_BOOL || b->cls == SPX_BC_LOGICAL) {
    memset(p, 0, b->size);
    p[0] = (char)(rnd() % 2);
  } else
    for (int i = 0; i < b->size; i++) p[i] = (char)rnd();
}

/* One operation over one type by one kernel: n elements, the arrays moved off their alignment. */
static void one(spx_red_fn fn, int op, const spx_basic *b, int n, int shift, const char *set)
{ /* fn NULL: unnamed pairs, which have no kernel of their own */
  static char in[MAX * 32 + 64], got[MAX * 32 + 64], want[MAX * 32 + 64];
  memset(in, 0x5a, sizeof in);
  memset(got, 0x5a, sizeof got);
  for (int i = 0; i < n; i++) {
    fill(b, in + shift + i * b->extent);
    fill(b, got + shift + i * b->extent);
  }
  memcpy(want, got, sizeof got);
  for (int i = 0; i < n; i++)
    reference(op, b, in + shift + i * b->extent, want + shift + i * b->extent);
  if (fn)
    fn(in + shift, got + shift, n);
  else
    spx_reduce_pair(b, op == 11, in + shift, got + shift, n);
  for (int i = 0; i < n && b->format == SPX_BF_X87;
       i++) /* 6 bytes of each long double are padding */
    for (int at = 0; at < b->size; at += 16)
      memcpy(got + shift + i * b->extent + at + 10, want + shift + i * b->extent + at + 10, 6);
  CHECK(memcmp(got, want, sizeof got) == 0, "MPI_%s over %s, %d elements at %d, %s kernels",
        ops[op].name, b->name, n, shift, set);
}

/* By all sets of kernels, in many lengths and alignments. */
static void all_kernels(int op, const spx_basic *b, const spx_type *t)
{
  char in[256] = {0}, inout[256] = {0};
  CHECK(spx_reduce(in, inout, 1, t, op_of(op)) == MPI_SUCCESS, "MPI_%s over %s", ops[op].name,
        b->name);
  for (int n = 0; n < MAX; n += 1 + n / 9)
    for (int shift = 0; shift < 17; shift += 8 + (n & 1)) {
      int class = spx_red_class_of(t);
      if (class == SPX_RC_ANY_PAIR) {
        one(NULL, op, b, n, shift, "pair");
        continue;
      }
      one(spx_red_base[class][op], op, b, n, shift, "base");
      if (spx_red_has_avx2()) one(spx_red_avx2[class][op], op, b, n, shift, "AVX2");
      if (spx_red_has_avx512()) one(spx_red_avx512[class][op], op, b, n, shift, "AVX-512");
    }
}

/* ---- user functions ---- */
static int64_t seen;
static int calls;
static void small(void *in, void *inout, int *len, MPI_Datatype *t)
{
  (void)in;
  (void)inout;
  CHECK(*t == MPI_BYTE && *len > 0, "length %d", *len);
  seen += *len;
  calls++;
}

static void large(void *in, void *inout, MPI_Count *len, MPI_Datatype *t)
{
  (void)in;
  (void)inout;
  (void)t;
  seen += *len;
  calls++;
}

static void user_functions(void)
{
  const spx_type *byte = (const spx_type *)spx_predef[SPX_K_TYPE][(intptr_t)MPI_BYTE];
  spx_op op = {.fn = (void *)small};
  char *mem = (char *)0x1000; /* is not touched */
  CHECK(spx_reduce(mem, mem, 3ll * INT_MAX + 5, byte, &op) == MPI_SUCCESS, "small");
  CHECK(seen == 3ll * INT_MAX + 5 && calls == 4, "%lld elements in %d calls", (long long)seen,
        calls);
  seen = calls = 0;
  op = (spx_op){.fn = (void *)large, .wide = 1};
  CHECK(spx_reduce(mem, mem, 3ll * INT_MAX + 5, byte, &op) == MPI_SUCCESS, "large");
  CHECK(seen == 3ll * INT_MAX + 5 && calls == 1, "%lld elements in %d calls", (long long)seen,
        calls);
  calls = 0;
  CHECK(spx_reduce(mem, mem, 0, byte, &op) == MPI_SUCCESS && calls == 0, "no elements");
}

/* MPI_REPLACE and MPI_NO_OP are for accumulate alone; the gap of a pair is not data. */
static void replace(void)
{
  const spx_type *t = (const spx_type *)spx_predef[SPX_K_TYPE][(intptr_t)MPI_DOUBLE_INT];
  const spx_op *rep = (const spx_op *)spx_predef[SPX_K_OP][(intptr_t)MPI_REPLACE],
               *no = (const spx_op *)spx_predef[SPX_K_OP][(intptr_t)MPI_NO_OP];
  enum { N = 700 };
  struct {
    double v;
    int i;
    int gap;
  } a[N], b[N];
  for (int i = 0; i < N; i++) {
    a[i].v = i, a[i].i = -i, a[i].gap = 1;
    b[i].v = 0, b[i].i = 0, b[i].gap = 2;
  }
  CHECK(!spx_op_valid(rep, t) && !spx_op_valid(no, t), "validity");
  spx_reduce(a, b, N, t, no);
  CHECK(b[5].v == 0, "MPI_NO_OP");
  spx_reduce(a, b, N, t, rep);
  for (int i = 0; i < N; i++)
    CHECK(b[i].v == i && b[i].i == -i && b[i].gap == 2, "MPI_REPLACE, element %d", i);
}

int main(void)
{
  spx_basic_init();
  spx_ops_init();
  int pairs = 0;
  for (int i = 1; i < SPX_B_COUNT_OF; i++) {
    const spx_basic *b = &spx_basics[i];
    const spx_type *t = &spx_basic_types[i];
    for (int op = 0; op < NOPS; op++) {
      int want = strchr(allowed[op], group(b)) != NULL;
      CHECK(spx_op_valid(op_of(op), t) == want, "MPI_%s over %s: should be %d", ops[op].name,
            b->name, want);
      if (!want) {
        char x[64] = {0};
        CHECK(spx_reduce(x, x + 32, 1, t, op_of(op)) == MPI_ERR_OP, "MPI_%s over %s", ops[op].name,
              b->name);
        continue;
      }
      pairs++;
      all_kernels(op, b, t);
    }
  }
  user_functions();
  replace();
  printf("%d pairs of operation and datatype\n", pairs);
  return bad != 0 || pairs < 350;
}
