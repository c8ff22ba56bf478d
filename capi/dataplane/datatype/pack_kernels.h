/* pack_kernels.h - the loops of the packer: blocks and rows of a length that is known at compile
 * time. They know memory and counts, no datatypes: pack.c alone includes this, and decides which
 * kernel runs. */
#ifndef SPX_PACK_KERNELS_H
#define SPX_PACK_KERNELS_H
#include "pack.h"
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

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
#endif
