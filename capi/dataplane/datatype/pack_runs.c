/* pack_runs.c - what is asked about a layout without copying: the memory runs behind a byte range,
 * and how many basic elements a number of packed bytes holds. */
#include "basic.h"
#include "pack.h"
#include <sys/uio.h>

enum {
  LONG_RUN = 4096, /* bytes: a mean run from which on a message is read run by run */
  LONG_RUNS = 64   /* so many are looked at */
};

typedef struct {
  const spx_layout *l;
  struct iovec *iov;
  int n, max;
  int64_t done;
} lister;

/* Adds a run, joined to the one before when it goes on there; false when there is no room. */
static bool emit(lister *s, char *mem, int64_t len)
{
  if (s->n && (char *)s->iov[s->n - 1].iov_base + s->iov[s->n - 1].iov_len == mem) {
    s->iov[s->n - 1].iov_len += (size_t)len;
  } else {
    if (s->n == s->max) return false;
    s->iov[s->n++] = (struct iovec){mem, (size_t)len};
  }
  s->done += len;
  return true;
}

static bool list(lister *s, const spx_node *nd, char *mem, int64_t from, int64_t to);

/* Entries of equal size: child i at mem + disp[i], or at mem + i * stride when disp is NULL. */
static bool list_equal(lister *s, const spx_node *c, char *mem, const int64_t *disp, int64_t stride,
                       int64_t from, int64_t to)
{
  if (!disp && c->kind == SPX_L_RUN && c->size == stride) return emit(s, mem + from, to - from);
  for (int64_t i = from / c->size; from < to; i++) {
    int64_t start = i * c->size, end = to - start < c->size ? to : start + c->size;
    if (!list(s, c, mem + (disp ? disp[i] : i * stride), from - start, end - start)) return false;
    from = end;
  }
  return true;
}

static bool list_entries(lister *s, const spx_node *nd, char *mem, int64_t from, int64_t to)
{
  const int64_t *disp = spx_layout_words(s->l, nd->disp),
                *prefix = spx_layout_words(s->l, nd->prefix);
  for (int64_t i = spx_layout_entry(prefix, nd->n, from); from < to; i++) {
    int64_t end = prefix[i + 1] < to ? prefix[i + 1] : to, a = from - prefix[i],
            b = end - prefix[i];
    bool room = nd->kind == SPX_L_INDEX
                    ? emit(s, mem + disp[i] + a, b - a)
                    : list(s, spx_layout_node(s->l, spx_layout_words(s->l, nd->kids)[i]),
                           mem + disp[i], a, b);
    if (!room) return false;
    from = end;
  }
  return true;
}

/* Lists the runs behind bytes [from, to) of a node; false when the room ran out. */
static bool list(lister *s, const spx_node *nd, char *mem, int64_t from, int64_t to)
{
  switch (nd->kind) {
  case SPX_L_RUN: return emit(s, mem + from, to - from);
  case SPX_L_REP:
    return list_equal(s, spx_layout_node(s->l, nd->child), mem, NULL, nd->stride, from, to);
  case SPX_L_BLOCK:
    return list_equal(s, spx_layout_node(s->l, nd->child), mem, spx_layout_words(s->l, nd->disp), 0,
                      from, to);
  default: return list_entries(s, nd, mem, from, to);
  }
}

int spx_iovecs(const void *buf, int64_t count, const spx_type *t, int64_t from, int64_t to,
               struct iovec *iov, int max, int64_t *done)
{
  (void)count;
  lister s = {.l = t->layout, .iov = iov, .max = max};
  char *mem = (char *)(uintptr_t)buf;
  if (from < to) {
    if (t->flags & SPX_T_CONTIG)
      emit(&s, mem + from, to - from);
    else
      list_equal(&s, spx_layout_node(s.l, s.l->root), mem + s.l->offset, NULL, t->extent, from, to);
  }
  *done = s.done;
  return s.n;
}

/* Adds the elements in the first `to` bytes of a node of a typed layout; false when the last one is
 * not whole. */
static bool count_elements(const spx_layout *l, const spx_node *nd, int64_t to, int64_t *n)
{
  if (to == nd->size) {
    *n += nd->elements;
    return true;
  }
  if (nd->basic) {
    *n += to / spx_basics[nd->basic].size;
    return to % spx_basics[nd->basic].size == 0;
  }
  if (nd->kind == SPX_L_LIST) {
    const int64_t *kids = spx_layout_words(l, nd->kids);
    for (int64_t i = 0; to > 0; i++) {
      const spx_node *c = spx_layout_node(l, kids[i]);
      if (to < c->size) return count_elements(l, c, to, n);
      *n += c->elements;
      to -= c->size;
    }
    return true;
  }
  const spx_node *c = spx_layout_node(l, nd->child);
  *n += to / c->size * c->elements;
  return to % c->size == 0 || count_elements(l, c, to % c->size, n);
}

int64_t spx_type_elements(const spx_type *t, int64_t bytes)
{
  if (bytes == 0 || t->size == 0) return bytes == 0 ? 0 : -1;
  if (!t->typed) {
    int64_t size = spx_basics[t->basic].size;
    return bytes % size ? -1 : bytes / size;
  }
  const spx_node *root = spx_layout_node(t->typed, t->typed->root);
  int64_t n = bytes / t->size * root->elements;
  return bytes % t->size == 0 || count_elements(t->typed, root, bytes % t->size, &n) ? n : -1;
}

/* Bytes of the first n elements of a node of a typed layout, n <= its elements. */
static int64_t count_bytes(const spx_layout *l, const spx_node *nd, int64_t n)
{
  if (n == nd->elements) return nd->size;
  if (nd->basic) return n * spx_basics[nd->basic].size;
  if (nd->kind == SPX_L_LIST) {
    const int64_t *kids = spx_layout_words(l, nd->kids), *prefix = spx_layout_words(l, nd->prefix);
    int64_t i = 0;
    for (; n >= spx_layout_node(l, kids[i])->elements; i++)
      n -= spx_layout_node(l, kids[i])->elements;
    return prefix[i] + count_bytes(l, spx_layout_node(l, kids[i]), n);
  }
  const spx_node *c = spx_layout_node(l, nd->child);
  return n / c->elements * c->size + count_bytes(l, c, n % c->elements);
}

int64_t spx_type_bytes(const spx_type *t, int64_t n)
{
  int64_t bytes;
  if (n == 0 || t->size == 0) return 0;
  if (!t->typed) return __builtin_mul_overflow(n, spx_basics[t->basic].size, &bytes) ? -1 : bytes;
  const spx_node *root = spx_layout_node(t->typed, t->typed->root);
  if (__builtin_mul_overflow(n / root->elements, t->size, &bytes)) return -1;
  return __builtin_add_overflow(bytes, count_bytes(t->typed, root, n % root->elements), &bytes)
             ? -1
             : bytes;
}

bool spx_has_long_runs(const spx_request *r)
{
  struct iovec iov[LONG_RUNS];
  int64_t covered = 0, n = r->bytes;
  if (!r->type->layout || r->type->layout->words > SPX_LAYOUT_MOST) return false;
  int runs = spx_iovecs(r->buf, r->count, r->type, 0, n, iov, LONG_RUNS, &covered);
  return runs > 0 && (uint64_t)covered / (uint64_t)runs >= LONG_RUN;
}
