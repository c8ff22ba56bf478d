/* basic.c - the table of the predefined datatypes and their objects (see basic.h). */
#include <pthread.h>
#include "basic.h"
#include "pack.h"

#define SPX_X(nm, ctype, c, f, g, ext)                                                             \
  [SPX_B_##nm] = {.name = "MPI_" #nm,                                                              \
                  .handle = (uint16_t)(uintptr_t)MPI_##nm,                                         \
                  .cls = SPX_BC_##c,                                                               \
                  .format = SPX_BF_##f,                                                            \
                  .group = SPX_BG_##g,                                                             \
                  .align = _Alignof(ctype),                                                        \
                  .size = sizeof(ctype),                                                           \
                  .extent = sizeof(ctype),                                                         \
                  .ext32 = ext},
#define SPX_PAIR(nm, vt, it, vid, iid)                                                             \
  [SPX_B_##nm] = {.name = "MPI_" #nm,                                                              \
                  .handle = (uint16_t)(uintptr_t)MPI_##nm,                                         \
                  .value = SPX_B_##vid,                                                            \
                  .index = SPX_B_##iid},
spx_basic spx_basics[SPX_BASIC_MAX] = {SPX_BASICS_SIMPLE(SPX_X) SPX_BASICS_PAIR(SPX_PAIR)};

spx_type spx_basic_types[SPX_BASIC_MAX];
static int basics_used = SPX_B_COUNT_OF;

static int round_up(int n, int to) { return (n + to - 1) / to * to; }

/* A pair is laid out as a C struct of its two parts; in external32 they follow each other without a
 * gap. */
static void fill_pair(spx_basic *p)
{
  const spx_basic *v = &spx_basics[p->value], *x = &spx_basics[p->index];
  p->cls = SPX_BC_PAIR;
  p->group = SPX_BG_PAIR;
  p->align = v->align > x->align ? v->align : x->align;
  p->size = (uint8_t)(v->size + x->size);
  p->index_at = (uint8_t)round_up(v->size, x->align);
  p->extent = (uint8_t)round_up(p->index_at + x->size, p->align);
  p->ext32 = (uint8_t)(v->ext32 + x->ext32);
}

static int is_integer(const spx_basic *b) { return b->cls == SPX_BC_INT || b->cls == SPX_BC_UINT; }

/* The type of row i, in which its size and layout are. */
static void fill_type(int i)
{
  const spx_basic *b = &spx_basics[i];
  spx_type *t = &spx_basic_types[i];
  t->flags = SPX_T_PREDEFINED | SPX_T_COMMITTED | (b->size == b->extent ? SPX_T_CONTIG : 0);
  t->basic = (uint16_t)i;
  t->size = b->size;
  t->extent = b->extent;
  t->true_extent = b->cls == SPX_BC_PAIR ? b->index_at + spx_basics[b->index].size : b->size;
  if (b->cls == SPX_BC_PAIR) spx_layout_of_pair(t);
}

static int find_pair(int value, int index)
{
  if (value <= 0 || index <= 0 || value >= basics_used || index >= basics_used) return 0;
  if (!(is_integer(&spx_basics[value]) || spx_basics[value].cls == SPX_BC_FLOAT)) return 0;
  for (int i = SPX_B_FLOAT_INT; i < basics_used; i++)
    if (spx_basics[i].value == value && spx_basics[i].index == index) return i;
  if (!is_integer(&spx_basics[index]) || basics_used == SPX_BASIC_MAX) return 0;
  spx_basic *p = &spx_basics[basics_used];
  p->name = "";
  p->value = (uint8_t)value;
  p->index = (uint8_t)index;
  fill_pair(p);
  fill_type(basics_used);
  return basics_used++;
}

int spx_basic_pair(int value, int index)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  int i = find_pair(value, index);
  pthread_mutex_unlock(&lock);
  return i;
}

void spx_basic_init(void)
{
  /* These have two names; each is the one that the standard calls the other a synonym of. */
  spx_basics[SPX_B_LONG_LONG].name = "MPI_LONG_LONG_INT";
  spx_basics[SPX_B_C_FLOAT_COMPLEX].name = "MPI_C_COMPLEX";
  for (int i = SPX_B_NONE + 1; i < SPX_B_COUNT_OF; i++) {
    spx_basic *b = &spx_basics[i];
    spx_type *t = &spx_basic_types[i];
    if (t->o.handle) continue;
    if (i >= SPX_B_FLOAT_INT) fill_pair(b);
    fill_type(i);
    atomic_store_explicit(&t->o.refs, 1, memory_order_relaxed);
    t->o.handle = b->handle;
    spx_predef[SPX_K_TYPE][b->handle] = &t->o;
  }
}
