/* reduce.c - reductions: which operation is defined for which datatype, the predefined operations'
 * objects, and calling kernels and user functions. MPI-5.0 6.9.2 to 6.9.5. The arithmetic itself is
 * in reduce_kernels.inc. */
#include "reduce.h"
#include <limits.h>
#include <string.h>

static spx_op ops[SPX_RO_COUNT + 2];

/* Handle of a predefined operation -> spx_red_op + 1, or 0. */
static const unsigned char op_number[64] = {
    [33] = SPX_RO_SUM + 1,  [34] = SPX_RO_MIN + 1,    [35] = SPX_RO_MAX + 1,
    [36] = SPX_RO_PROD + 1, [40] = SPX_RO_BAND + 1,   [41] = SPX_RO_BOR + 1,
    [42] = SPX_RO_BXOR + 1, [48] = SPX_RO_LAND + 1,   [49] = SPX_RO_LOR + 1,
    [50] = SPX_RO_LXOR + 1, [56] = SPX_RO_MINLOC + 1, [57] = SPX_RO_MAXLOC + 1};
static inline int op_index(int predef)
{
  return (unsigned)predef < 64 ? op_number[predef] - 1 : -1;
}

/* By number of the named predefined datatypes: machine type, and a bit for each operation that is
 * defined. */
static struct {
  signed char class;
  uint16_t ops;
} rules[SPX_B_COUNT_OF];
static const spx_red_fn (*kernels)[SPX_RO_COUNT] = spx_red_base;

_Static_assert((intptr_t)MPI_SUM == 33 && (intptr_t)MPI_BAND == 40 && (intptr_t)MPI_LAND == 48 &&
                   (intptr_t)MPI_MAXLOC == 57,
               "ABI");
#define REPLACE ((int)(intptr_t)MPI_REPLACE)
#define NO_OP   ((int)(intptr_t)MPI_NO_OP)

static int integer_class(int size, int is_signed)
{
  switch (size) {
  case 1: return is_signed ? SPX_RC_I8 : SPX_RC_U8;
  case 2: return is_signed ? SPX_RC_I16 : SPX_RC_U16;
  case 4: return is_signed ? SPX_RC_I32 : SPX_RC_U32;
  case 8: return is_signed ? SPX_RC_I64 : SPX_RC_U64;
  default: return SPX_RC_I128;
  }
}

static int truth_class(int size)
{
  switch (size) {
  case 1: return SPX_RC_L8;
  case 2: return SPX_RC_L16;
  case 4: return SPX_RC_L32;
  case 8: return SPX_RC_L64;
  default: return SPX_RC_L128;
  }
}

static int pair_class(int id)
{
  switch (id) {
  case SPX_B_FLOAT_INT: return SPX_RC_FLOAT_INT;
  case SPX_B_DOUBLE_INT: return SPX_RC_DOUBLE_INT;
  case SPX_B_LONG_INT: return SPX_RC_LONG_INT;
  case SPX_B_2INT:
  case SPX_B_2INTEGER: return SPX_RC_2INT;
  case SPX_B_SHORT_INT: return SPX_RC_SHORT_INT;
  case SPX_B_LONG_DOUBLE_INT: return SPX_RC_LONG_DOUBLE_INT;
  case SPX_B_2REAL: return SPX_RC_2REAL;
  case SPX_B_2DOUBLE_PRECISION: return SPX_RC_2DOUBLE;
  default: return SPX_RC_ANY_PAIR;
  }
}

static int class_of(const spx_basic *b, int id)
{
  static const signed char real[] = {
      [SPX_BF_NONE] = -1,           [SPX_BF_HALF] = SPX_RC_F16, [SPX_BF_SINGLE] = SPX_RC_F32,
      [SPX_BF_DOUBLE] = SPX_RC_F64, [SPX_BF_X87] = SPX_RC_F80,  [SPX_BF_QUAD] = SPX_RC_F128};
  switch ((spx_basic_class)b->cls) {
  case SPX_BC_INT: return integer_class(b->size, 1);
  case SPX_BC_UINT:
  case SPX_BC_BYTE: return integer_class(b->size, 0);
  case SPX_BC_FLOAT: return real[b->format];
  case SPX_BC_COMPLEX: return real[b->format] + (SPX_RC_C16 - SPX_RC_F16);
  case SPX_BC_BOOL:
  case SPX_BC_LOGICAL: return truth_class(b->size);
  case SPX_BC_PAIR: return pair_class(id);
  case SPX_BC_CHAR: return integer_class(b->size, CHAR_MIN < 0);
  case SPX_BC_WCHAR: break;
  }
  return -1;
}

int spx_red_class_of(const spx_type *t)
{
  if (!(t->flags & SPX_T_PREDEFINED) || !t->basic) return -1;
  return class_of(&spx_basics[t->basic], t->basic);
}

/* The table of 6.9.2: which group of datatypes an operation is defined for. Beyond it, as other
 * libraries allow, the logical operations take Fortran integers and MPI_AINT, MPI_COUNT, MPI_OFFSET
 * too, and all take MPI_CHAR as the integer that C's char is. */
