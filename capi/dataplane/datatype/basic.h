/* basic.h - the predefined datatypes: one row each, and the objects behind their handles.
 *
 * Owns what is known about a predefined datatype on this machine: handle, name, size, alignment,
 * how its bits are to be read, which reductions the standard allows on it, and its size in the
 * "external32" representation. MPI-5.0: 3.2.2 and annex A.1 (names), 6.9.2 (groups for
 * reductions), 14.5.2 (external32), 20.3 (handle values). The Fortran types follow gfortran:
 * INTEGER, REAL and LOGICAL of 4 bytes, DOUBLE PRECISION of 8.
 */
#ifndef SPX_BASIC_H
#define SPX_BASIC_H
#include "spx.h"
#include <wchar.h>

typedef _Float16 spx_real2;
typedef __float128 spx_real16;
typedef __int128 spx_integer16;
typedef _Complex _Float16 spx_complex4;
typedef _Complex float __attribute__((mode(TC))) spx_complex32;

/* How the bits are to be read. */
typedef enum {
  SPX_BC_INT = 1, /* two's complement, any of 1, 2, 4, 8, 16 bytes */
  SPX_BC_UINT,    /* unsigned, 1, 2, 4, 8 bytes */
  SPX_BC_FLOAT,   /* see spx_float_format */
  SPX_BC_COMPLEX, /* two floats, real part first */
  SPX_BC_BOOL,    /* one byte, 0 or 1 */
  SPX_BC_LOGICAL, /* Fortran LOGICAL: an integer, 0 is false, written as 1 for true */
  SPX_BC_BYTE,    /* MPI_BYTE, MPI_PACKED: uninterpreted */
  SPX_BC_CHAR,    /* printable characters; MPI_CHAR is an integer as well where data are reduced */
  SPX_BC_WCHAR,   /* wchar_t: no arithmetic */
  SPX_BC_PAIR     /* a value and an index: see value, index, index_at */
} spx_basic_class;

/* SPX_BC_FLOAT and SPX_BC_COMPLEX (then of each part): the format; 0 for other classes. */
typedef enum {
  SPX_BF_NONE = 0,
  SPX_BF_HALF,
  SPX_BF_SINGLE,
  SPX_BF_DOUBLE,
  SPX_BF_X87 /* long double: 10 bytes in 16 */,
  SPX_BF_QUAD
} spx_float_format;

/* The groups of MPI-5.0 6.9.2, which say what operations are allowed. */
typedef enum {
  SPX_BG_NONE = 0,  /* MPI_CHARACTER, MPI_WCHAR, MPI_PACKED: no predefined operation */
  SPX_BG_C_INTEGER, /* and MPI_CHAR, which the standard leaves out */
  SPX_BG_FORTRAN_INTEGER,
  SPX_BG_FLOATING,
  SPX_BG_LOGICAL,
  SPX_BG_COMPLEX,
  SPX_BG_BYTE,
  SPX_BG_MULTI, /* MPI_AINT, MPI_OFFSET, MPI_COUNT */
  SPX_BG_PAIR   /* MPI_MINLOC, MPI_MAXLOC */
} spx_basic_group;

