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

enum {
  MOST_SHORT = 64,  /* bytes of a block that is moved by a kernel */
  MOST_INLINE = 192 /* longer ones are memcpy's, which has wider registers */
};

/* n to 2n bytes, by two moves that may overlap. */
ALWAYS_INLINE void move_two(char *mem, char *packed, size_t len, size_t n, bool unpack)
{
  move_bytes(mem, packed, n, unpack);
  move_bytes(mem + len - n, packed + len - n, n, unpack);
}

/* A block of any length: short ones without a call. */
ALWAYS_INLINE void move_block(char *mem, char *packed, size_t len, bool unpack)
{
  if (len >= 8 && len <= 16)
    move_two(mem, packed, len, 8, unpack);
  else if (len > 16 && len <= 32)
    move_two(mem, packed, len, 16, unpack);
  else if (len > 32 && len <= 64)
    move_two(mem, packed, len, 32, unpack);
  else if (len > 64)
    move_bytes(mem, packed, len, unpack);
  else if (len >= 4)
    move_two(mem, packed, len, 4, unpack);
  else if (len >= 2)
    move_two(mem, packed, len, 2, unpack);
  else
    move_bytes(mem, packed, len, unpack);
}

/* ---- kernels ----
 * Rows are at a stride, or at places of their own, on the memory's side, and at a stride on the
 * packed side; so many of them, and all that again further on. A row is up to four moves, those of
 * a pass, or of a block of a known length. All of some rows is read before any
 * of it is written, so that no load waits for a store that might be to the same place. */
typedef struct {
  char *mem, *packed;
  int64_t n, stride, packed_stride;
  const int32_t *at; /* NULL: at the stride */
  int64_t times, further, packed_further;
} rows;

#define ROW(u, some) ((u) >= (some) ? m : scattered ? m + at[u] : m + (u)*stride)
/* Does SOME(rows, memory of each, packed) for all rows, ahead at a time. */
#define ALL_ROWS(r, scattered, ahead, packed_stride, SOME)                                         \
  do {                                                                                             \
    char *mem_ = (r)->mem, *packed_ = (r)->packed;                                                 \
    const int64_t stride = (r)->stride, n_ = (r)->n, further_ = (r)->further,                      \
                  packed_further_ = (r)->packed_further;                                           \
    for (int64_t t = (r)->times; t > 0; t--, mem_ += further_, packed_ += packed_further_) {       \
      char *m = mem_, *packed = packed_;                                                           \
      const int32_t *at = (r)->at;                                                                 \
      int64_t n = n_;                                                                              \
      for (; n >= (ahead); n -= (ahead), packed += (ahead) * (packed_stride)) {                    \
        char *const row[4] = {ROW(0, ahead), ROW(1, ahead), ROW(2, ahead), ROW(3, ahead)};         \
        SOME(ahead, row, packed);                                                                  \
        if (scattered)                                                                             \
          at += (ahead);                                                                           \
        else                                                                                       \
          m += (ahead)*stride;                                                                     \
      }                                                                                            \
      for (; (ahead) > 1 && n > 0; n--, packed += (packed_stride)) {                               \
        char *const row[4] = {ROW(0, 1)};                                                          \
        SOME(1, row, packed);                                                                      \
        if (scattered)                                                                             \
          at++;                                                                                    \
        else                                                                                       \
          m += stride;                                                                             \
      }                                                                                            \
    }                                                                                              \
  } while (0)

