/* reduce_avx512.c - the reduction kernels for processors with AVX-512 and full speed at its width;
 * elsewhere the base kernels again. */
#include "reduce.h"
#ifdef __x86_64__
#pragma GCC target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#define SPX_RED(name) avx512_##name
#define SPX_RED_TABLE spx_red_avx512
#include "reduce_kernels.inc"
