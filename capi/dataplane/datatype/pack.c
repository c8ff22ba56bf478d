/* pack.c - runs layouts: packs and unpacks any byte range of the packed form, and lists the memory
 * behind it.
 *
 * The walk knows the direction at run time; the loops over blocks know it, and the block's length
 * where it is common, at compile time. Nothing here allocates or fails: buffers, counts and ranges
 * have been checked. */
#include "pack.h"
#include "basic.h"
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef struct {
  const spx_layout *l;
  char *packed; /* next byte of the packed side */
  bool unpack;
} walk;

ALWAYS_INLINE void move_bytes(char *mem, char *packed, size_t len, bool unpack)
{
  if (unpack)
    memcpy(mem, packed, len);
  else
    memcpy(packed, mem, len);
}

/* A block of a length that is not known at compile time: short ones without a call. */
ALWAYS_INLINE void move_block(char *mem, char *packed, size_t len, bool unpack)
{
  switch (len) {
  case 1: move_bytes(mem, packed, 1, unpack); break;
  case 2: move_bytes(mem, packed, 2, unpack); break;
  case 4: move_bytes(mem, packed, 4, unpack); break;
  case 8: move_bytes(mem, packed, 8, unpack); break;
  case 12: move_bytes(mem, packed, 12, unpack); break;
  case 16: move_bytes(mem, packed, 16, unpack); break;
  case 24: move_bytes(mem, packed, 24, unpack); break;
  case 32: move_bytes(mem, packed, 32, unpack); break;
  default: move_bytes(mem, packed, len, unpack); break;
  }
}

/* Calls LOOP(length) with the length as a constant where it is a common one. */
#define FOR_LENGTH(len, LOOP)                                                                      \
  switch (len) {                                                                                   \
  case 1: LOOP(1); break;                                                                          \
  case 2: LOOP(2); break;                                                                          \
  case 4: LOOP(4); break;                                                                          \
  case 8: LOOP(8); break;                                                                          \
  case 12: LOOP(12); break;                                                                        \
  case 16: LOOP(16); break;                                                                        \
  case 24: LOOP(24); break;                                                                        \
  case 32: LOOP(32); break;                                                                        \
  case 64: LOOP(64); break;                                                                        \
  default: LOOP(len); break;                                                                       \
  }

/* Four blocks of up to 16 bytes: all are read before any is written, so that no load waits for a
 * store that might be to the same place. This takes half the time of one after the other. */
ALWAYS_INLINE void move_four(char *const mem[4], char *packed, int64_t packed_stride, size_t len,
                             bool unpack)
{
  char block[4][16];
  for (int k = 0; k < 4; k++) memcpy(block[k], unpack ? packed + k * packed_stride : mem[k], len);
  for (int k = 0; k < 4; k++) memcpy(unpack ? mem[k] : packed + k * packed_stride, block[k], len);
}

/* Known at compile time, and fits a register? */
ALWAYS_INLINE bool in_fours(size_t len)
{
  return __builtin_constant_p(len) && len <= 16 && (len & (len - 1)) == 0;
}

/* n blocks at a stride on both sides. */
ALWAYS_INLINE void strided(char *mem, int64_t stride, char *packed, int64_t packed_stride,
                           int64_t n, size_t len, bool unpack)
{
  for (; in_fours(len) && n >= 4; n -= 4, mem += 4 * stride, packed += 4 * packed_stride)
    move_four((char *const[]){mem, mem + stride, mem + 2 * stride, mem + 3 * stride}, packed,
              packed_stride, len, unpack);
  for (; n > 0; n--, mem += stride, packed += packed_stride) move_bytes(mem, packed, len, unpack);
}

/* n blocks at displacements, one after the other on the packed side. */
ALWAYS_INLINE void scattered(char *mem, const int64_t *disp, char *packed, int64_t n, size_t len,
                             bool unpack)
{
  for (; in_fours(len) && n >= 4; n -= 4, disp += 4, packed += 4 * len)
    move_four((char *const[]){mem + disp[0], mem + disp[1], mem + disp[2], mem + disp[3]}, packed,
              (int64_t)len, len, unpack);
  for (; n > 0; n--, disp++, packed += len) move_bytes(mem + *disp, packed, len, unpack);
}

ALWAYS_INLINE void vector_blocks(char *mem, char *packed, int64_t n, int64_t stride, size_t len,
                                 bool unpack){
#define LOOP(k) strided(mem, stride, packed, (int64_t)(k), n, (k), unpack)
    FOR_LENGTH(len, LOOP)
#undef LOOP
}

ALWAYS_INLINE void indexed_blocks(char *mem, char *packed, int64_t n, const int64_t *disp,
                                  size_t len, bool unpack){
#define LOOP(k) scattered(mem, disp, packed, n, (k), unpack)
    FOR_LENGTH(len, LOOP)
#undef LOOP
}