/* X(name without MPI_, C type, class, float format, group, bytes in external32) */
#define SPX_BASICS_SIMPLE(X)                                                                       \
  X(AINT, MPI_Aint, INT, NONE, MULTI, 8)                                                           \
  X(COUNT, MPI_Count, INT, NONE, MULTI, 8)                                                         \
  X(OFFSET, MPI_Offset, INT, NONE, MULTI, 8)                                                       \
  X(PACKED, unsigned char, BYTE, NONE, NONE, 1)                                                    \
  X(SHORT, short, INT, NONE, C_INTEGER, 2)                                                         \
  X(INT, int, INT, NONE, C_INTEGER, 4)                                                             \
  X(LONG, long, INT, NONE, C_INTEGER, 4)                                                           \
  X(LONG_LONG, long long, INT, NONE, C_INTEGER, 8)                                                 \
  X(UNSIGNED_SHORT, unsigned short, UINT, NONE, C_INTEGER, 2)                                      \
  X(UNSIGNED, unsigned, UINT, NONE, C_INTEGER, 4)                                                  \
  X(UNSIGNED_LONG, unsigned long, UINT, NONE, C_INTEGER, 4)                                        \
  X(UNSIGNED_LONG_LONG, unsigned long long, UINT, NONE, C_INTEGER, 8)                              \
  X(FLOAT, float, FLOAT, SINGLE, FLOATING, 4)                                                      \
  X(C_FLOAT_COMPLEX, _Complex float, COMPLEX, SINGLE, COMPLEX, 8)                                  \
  X(CXX_FLOAT_COMPLEX, _Complex float, COMPLEX, SINGLE, COMPLEX, 8)                                \
  X(DOUBLE, double, FLOAT, DOUBLE, FLOATING, 8)                                                    \
  X(C_DOUBLE_COMPLEX, _Complex double, COMPLEX, DOUBLE, COMPLEX, 16)                               \
  X(CXX_DOUBLE_COMPLEX, _Complex double, COMPLEX, DOUBLE, COMPLEX, 16)                             \
  X(LOGICAL, int32_t, LOGICAL, NONE, LOGICAL, 4)                                                   \
  X(INTEGER, int32_t, INT, NONE, FORTRAN_INTEGER, 4)                                               \
  X(REAL, float, FLOAT, SINGLE, FLOATING, 4)                                                       \
  X(COMPLEX, _Complex float, COMPLEX, SINGLE, COMPLEX, 8)                                          \
  X(DOUBLE_PRECISION, double, FLOAT, DOUBLE, FLOATING, 8)                                          \
  X(DOUBLE_COMPLEX, _Complex double, COMPLEX, DOUBLE, COMPLEX, 16)                                 \
  X(CHARACTER, char, CHAR, NONE, NONE, 1)                                                          \
  X(LONG_DOUBLE, long double, FLOAT, X87, FLOATING, 16)                                            \
  X(C_LONG_DOUBLE_COMPLEX, _Complex long double, COMPLEX, X87, COMPLEX, 32)                        \
  X(CXX_LONG_DOUBLE_COMPLEX, _Complex long double, COMPLEX, X87, COMPLEX, 32)                      \
  X(C_BOOL, _Bool, BOOL, NONE, LOGICAL, 1)                                                         \
  X(CXX_BOOL, _Bool, BOOL, NONE, LOGICAL, 1)                                                       \
  X(WCHAR, wchar_t, WCHAR, NONE, NONE, 2)                                                          \
  X(INT8_T, int8_t, INT, NONE, C_INTEGER, 1)                                                       \
  X(UINT8_T, uint8_t, UINT, NONE, C_INTEGER, 1)                                                    \
  X(CHAR, char, CHAR, NONE, C_INTEGER, 1)                                                          \
  X(SIGNED_CHAR, signed char, INT, NONE, C_INTEGER, 1)                                             \
  X(UNSIGNED_CHAR, unsigned char, UINT, NONE, C_INTEGER, 1)                                        \
  X(BYTE, unsigned char, BYTE, NONE, BYTE, 1)                                                      \
  X(INT16_T, int16_t, INT, NONE, C_INTEGER, 2)                                                     \
  X(UINT16_T, uint16_t, UINT, NONE, C_INTEGER, 2)                                                  \
  X(INT32_T, int32_t, INT, NONE, C_INTEGER, 4)                                                     \
  X(UINT32_T, uint32_t, UINT, NONE, C_INTEGER, 4)                                                  \
  X(INT64_T, int64_t, INT, NONE, C_INTEGER, 8)                                                     \
  X(UINT64_T, uint64_t, UINT, NONE, C_INTEGER, 8)                                                  \
  X(LOGICAL1, int8_t, LOGICAL, NONE, LOGICAL, 1)                                                   \
  X(INTEGER1, int8_t, INT, NONE, FORTRAN_INTEGER, 1)                                               \
  X(LOGICAL2, int16_t, LOGICAL, NONE, LOGICAL, 2)                                                  \
  X(INTEGER2, int16_t, INT, NONE, FORTRAN_INTEGER, 2)                                              \
  X(REAL2, spx_real2, FLOAT, HALF, FLOATING, 2)                                                    \
  X(LOGICAL4, int32_t, LOGICAL, NONE, LOGICAL, 4)                                                  \
  X(INTEGER4, int32_t, INT, NONE, FORTRAN_INTEGER, 4)                                              \
  X(REAL4, float, FLOAT, SINGLE, FLOATING, 4)                                                      \
  X(COMPLEX4, spx_complex4, COMPLEX, HALF, COMPLEX, 4)                                             \
  X(LOGICAL8, int64_t, LOGICAL, NONE, LOGICAL, 8)                                                  \
  X(INTEGER8, int64_t, INT, NONE, FORTRAN_INTEGER, 8)                                              \
  X(REAL8, double, FLOAT, DOUBLE, FLOATING, 8)                                                     \
  X(COMPLEX8, _Complex float, COMPLEX, SINGLE, COMPLEX, 8)                                         \
  X(LOGICAL16, spx_integer16, LOGICAL, NONE, LOGICAL, 16)                                          \
  X(INTEGER16, spx_integer16, INT, NONE, FORTRAN_INTEGER, 16)                                      \
  X(REAL16, spx_real16, FLOAT, QUAD, FLOATING, 16)                                                 \
  X(COMPLEX16, _Complex double, COMPLEX, DOUBLE, COMPLEX, 16)                                      \
  X(COMPLEX32, spx_complex32, COMPLEX, QUAD, COMPLEX, 32)

