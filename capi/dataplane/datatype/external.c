/* external.c - the "external32" representation: big-endian, sizes of the standard's table, no gaps.
 * MPI-5.0, 14.5.2. Integers that are longer here than there keep their low bytes, and come back
 * sign-extended. */
#include "basic.h"
#include "pack.h"
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Reverses len bytes; in and out do not overlap. */
ALWAYS_INLINE void swap_one(unsigned char *out, const unsigned char *in, size_t len)
{
  for (size_t k = 0; k < len; k++) out[k] = in[len - 1 - k];
}

#define SWAP_LOOP(bits)                                                                            \
  for (int64_t i = 0; i < n; i++) {                                                                \
    uint##bits##_t v;                                                                              \
    memcpy(&v, in + i * (bits / 8), bits / 8);                                                     \
    v = __builtin_bswap##bits(v);                                                                  \
    memcpy(out + i * (bits / 8), &v, bits / 8);                                                    \
  }

/* n values of len bytes, as long there as here. */
static void swap_all(unsigned char *out, const unsigned char *in, int64_t n, size_t len)
{
  switch (len) {
  case 1: memcpy(out, in, (size_t)n); break;
  case 2: SWAP_LOOP(16) break;
  case 4: SWAP_LOOP(32) break;
  case 8: SWAP_LOOP(64) break;
  default:
    for (int64_t i = 0; i < n; i++) swap_one(out + i * (int64_t)len, in + i * (int64_t)len, len);
  }
}

/* n integers of here bytes to there < here bytes, low bytes only. */
static void narrow(unsigned char *out, const unsigned char *in, int64_t n, int here, int there)
{
  for (int64_t i = 0; i < n; i++, in += here, out += there) swap_one(out, in, (size_t)there);
}

static void widen(unsigned char *out, const unsigned char *in, int64_t n, int here, int there,
                  bool is_signed)
{
  for (int64_t i = 0; i < n; i++, in += there, out += here) {
    swap_one(out, in, (size_t)there);
    memset(out + there, is_signed && (in[0] & 0x80) ? 0xff : 0, (size_t)(here - there));
  }
}

static void x87_to_quad(unsigned char *out, const unsigned char *in, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    long double x;
    memcpy(&x, in + i * 16, 16);
    spx_real16 q = x;
    swap_one(out + i * 16, (const unsigned char *)&q, 16);
  }
}

static void quad_to_x87(unsigned char *out, const unsigned char *in, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    spx_real16 q;
    swap_one((unsigned char *)&q, in + i * 16, 16);
    long double x = (long double)q;
    memset(out + i * 16, 0, 16);
    memcpy(out + i * 16, &x, 10);
  }
}

/* Converts n elements of a basic type that is not a pair. */
static void convert(const spx_basic *b, unsigned char *mem, unsigned char *ext, int64_t n,
                    bool unpack)
{
  unsigned char *out = unpack ? mem : ext, *in = unpack ? ext : mem;
  int here = b->size, there = b->ext32;
  if (b->cls == SPX_BC_COMPLEX) {
    n *= 2;
    here /= 2;
    there /= 2;
  }
  if (b->format == SPX_BF_X87) {
    if (unpack)
      quad_to_x87(out, in, n);
    else
      x87_to_quad(out, in, n);
  } else if (here == there) {
    swap_all(out, in, n, (size_t)here);
  } else if (unpack) {
    widen(out, in, n, here, there, b->cls == SPX_BC_INT);
  } else {
    narrow(out, in, n, here, there);
  }
}

typedef struct {
  const spx_layout *l;
  unsigned char *ext;
  bool unpack;
} walk;

static void convert_run(walk *w, int64_t basic, char *mem, int64_t bytes)
{
  const spx_basic *b = &spx_basics[basic];
  int64_t n = bytes / b->size;
  convert(b, (unsigned char *)mem, w->ext, n, w->unpack);
  w->ext += n * b->ext32;
}

/* basic is that of all data when the layout itself does not say. */
static void convert_node(walk *w, const spx_node *nd, int64_t basic, char *mem)
{
  if (nd->basic) basic = nd->basic;
  const int64_t *disp = spx_layout_words(w->l, nd->disp),
                *prefix = spx_layout_words(w->l, nd->prefix);
  const spx_node *c = spx_layout_node(w->l, nd->child);
  switch (nd->kind) {
  case SPX_L_RUN: convert_run(w, basic, mem, nd->size); break;
  case SPX_L_REP:
    for (int64_t i = 0; i < nd->n; i++) convert_node(w, c, basic, mem + i * nd->stride);
    break;
  case SPX_L_BLOCK:
    for (int64_t i = 0; i < nd->n; i++) convert_node(w, c, basic, mem + disp[i]);
    break;
  case SPX_L_INDEX:
    for (int64_t i = 0; i < nd->n; i++)
      convert_run(w, basic, mem + disp[i], prefix[i + 1] - prefix[i]);
    break;
  default: {
    const int64_t *kids = spx_layout_words(w->l, nd->kids);
    for (int64_t i = 0; i < nd->n; i++)
      convert_node(w, spx_layout_node(w->l, kids[i]), basic, mem + disp[i]);
  }
  }
}

static void convert_elements(char *mem, int64_t count, const spx_type *t, char *ext, bool unpack)
{
  if (t->size == 0 || count == 0) return;
  walk w = {.l = t->typed ? t->typed : t->layout, .ext = (unsigned char *)ext, .unpack = unpack};
  if (!w.l) {
    convert_run(&w, t->basic, mem, count * t->size);
    return;
  }
  const spx_node *root = spx_layout_node(w.l, w.l->root);
  for (int64_t i = 0; i < count; i++)
    convert_node(&w, root, t->basic, mem + w.l->offset + i * t->extent);
}

int64_t spx_external_size(const spx_type *t)
{
  if (t->size == 0) return 0;
  if (t->typed) return t->typed->ext32;
  return t->size / spx_basics[t->basic].size * spx_basics[t->basic].ext32;
}

void spx_external_pack(const void *buf, int64_t count, const spx_type *t, void *out)
{
  convert_elements((char *)(uintptr_t)buf, count, t, out, false);
}

void spx_external_unpack(void *buf, int64_t count, const spx_type *t, const void *in)
{
  convert_elements(buf, count, t, (char *)(uintptr_t)in, true);
}
