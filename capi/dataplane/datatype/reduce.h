/* reduce.h - the reduction kernels: one function per operation and machine type.
 *
 * Private to reduce*.c. MPI-5.0 6.9.2 (which operation is defined for which type) and 6.9.4 (MINLOC
 * and MAXLOC). reduce_kernels.inc is compiled twice, for any x86-64 and for AVX2; reduce.c chooses
 * once, when it is first asked.
 */
#ifndef SPX_REDUCE_H
#define SPX_REDUCE_H
#include "basic.h"

/* The predefined operations, counted from 0. */
typedef enum {
  SPX_RO_SUM,
  SPX_RO_MIN,
  SPX_RO_MAX,
  SPX_RO_PROD,
  SPX_RO_BAND,
  SPX_RO_BOR,
  SPX_RO_BXOR,
  SPX_RO_LAND,
  SPX_RO_LOR,
  SPX_RO_LXOR,
  SPX_RO_MINLOC,
  SPX_RO_MAXLOC,
  SPX_RO_COUNT
} spx_red_op;

/* The machine types behind the predefined datatypes. */
typedef enum {
  SPX_RC_I8,
  SPX_RC_U8,
  SPX_RC_I16,
  SPX_RC_U16,
  SPX_RC_I32,
  SPX_RC_U32,
  SPX_RC_I64,
  SPX_RC_U64,
  SPX_RC_I128,
  SPX_RC_F16,
  SPX_RC_F32,
  SPX_RC_F64,
  SPX_RC_F80,
  SPX_RC_F128,
  SPX_RC_C16,
  SPX_RC_C32,
  SPX_RC_C64,
  SPX_RC_C80,
  SPX_RC_C128,
  SPX_RC_L8,
  SPX_RC_L16,
  SPX_RC_L32,
  SPX_RC_L64,
  SPX_RC_L128, /* truth values: Fortran LOGICAL, C and C++ bool */
  SPX_RC_FLOAT_INT,
  SPX_RC_DOUBLE_INT,
  SPX_RC_LONG_INT,
  SPX_RC_2INT,
  SPX_RC_SHORT_INT,
  SPX_RC_LONG_DOUBLE_INT,
  SPX_RC_2REAL,
  SPX_RC_2DOUBLE,
  SPX_RC_COUNT,
  SPX_RC_ANY_PAIR = SPX_RC_COUNT /* pairs without a name: spx_reduce_pair */
} spx_red_class;

/* inout[i] = in[i] op inout[i] for n elements, each aligned as C aligns the type or not at all; the
 * arrays do not overlap. */
typedef void (*spx_red_fn)(const void *in, void *inout, int64_t n);

/* NULL where the operation is not defined for the type. */
SPX_HIDDEN extern const spx_red_fn spx_red_base[SPX_RC_COUNT][SPX_RO_COUNT];
SPX_HIDDEN extern const spx_red_fn spx_red_avx2[SPX_RC_COUNT][SPX_RO_COUNT];
SPX_HIDDEN extern const spx_red_fn spx_red_avx512[SPX_RC_COUNT][SPX_RO_COUNT];
/* This processor can run them: fully, and without slowing down for it. */
SPX_HIDDEN int spx_red_has_avx2(void);
SPX_HIDDEN int spx_red_has_avx512(void);

/* MPI_MINLOC (max = 0) or MPI_MAXLOC for n pairs of any value and index type (reduce_pair.c). */
SPX_HIDDEN void spx_reduce_pair(const spx_basic *pair, int max, const void *in, void *inout,
                                int64_t n);

/* The kernel that spx_reduce would call, or NULL: a user function, MPI_REPLACE, MPI_NO_OP, a pair
 * without a name, an operation that is not defined. */
SPX_HIDDEN spx_red_fn spx_reduce_kernel(const spx_op *op, const spx_type *t);
/* The machine type (spx_red_class) of a predefined datatype, or -1. */
SPX_HIDDEN int spx_red_class_of(const spx_type *t);
/* Puts the predefined operations into spx_predef[SPX_K_OP]. Idempotent; call it before any other
 * thread exists. */
SPX_HIDDEN void spx_ops_init(void);
#endif
