/* reduce_base.c - the reduction kernels for any x86-64 or other processor. */
#include "reduce.h"
#define SPX_RED(name) base_##name
#define SPX_RED_TABLE spx_red_base
#include "reduce_kernels.inc"