ALWAYS_INLINE void index_runs(char *mem, char *packed, int64_t n, const int64_t *disp,
                              const int64_t *prefix, bool unpack)
{
  for (int64_t i = 0; i < n; i++)
    move_block(mem + disp[i], packed + prefix[i], (size_t)(prefix[i + 1] - prefix[i]), unpack);
}

ALWAYS_INLINE void grid_blocks(char *mem, char *packed, int64_t n, int64_t stride,
                               int64_t packed_stride, size_t len, bool unpack)
{
#define LOOP(k) strided(mem, stride, packed, packed_stride, n, (k), unpack)
  FOR_LENGTH(len, LOOP)
#undef LOOP
}

enum { STRUCT_ROWS = 128 };

/* n times a list of runs, an array of structs: one run of many structs after the other, so few
 * structs at a time that they stay in the cache. The bytes of data that overlap may be written in
 * any order: receiving into such a type is erroneous. */
ALWAYS_INLINE void rep_index(char *mem, char *packed, int64_t n, int64_t stride, const spx_node *c,
                             const spx_layout *l, bool unpack)
{
  const int64_t *disp = spx_layout_words(l, c->disp), *prefix = spx_layout_words(l, c->prefix);
  for (int64_t i = 0; i < n; i += STRUCT_ROWS) {
    int64_t rows = n - i < STRUCT_ROWS ? n - i : STRUCT_ROWS;
    if (rows < 4 || c->n > 32) {
      for (int64_t k = 0; k < rows; k++)
        index_runs(mem + k * stride, packed + k * c->size, c->n, disp, prefix, unpack);
    } else {
      for (int64_t k = 0; k < c->n; k++)
        grid_blocks(mem + disp[k], packed + prefix[k], rows, stride, c->size,
                    (size_t)(prefix[k + 1] - prefix[k]), unpack);
    }
    mem += rows * stride;
    packed += rows * c->size;
  }
}

enum { TILE = 8 };

/* n vectors side by side, whose blocks are nearer to those of the next vector than to each other: a
 * matrix read along its columns. Some vectors at a time, block by block, so that a line of the
 * cache is used up while it is there. */
ALWAYS_INLINE void rep_vector(char *mem, char *packed, int64_t n, int64_t stride, const spx_node *v,
                              size_t len, bool unpack)
{
  for (int64_t i = 0; i < n; i += TILE) {
    int64_t some = n - i < TILE ? n - i : TILE;
    for (int64_t k = 0; k < v->n; k++)
      grid_blocks(mem + i * stride + k * v->stride, packed + i * v->size + k * (int64_t)len, some,
                  stride, v->size, len, unpack);
  }
}

static void vector_any(walk *w, char *mem, int64_t n, int64_t stride, int64_t len)
{
  if (w->unpack)
    vector_blocks(mem, w->packed, n, stride, (size_t)len, true);
  else
    vector_blocks(mem, w->packed, n, stride, (size_t)len, false);
  w->packed += n * len;
}

static void whole(walk *w, const spx_node *nd, char *mem);

static int64_t magnitude(int64_t a) { return a < 0 ? -a : a; }

/* Whether c is a vector of short blocks for which rep_vector is the better order. */
static bool across(const spx_layout *l, const spx_node *c, int64_t n, int64_t stride)
{
  if (c->kind != SPX_L_REP || n < 4 || magnitude(stride) >= 64 ||
      magnitude(c->stride) < 2 * magnitude(stride))
    return false;
  const spx_node *block = spx_layout_node(l, c->child);
  return block->kind == SPX_L_RUN && block->size <= 32;
}

/* n times the whole of c, stride apart. */
static void whole_rep(walk *w, const spx_node *c, char *mem, int64_t n, int64_t stride)
{
  if (c->kind == SPX_L_RUN) {
    vector_any(w, mem, n, stride, c->size);
  } else if (c->kind == SPX_L_INDEX) {
    if (w->unpack)
      rep_index(mem, w->packed, n, stride, c, w->l, true);
    else
      rep_index(mem, w->packed, n, stride, c, w->l, false);
    w->packed += n * c->size;
  } else if (across(w->l, c, n, stride)) {
    size_t len = (size_t)spx_layout_node(w->l, c->child)->size;
    if (w->unpack)
      rep_vector(mem, w->packed, n, stride, c, len, true);
    else
      rep_vector(mem, w->packed, n, stride, c, len, false);
    w->packed += n * c->size;
  } else {
    for (int64_t i = 0; i < n; i++, mem += stride) whole(w, c, mem);
  }
}