static int group_allows(int group, int op)
{
  const unsigned number =
      1u << SPX_BG_C_INTEGER | 1u << SPX_BG_FORTRAN_INTEGER | 1u << SPX_BG_MULTI;
  unsigned allowed;
  switch (op) {
  case SPX_RO_MIN:
  case SPX_RO_MAX: allowed = number | 1u << SPX_BG_FLOATING; break;
  case SPX_RO_SUM:
  case SPX_RO_PROD: allowed = number | 1u << SPX_BG_FLOATING | 1u << SPX_BG_COMPLEX; break;
  case SPX_RO_LAND:
  case SPX_RO_LOR:
  case SPX_RO_LXOR: allowed = number | 1u << SPX_BG_LOGICAL; break;
  case SPX_RO_BAND:
  case SPX_RO_BOR:
  case SPX_RO_BXOR: allowed = number | 1u << SPX_BG_BYTE; break;
  default: allowed = 1u << SPX_BG_PAIR; break;
  }
  return allowed >> group & 1;
}

static void make_rules(void)
{
  for (int id = 1; id < SPX_B_COUNT_OF; id++) {
    rules[id].class = (signed char)class_of(&spx_basics[id], id);
    for (int o = 0; o < SPX_RO_COUNT; o++)
      if (rules[id].class >= 0 && group_allows(spx_basics[id].group, o))
        rules[id].ops |= (uint16_t)(1u << o);
  }
}

void spx_ops_init(void)
{
  static const MPI_Op handles[] = {MPI_SUM,    MPI_MIN,    MPI_MAX,     MPI_PROD, MPI_BAND,
                                   MPI_BOR,    MPI_BXOR,   MPI_LAND,    MPI_LOR,  MPI_LXOR,
                                   MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
  _Static_assert(sizeof handles / sizeof *handles == sizeof ops / sizeof *ops,
                 "one object an operation");
  for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++) {
    int v = (int)(intptr_t)handles[i];
    ops[i].o.handle = (uint32_t)v;
    atomic_store_explicit(&ops[i].o.refs, 1, memory_order_relaxed);
    ops[i].predef = v;
    ops[i].commute = v != REPLACE && v != NO_OP;
    spx_predef[SPX_K_OP][v] = &ops[i].o;
  }
  make_rules();
  kernels = spx_red_has_avx512() ? spx_red_avx512
            : spx_red_has_avx2() ? spx_red_avx2
                                 : spx_red_base;
}

int spx_op_valid(const spx_op *op, const spx_type *t)
{
  if (!op->predef) return 1;
  int o = op_index(op->predef);
  if (o < 0 || !(t->flags & SPX_T_PREDEFINED)) return 0;
  if (SPX_LIKELY(t->basic < SPX_B_COUNT_OF)) return rules[t->basic].ops >> o & 1;
  return spx_red_class_of(t) >= 0 && group_allows(spx_basics[t->basic].group, o);
}

int spx_red_has_avx2(void)
{
#ifdef __x86_64__
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
#else
  return 0;
#endif
}

/* VBMI2 came with the processors (Ice Lake, Zen 4) that do not lower their clock for 512 bits. */
int spx_red_has_avx512(void)
{
#ifdef __x86_64__
  return spx_red_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2");
#else
  return 0;
#endif
}

spx_red_fn spx_reduce_kernel(const spx_op *op, const spx_type *t)
{
  int o = op_index(op->predef);
  if (o < 0 || !(t->flags & SPX_T_PREDEFINED) || t->basic >= SPX_B_COUNT_OF ||
      !(rules[t->basic].ops >> o & 1))
    return NULL;
  return kernels[rules[t->basic].class][o];
}

/* Runs a user function; the small form is called several times when the count does not fit its int
 * (6.9.5). */
static void call_user(const spx_op *op, const char *in, char *inout, int64_t count,
                      const spx_type *t)
{
  MPI_Datatype handle = (MPI_Datatype)(uintptr_t)t->o.handle;
  if (op->wide) {
    MPI_Count len = count;
    ((void (*)(void *, void *, MPI_Count *, MPI_Datatype *))op->fn)((void *)in, inout, &len,
                                                                    &handle);
    return;
  }
  while (count > 0) {
    int len = count > INT_MAX ? INT_MAX : (int)count, chunk = len;
    ((void (*)(void *, void *, int *, MPI_Datatype *))op->fn)((void *)in, inout, &len, &handle);
    in += chunk * t->extent;
    inout += chunk * t->extent;
    count -= chunk;
  }
}

/* inout = in for MPI_REPLACE; a type with gaps goes through its packed form, a piece at a time. */
static void replace(const void *in, void *inout, int64_t count, const spx_type *t)
{
  if (t->flags & SPX_T_CONTIG) {
    memmove(inout, in, (size_t)(count * t->size));
    return;
  }
  char piece[4096];
  int64_t total = count * t->size;
  for (int64_t at = 0; at < total; at += (int64_t)sizeof piece) {
    int64_t end = total - at < (int64_t)sizeof piece ? total : at + (int64_t)sizeof piece;
    spx_pack(in, count, t, at, end, piece);
    spx_unpack(inout, count, t, at, end, piece);
  }
}

int spx_reduce(const void *in, void *inout, int64_t count, const spx_type *t, const spx_op *op)
{
  if (count <= 0) return MPI_SUCCESS;
  if (!op->predef) {
    call_user(op, in, inout, count, t);
    return MPI_SUCCESS;
  }
  if (op->predef == NO_OP) return MPI_SUCCESS;
  if (op->predef == REPLACE) {
    replace(in, inout, count, t);
    return MPI_SUCCESS;
  }
  spx_red_fn fn = spx_reduce_kernel(op, t);
  if (SPX_LIKELY(fn != NULL)) {
    fn(in, inout, count);
    return MPI_SUCCESS;
  }
  if (!spx_op_valid(op, t)) return MPI_ERR_OP;
  spx_reduce_pair(&spx_basics[t->basic], op->predef == (int)(intptr_t)MPI_MAXLOC, in, inout, count);
  return MPI_SUCCESS;
}
