/* basic.c - the table of the predefined datatypes and their objects (see basic.h). */
#include "basic.h"

#define SPX_X(nm, ctype, c, f, g, ext)                                                                                 \
  [SPX_B_##nm] = {.name = "MPI_" #nm, .handle = (uint16_t)(uintptr_t)MPI_##nm, .cls = SPX_BC_##c,                      \
                  .format = SPX_BF_##f, .group = SPX_BG_##g, .align = _Alignof(ctype), .size = sizeof(ctype),          \
                  .extent = sizeof(ctype), .ext32 = ext},
#define SPX_PAIR(nm, vt, it, vid, iid)                                                                                 \
  [SPX_B_##nm] = {.name = "MPI_" #nm, .handle = (uint16_t)(uintptr_t)MPI_##nm, .cls = SPX_BC_PAIR,                     \
                  .group = SPX_BG_PAIR, .align = _Alignof(struct { vt v; it i; }), .size = sizeof(vt) + sizeof(it),    \
                  .extent = sizeof(struct { vt v; it i; }), .value = SPX_B_##vid, .index = SPX_B_##iid,                \
                  .index_at = offsetof(struct { vt v; it i; }, i), .ext32 = SPX_PAIR_EXT_##nm},
/* A pair in external32 is its value and then its index, without a gap. */
enum {
  SPX_PAIR_EXT_FLOAT_INT = 8, SPX_PAIR_EXT_DOUBLE_INT = 12, SPX_PAIR_EXT_LONG_INT = 8, SPX_PAIR_EXT_2INT = 8,
  SPX_PAIR_EXT_SHORT_INT = 6, SPX_PAIR_EXT_LONG_DOUBLE_INT = 20, SPX_PAIR_EXT_2REAL = 8,
  SPX_PAIR_EXT_2DOUBLE_PRECISION = 16, SPX_PAIR_EXT_2INTEGER = 8
};
const spx_basic spx_basics[SPX_B_COUNT_OF] = {SPX_BASICS_SIMPLE(SPX_X) SPX_BASICS_PAIR(SPX_PAIR)};

spx_type spx_basic_types[SPX_B_COUNT_OF];

void spx_basic_init(void)
{
  for (int i = SPX_B_NONE + 1; i < SPX_B_COUNT_OF; i++) {
    const spx_basic *b = &spx_basics[i];
    spx_type *t = &spx_basic_types[i];
    if (t->o.handle) continue;
    t->flags = SPX_T_PREDEFINED | SPX_T_COMMITTED | (b->size == b->extent ? SPX_T_CONTIG : 0);
    t->basic = (uint16_t)i;
    t->size = b->size;
    t->extent = b->extent;
    t->true_extent = b->cls == SPX_BC_PAIR ? b->index_at + spx_basics[b->index].size : b->size;
    atomic_store_explicit(&t->o.refs, 1, memory_order_relaxed);
    t->o.handle = b->handle;
    spx_predef[SPX_K_TYPE][b->handle] = &t->o;
  }
}