/* Entries [i, j) of a block node. */
static void whole_blocks(walk *w, const spx_node *nd, char *mem, int64_t i, int64_t j)
{
  const int64_t *disp = spx_layout_words(w->l, nd->disp);
  const spx_node *c = spx_layout_node(w->l, nd->child);
  if (c->kind != SPX_L_RUN) {
    for (; i < j; i++) whole(w, c, mem + disp[i]);
  } else if (i < j) {
    if (w->unpack)
      indexed_blocks(mem, w->packed, j - i, disp + i, (size_t)c->size, true);
    else
      indexed_blocks(mem, w->packed, j - i, disp + i, (size_t)c->size, false);
    w->packed += (j - i) * c->size;
  }
}

/* Entries [i, j) of an index node. */
static void whole_runs(walk *w, const spx_node *nd, char *mem, int64_t i, int64_t j)
{
  const int64_t *disp = spx_layout_words(w->l, nd->disp),
                *prefix = spx_layout_words(w->l, nd->prefix);
  if (i >= j) return;
  char *base = w->packed - prefix[i];
  if (w->unpack)
    index_runs(mem, base, j - i, disp + i, prefix + i, true);
  else
    index_runs(mem, base, j - i, disp + i, prefix + i, false);
  w->packed = base + prefix[j];
}

/* All bytes of a node. */
static void whole(walk *w, const spx_node *nd, char *mem)
{
  switch (nd->kind) {
  case SPX_L_RUN:
    move_block(mem, w->packed, (size_t)nd->size, w->unpack);
    w->packed += nd->size;
    break;
  case SPX_L_REP: whole_rep(w, spx_layout_node(w->l, nd->child), mem, nd->n, nd->stride); break;
  case SPX_L_BLOCK: whole_blocks(w, nd, mem, 0, nd->n); break;
  case SPX_L_INDEX: whole_runs(w, nd, mem, 0, nd->n); break;
  default: {
    const int64_t *disp = spx_layout_words(w->l, nd->disp),
                  *kids = spx_layout_words(w->l, nd->kids);
    for (int64_t i = 0; i < nd->n; i++) whole(w, spx_layout_node(w->l, kids[i]), mem + disp[i]);
  }
  }
}

