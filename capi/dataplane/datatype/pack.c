/* pack.c - runs layouts: packs and unpacks any byte range of the packed form, and lists the memory
 * behind it.
 *
 * The walk knows the direction at run time; the loops over blocks know it, and the block's length
 * where it is common, at compile time. Nothing here allocates or fails: buffers, counts and ranges
 * have been checked. */
#include "pack.h"
#include "basic.h"
#include "pack_kernels.h"
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

typedef struct {
  const spx_layout *l;
  char *packed; /* next byte of the packed side */
  bool unpack;
} walk;

static int64_t magnitude(int64_t a) { return a < 0 ? -a : a; }

/* Rows of several runs, an array of structs: one pass over many rows after the other, so few at a
 * time that they stay in the cache. The bytes of data that overlap may be written in any order:
 * receiving into such a type is erroneous. */
static void run_passes(const walk *w, const rows *all, const spx_node *c)
{
  rows r = *all;
  const int64_t *moves = spx_layout_words(w->l, c->moves);
  const spx_pass *p = (const spx_pass *)(moves + 1);
  int64_t left = r.n, apart = r.at ? 2 * c->size : magnitude(r.stride),
          most = 1 + (16 << 10) / (apart > c->size ? apart : c->size);
  if (most < 8) most = 8;
  if (*moves == 1) most = left;
  for (; left > 0; left -= most) {
    r.n = left < most ? left : most;
    for (int64_t i = 0; i < *moves; i++) run_pass(&r, &p[i], w->unpack);
    r.mem += r.n * r.stride;
    r.packed += r.n * r.packed_stride;
    if (r.at) r.at += r.n;
  }
}

/* Eight vectors side by side, without a gap between their blocks: a line of the cache at once. */
ALWAYS_INLINE void tile(char *mem, char *packed, const spx_node *v, size_t h, bool unpack)
{
  const int64_t size = v->size, stride = v->stride;
  for (int64_t i = v->n; i > 0; i--, mem += stride, packed += h)
    for (int half = 0; half < 8; half += 4) {
      char block[4][16], *p = packed + half * size, *m = mem + half * (int64_t)h;
      for (int j = 0; j < 4; j++) memcpy(block[j], unpack ? p + j * size : m + j * (int64_t)h, h);
      for (int j = 0; j < 4; j++) memcpy(unpack ? m + j * (int64_t)h : p + j * size, block[j], h);
    }
}

static void run_tile(char *mem, char *packed, const spx_node *v, int64_t len, bool unpack)
{
  switch (unpack ? len : -len) {
  case 4: tile(mem, packed, v, 4, true); break;
  case 8: tile(mem, packed, v, 8, true); break;
  case 16: tile(mem, packed, v, 16, true); break;
  case -4: tile(mem, packed, v, 4, false); break;
  case -8: tile(mem, packed, v, 8, false); break;
  default: tile(mem, packed, v, 16, false); break;
  }
}

/* n vectors side by side, whose blocks are nearer to those of the next vector than to each other: a
 * matrix read along its columns. Some vectors at a time, block by block, so that a line of the
 * cache is used up while it is there. */
static void run_across(const walk *w, const spx_node *v, char *mem, int64_t n, int64_t stride,
                       int64_t len)
{
  spx_pass one = pass_of(len), p;
  if (one.last != one.bytes) one.mem[1] = len - one.bytes; /* overlapping */
  int64_t some, whole = stride == len && (len == 4 || len == 8 || len == 16) ? n / 8 * 8 : 0;
  char *packed = w->packed;
  for (int64_t i = 0; i < n; i += some) {
    if (i < whole) {
      some = 8;
      run_tile(mem + i * stride, packed + i * v->size, v, len, w->unpack);
      continue;
    }
    some = 4 / one.moves < n - i ? 4 / one.moves : n - i;
    p = (spx_pass){.bytes = one.bytes, .last = one.bytes, .moves = some * one.moves};
    for (int64_t k = 0; k < p.moves; k++) {
      p.mem[k] = (i + k / one.moves) * stride + one.mem[k % one.moves];
      p.packed[k] = (i + k / one.moves) * v->size + one.mem[k % one.moves];
    }
    run_pass(&(rows){mem, packed, v->n, v->stride, len, NULL, 1, 0, 0}, &p, w->unpack);
  }
}