/* k moves of h bytes, the last of them of last bytes. */
ALWAYS_INLINE void move_rows(const rows *r, int64_t packed_stride, const spx_pass *pass, size_t h,
                             size_t last, int k, bool scattered, bool unpack)
{
  int64_t off[4] = {0}, to[4] = {0}; /* from the first move on */
  for (int j = 1; j < k; j++) {
    off[j] = pass->mem[j] - pass->mem[0];
    to[j] = pass->packed[j] - pass->packed[0];
  }
  rows from = *r;
  from.mem += pass->mem[0];
  from.packed += pass->packed[0];
#define SOME(some, row, packed)                                                                    \
  do {                                                                                             \
    char block[4][4][16];                                                                          \
    for (int u = 0; u < (some); u++)                                                               \
      for (int j = 0; j < k; j++)                                                                  \
        memcpy(block[u][j], unpack ? packed + u *packed_stride + to[j] : row[u] + off[j],          \
               j < k - 1 ? h : last);                                                              \
    for (int u = 0; u < (some); u++)                                                               \
      for (int j = 0; j < k; j++)                                                                  \
        memcpy(unpack ? row[u] + off[j] : packed + u * packed_stride + to[j], block[u][j],         \
               j < k - 1 ? h : last);                                                              \
  } while (0)
  if (k == 1)
    ALL_ROWS(&from, scattered, 4, packed_stride, SOME);
  else if (k == 2)
    ALL_ROWS(&from, scattered, 2, packed_stride, SOME);
  else
    ALL_ROWS(&from, scattered, 1, packed_stride, SOME);
#undef SOME
}

typedef void kernel(const rows *r, const spx_pass *p, bool unpack);
/* All kernels of passes: uniform ones, and pairs of a move and a shorter one. */
#define UNIFORM(X, h) X(h, h, 1) X(h, h, 2) X(h, h, 3) X(h, h, 4)
#define PAIRS(X)                                                                                   \
  X(2, 1, 2)                                                                                       \
  X(4, 1, 2)                                                                                       \
  X(4, 2, 2) X(8, 1, 2) X(8, 2, 2) X(8, 4, 2) X(16, 1, 2) X(16, 2, 2) X(16, 4, 2) X(16, 8, 2)
#define PASSES(X) UNIFORM(X, 1) UNIFORM(X, 2) UNIFORM(X, 4) UNIFORM(X, 8) UNIFORM(X, 16) PAIRS(X)
#define KERNEL(h, last, k)                                                                         \
  static void strided_##h##_##last##_##k(const rows *r, const spx_pass *p, bool unpack)            \
  {                                                                                                \
    if (unpack)                                                                                    \
      move_rows(r, r->packed_stride, p, h, last, k, false, true);                                  \
    else                                                                                           \
      move_rows(r, r->packed_stride, p, h, last, k, false, false);                                 \
  }                                                                                                \
  static void placed_##h##_##last##_##k(const rows *r, const spx_pass *p, bool unpack)             \
  {                                                                                                \
    if (unpack)                                                                                    \
      move_rows(r, r->packed_stride, p, h, last, k, true, true);                                   \
    else                                                                                           \
      move_rows(r, r->packed_stride, p, h, last, k, true, false);                                  \
  }
PASSES(KERNEL)
enum { LOG_1, LOG_2, LOG_4, LOG_8, LOG_16 };
#define STRIDED(h, last, k) [LOG_##h][LOG_##last][k - 1] = strided_##h##_##last##_##k,
#define PLACED(h, last, k)  [LOG_##h][LOG_##last][k - 1] = placed_##h##_##last##_##k,
static kernel *const kernels[2][5][5][4] = {{PASSES(STRIDED)}, {PASSES(PLACED)}};

static void run_pass(const rows *r, const spx_pass *p, bool unpack)
{
  kernels[r->at != NULL][__builtin_ctz((unsigned)p->bytes)][__builtin_ctz((unsigned)p->last)]
         [p->moves - 1](r, p, unpack);
}

/* The moves of a block of up to 64 bytes. */
static spx_pass pass_of(int64_t len)
{
  int64_t h = len >= 16 ? 16 : 1 << (31 - __builtin_clz((unsigned)len)), k = (len + h - 1) / h,
          rest = len - h;
  spx_pass p = {.bytes = h, .last = h, .moves = k};
  if (k == 2 && (rest & (rest - 1)) == 0) p.last = rest;
  for (int64_t j = 0; j < k; j++) p.mem[j] = p.packed[j] = j < k - 1 ? j * h : len - p.last;
  return p;
}