int64_t spx_layout_entry(const int64_t *prefix, int64_t n, int64_t at)
{
  int64_t lo = 0, hi = n; /* prefix[lo] <= at < prefix[hi] */
  while (hi - lo > 1) {
    int64_t mid = lo + (hi - lo) / 2;
    if (prefix[mid] <= at)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

static void part(walk *w, const spx_node *nd, char *mem, int64_t from, int64_t to);

/* Bytes [from, to) of n times c: a first piece, whole ones, a last piece. at(i) is the memory of
 * entry i. */
#define PIECES(c, from, to, AT, WHOLE)                                                             \
  do {                                                                                             \
    int64_t cs = (c)->size, i = (from) / cs, j = (to) / cs, a = (from)-i * cs, b = (to)-j * cs;    \
    if (i == j) {                                                                                  \
      part(w, c, AT(i), a, b);                                                                     \
    } else {                                                                                       \
      if (a) {                                                                                     \
        part(w, c, AT(i), a, cs);                                                                  \
        i++;                                                                                       \
      }                                                                                            \
      WHOLE(i, j);                                                                                 \
      if (b) part(w, c, AT(j), 0, b);                                                              \
    }                                                                                              \
  } while (0)

static void part_rep(walk *w, const spx_node *c, char *mem, int64_t stride, int64_t from,
                     int64_t to)
{
#define AT(i) (mem + (i)*stride)
#define WHOLE(i, j)                                                                                \
  if ((j) > (i)) whole_rep(w, c, AT(i), (j) - (i), stride)
  PIECES(c, from, to, AT, WHOLE);
#undef AT
#undef WHOLE
}

static void part_blocks(walk *w, const spx_node *nd, char *mem, int64_t from, int64_t to)
{
  const int64_t *disp = spx_layout_words(w->l, nd->disp);
  const spx_node *c = spx_layout_node(w->l, nd->child);
#define AT(i)       (mem + disp[i])
#define WHOLE(i, j) whole_blocks(w, nd, mem, i, j)
  PIECES(c, from, to, AT, WHOLE);
#undef AT
#undef WHOLE
}

static void part_list(walk *w, const spx_node *nd, char *mem, int64_t from, int64_t to)
{
  const int64_t *disp = spx_layout_words(w->l, nd->disp),
                *prefix = spx_layout_words(w->l, nd->prefix);
  for (int64_t i = spx_layout_entry(prefix, nd->n, from); from < to; i++) {
    int64_t end = prefix[i + 1] < to ? prefix[i + 1] : to;
    if (nd->kind == SPX_L_LIST) {
      const int64_t *kids = spx_layout_words(w->l, nd->kids);
      part(w, spx_layout_node(w->l, kids[i]), mem + disp[i], from - prefix[i], end - prefix[i]);
    } else if (from > prefix[i] || end < prefix[i + 1]) {
      move_block(mem + disp[i] + (from - prefix[i]), w->packed, (size_t)(end - from), w->unpack);
      w->packed += end - from;
    } else { /* whole runs from here on: all of them in one loop */
      int64_t j = to == nd->size ? nd->n : spx_layout_entry(prefix, nd->n, to);
      whole_runs(w, nd, mem, i, j);
      end = prefix[j];
      i = j - 1;
    }
    from = end;
  }
}

/* Bytes [from, to) of a node's packed form, from < to <= size, or nothing when from == to. */
static void part(walk *w, const spx_node *nd, char *mem, int64_t from, int64_t to)
{
  if (from >= to) return;
  if (from == 0 && to == nd->size) {
    whole(w, nd, mem);
    return;
  }
  switch (nd->kind) {
  case SPX_L_RUN:
    move_block(mem + from, w->packed, (size_t)(to - from), w->unpack);
    w->packed += to - from;
    break;
  case SPX_L_REP: part_rep(w, spx_layout_node(w->l, nd->child), mem, nd->stride, from, to); break;
  case SPX_L_BLOCK: part_blocks(w, nd, mem, from, to); break;
  default: part_list(w, nd, mem, from, to); break;
  }
}

static void run(char *buf, const spx_type *t, int64_t from, int64_t to, char *packed, bool unpack)
{
  if (from >= to) return;
  if (t->flags & SPX_T_CONTIG) {
    move_bytes(buf + from, packed, (size_t)(to - from), unpack);
    return;
  }
  walk w = {.l = t->layout, .packed = packed, .unpack = unpack};
  part_rep(&w, spx_layout_node(w.l, w.l->root), buf + w.l->offset, t->extent, from, to);
}

void spx_pack(const void *buf, int64_t count, const spx_type *t, int64_t from, int64_t to,
              void *packed)
{
  (void)count;
  run((char *)(uintptr_t)buf, t, from, to, packed, false);
}

void spx_unpack(void *buf, int64_t count, const spx_type *t, int64_t from, int64_t to,
                const void *packed)
{
  (void)count;
  run(buf, t, from, to, (char *)(uintptr_t)packed, true);
}

void spx_type_release(spx_type *t)
{
  free((void *)(uintptr_t)t->layout);
  free((void *)(uintptr_t)t->typed);
  t->layout = t->typed = NULL;
}

/* Every pair is its value and then its index; merged into one run where no gap is between them. */
void spx_layout_of_pair(spx_type *t)
{
  const spx_basic *b = &spx_basics[t->basic], *v = &spx_basics[b->value],
                  *x = &spx_basics[b->index];
  enum {
    HEAD = sizeof(spx_layout) / sizeof(int64_t),
    TAB = HEAD + 3 * SPX_NODE_WORDS,
    WORDS = TAB + 2 + 3 + 2
  };
  int64_t *p = calloc(WORDS, sizeof *p);
  if (!p) spx_fatal(MPI_ERR_NO_MEM, "no memory for the layout of %s", b->name);
  *(spx_layout *)p = (spx_layout){.words = WORDS, .root = HEAD, .ext32 = b->ext32};
  spx_node *root = (spx_node *)(p + HEAD);
  root[0] = (spx_node){.kind = SPX_L_LIST,
                       .size = b->size,
                       .n = 2,
                       .disp = TAB,
                       .prefix = TAB + 2,
                       .kids = TAB + 5,
                       .basic = b->value == b->index ? b->value : 0,
                       .elements = 2};
  root[1] = (spx_node){.kind = SPX_L_RUN, .size = v->size, .basic = b->value, .elements = 1};
  root[2] = (spx_node){.kind = SPX_L_RUN, .size = x->size, .basic = b->index, .elements = 1};
  int64_t tab[] = {
      0, b->index_at, 0, v->size, b->size, HEAD + SPX_NODE_WORDS, HEAD + 2 * SPX_NODE_WORDS};
  memcpy(p + TAB, tab, sizeof tab);
  t->typed = (spx_layout *)p;
  if (t->flags & SPX_T_CONTIG) return;
  int64_t *q = malloc(WORDS * sizeof *q);
  if (!q) spx_fatal(MPI_ERR_NO_MEM, "no memory for the layout of %s", b->name);
  memcpy(q, p, WORDS * sizeof *q);
  ((spx_node *)(q + HEAD))->kind = SPX_L_INDEX; /* two runs: the quick form, without types */
  t->layout = (spx_layout *)q;
}