/* X(name, C type of the value, of the index, id of the value, of the index) */
#define SPX_BASICS_PAIR(X)                                                                         \
  X(FLOAT_INT, float, int, FLOAT, INT)                                                             \
  X(DOUBLE_INT, double, int, DOUBLE, INT)                                                          \
  X(LONG_INT, long, int, LONG, INT)                                                                \
  X(2INT, int, int, INT, INT)                                                                      \
  X(SHORT_INT, short, int, SHORT, INT)                                                             \
  X(LONG_DOUBLE_INT, long double, int, LONG_DOUBLE, INT)                                           \
  X(2REAL, float, float, REAL, REAL)                                                               \
  X(2DOUBLE_PRECISION, double, double, DOUBLE_PRECISION, DOUBLE_PRECISION)                         \
  X(2INTEGER, int32_t, int32_t, INTEGER, INTEGER)

/* Their numbers: spx_type.basic. 0 stands for none. */
#define SPX_X(name, ...) SPX_B_##name,
typedef enum {
  SPX_B_NONE = 0,
  SPX_BASICS_SIMPLE(SPX_X) SPX_BASICS_PAIR(SPX_X) SPX_B_COUNT_OF
} spx_basic_id;
#undef SPX_X
_Static_assert(SPX_B_COUNT_OF <= SPX_BASIC_MAX, "SPX_BASIC_MAX");

typedef struct spx_basic {
  const char *name;     /* as MPI_Type_get_name gives it */
  uint16_t handle;      /* value of the predefined handle; 0 for an unnamed pair */
  uint8_t cls;          /* spx_basic_class */
  uint8_t format;       /* spx_float_format */
  uint8_t group;        /* spx_basic_group */
  uint8_t align;        /* in C structs, bytes */
  uint8_t size;         /* bytes of data; less than extent for pairs with a gap */
  uint8_t extent;       /* bytes from one to the next in an array */
  uint8_t ext32;        /* bytes in external32 */
  uint8_t value, index; /* SPX_BC_PAIR: numbers of the two parts */
  uint8_t index_at;     /* SPX_BC_PAIR: offset of the index, bytes */
} spx_basic;

/* By number; row 0 is empty. Rows from SPX_B_COUNT_OF on are the unnamed pairs that
 * MPI_Type_get_value_index has made so far: whoever handles pairs reads value, index and index_at,
 * and does not switch on the number. A row never changes once made. */
SPX_HIDDEN extern spx_basic spx_basics[SPX_BASIC_MAX];
/* Their datatypes, by number: for the named ones the objects of the handles; for a pair without a
 * name what is needed to move and reduce elements of it. */
SPX_HIDDEN extern spx_type spx_basic_types[SPX_BASIC_MAX];

/* Puts the objects into spx_predef[SPX_K_TYPE]. Idempotent; call it before any other thread
 * exists. */
SPX_HIDDEN void spx_basic_init(void);
/* The number of the pair of these two basic types: that of a named pair, an unnamed one made
 * before, or a new one; 0 when the value has no order, the index is not an integer, or the table is
 * full. */
SPX_HIDDEN int spx_basic_pair(int value, int index);

/* The row of a predefined or one-basic datatype, or NULL when it holds several basic types or
 * none. */
static inline const spx_basic *spx_basic_of(const spx_type *t)
{
  return t->basic ? &spx_basics[t->basic] : NULL;
}
#endif