/* Every second or fourth of small elements, which the compiler does for many at a time. */
#define EVERY(T, s)                                                                                \
  static __attribute__((noinline)) void every_##T##_##s(const void *restrict mem,                  \
                                                        void *restrict packed, int64_t n)          \
  {                                                                                                \
    typedef T##_t __attribute__((aligned(1), may_alias)) loose;                                    \
    for (int64_t i = 0; i < n; i++) ((loose *)packed)[i] = ((const loose *)mem)[(s)*i];            \
  }
EVERY(uint8, 2)
EVERY(uint16, 2)
EVERY(uint32, 2)
EVERY(uint64, 2)
EVERY(uint8, 4)
EVERY(uint16, 4)
EVERY(uint32, 4)

static bool pack_every(const rows *r, int64_t len)
{
  typedef void every(const void *restrict mem, void *restrict packed, int64_t n);
  static every *const all[2][9] = {
      {[1] = every_uint8_2, [2] = every_uint16_2, [4] = every_uint32_2, [8] = every_uint64_2},
      {[1] = every_uint8_4, [2] = every_uint16_4, [4] = every_uint32_4}};
  bool fourth = r->stride == 4 * len;
  if (len > 8 || (r->stride != 2 * len && !fourth) || !all[fourth][len]) return false;
  for (int64_t t = 0; t < r->times; t++)
    all[fourth][len](r->mem + t * r->further, r->packed + t * r->packed_further, r->n);
  return true;
}

/* Blocks of more than 64 bytes, up to MOST_INLINE without a call: the last 64 bytes of one may
 * overlap those before. */
ALWAYS_INLINE void long_rows(const rows *r, size_t len, bool unpack)
{
  const int64_t n = r->n, stride = r->stride, times = r->times;
  const int32_t *at = r->at;
  for (int64_t t = 0; t < times; t++) {
    char *mem = r->mem + t * r->further, *packed = r->packed + t * r->packed_further;
    if (len <= MOST_INLINE)
      for (int64_t i = 0; i < n; i++, packed += len) {
        char *from = at ? mem + at[i] : mem + i * stride;
        for (size_t k = 0; k < len - 64; k += 64) move_bytes(from + k, packed + k, 64, unpack);
        move_bytes(from + len - 64, packed + len - 64, 64, unpack);
      }
    else
      for (int64_t i = 0; i < n; i++, packed += len)
        move_bytes(at ? mem + at[i] : mem + i * stride, packed, len, unpack);
  }
}

/* Rows of one block each, of a length that is known at compile time. */
ALWAYS_INLINE void block_rows(const rows *r, int64_t len, bool scattered, bool unpack)
{
  const int64_t h = len >= 16  ? 16
                    : len >= 8 ? 8
                               : len,
                k = (len + h - 1) / h, last = len - (k - 1) * h;
  const spx_pass p = {h, last, k, {0, h, 2 * h, 3 * h}, {0, h, 2 * h, 3 * h}};
  move_rows(r, len, &p, (size_t)h, (size_t)last, (int)k, scattered, unpack);
}

#define COMMON(X) X(1) X(2) X(4) X(8) X(12) X(16) X(24) X(32) X(48) X(64)
#define CASE(k)                                                                                    \
  case k: block_rows(r, k, scattered, unpack); break;

/* Rows of one block each. */
ALWAYS_INLINE void any_blocks(const rows *r, int64_t len, bool scattered, bool unpack)
{
  switch (len) {
    COMMON(CASE)
  default:
    if (len <= MOST_SHORT) {
      spx_pass p = pass_of(len);
      run_pass(r, &p, unpack);
    } else {
      long_rows(r, (size_t)len, unpack);
    }
  }
}

static void run_blocks(const rows *r, int64_t len, bool unpack)
{
  if (unpack && r->at)
    any_blocks(r, len, true, true);
  else if (unpack)
    any_blocks(r, len, false, true);
  else if (r->at)
    any_blocks(r, len, true, false);
  else if (!pack_every(r, len))
    any_blocks(r, len, false, false);
}

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