static void whole(walk *w, const spx_node *nd, char *mem);

/* The bytes of a block when c is a vector of short ones for which run_across is the better order;
 * else 0. */
static int64_t across(const spx_layout *l, const spx_node *c, int64_t n, int64_t stride)
{
  if (c->kind != SPX_L_REP || n < 2 || magnitude(stride) >= 64 ||
      magnitude(c->stride) < 2 * magnitude(stride))
    return 0;
  const spx_node *block = spx_layout_node(l, c->child);
  return block->kind == SPX_L_RUN && block->size <= 32 ? block->size : 0;
}

/* Whether n times c, stride apart, are blocks of a length in a loop of loops: the rows of that. */
static bool vector_of(const spx_layout *l, const spx_node *c, char *mem, char *packed, int64_t n,
                      int64_t stride, rows *r)
{
  if (c->kind != SPX_L_REP && (c->kind != SPX_L_BLOCK || c->near == 0)) return false;
  const spx_node *block = spx_layout_node(l, c->child);
  if (block->kind != SPX_L_RUN) return false;
  *r = (rows){mem, packed, c->n, c->stride, block->size, NULL, n, stride, c->size};
  if (c->kind == SPX_L_BLOCK) r->at = (const int32_t *)spx_layout_words(l, c->near);
  return true;
}

/* n times the whole of c, stride apart. */
static void whole_rep(walk *w, const spx_node *c, char *mem, int64_t n, int64_t stride)
{
  rows r;
  int64_t len;
  while (c->kind == SPX_L_REP && c->n * c->stride == stride) { /* one longer vector */
    n *= c->n;
    stride = c->stride;
    c = spx_layout_node(w->l, c->child);
  }
  if (c->kind == SPX_L_RUN) {
    run_blocks(&(rows){mem, w->packed, n, stride, c->size, NULL, 1, 0, 0}, c->size, w->unpack);
  } else if (c->moves && n > 1) {
    run_passes(w, &(rows){mem, w->packed, n, stride, c->size, NULL, 1, 0, 0}, c);
  } else if ((len = across(w->l, c, n, stride))) {
    run_across(w, c, mem, n, stride, len);
  } else if (vector_of(w->l, c, mem, w->packed, n, stride, &r)) {
    run_blocks(&r, r.packed_stride, w->unpack);
  } else {
    for (int64_t i = 0; i < n; i++, mem += stride) whole(w, c, mem);
    return;
  }
  w->packed += n * c->size;
}

/* Entries [i, j) of a block node. */
static void whole_blocks(walk *w, const spx_node *nd, char *mem, int64_t i, int64_t j)
{
  const int64_t *disp = spx_layout_words(w->l, nd->disp);
  const spx_node *c = spx_layout_node(w->l, nd->child);
  if (i >= j) return;
  if (nd->near == 0) {
    for (; i < j; i++) whole(w, c, mem + disp[i]);
    return;
  }
  const int32_t *near = (const int32_t *)spx_layout_words(w->l, nd->near);
  rows r = {mem, w->packed, j - i, 0, c->size, near + i, 1, 0, 0};
  if (c->kind == SPX_L_RUN)
    run_blocks(&r, c->size, w->unpack);
  else
    run_passes(w, &r, c);
  w->packed += (j - i) * c->size;
}

ALWAYS_INLINE void index_runs(char *mem, char *packed, int64_t n, const int64_t *disp,
                              const int64_t *prefix, bool unpack)
{
  for (int64_t i = 0; i < n; i++)
    move_block(mem + disp[i], packed + prefix[i], (size_t)(prefix[i + 1] - prefix[i]), unpack);
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
  const spx_node *root = spx_layout_node(w.l, w.l->root);
  if (from == 0 && to == root->size)
    whole(&w, root, buf + w.l->offset);
  else
    part_rep(&w, root, buf + w.l->offset, t->extent, from, to);
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
