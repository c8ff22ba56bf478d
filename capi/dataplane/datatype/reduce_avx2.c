/* reduce_avx2.c - the reduction kernels for processors with AVX2 and F16C; elsewhere the base
 * kernels again. */
#ifdef __x86_64__
#pragma GCC target("avx2,f16c")
#include <immintrin.h>
#define SPX_RED_F16C
#endif
#include "reduce.h"
#define SPX_RED(name) avx2_##name
#define SPX_RED_TABLE spx_red_avx2
#include "reduce_kernels.inc"
