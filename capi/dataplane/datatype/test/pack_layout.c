/* The packer against a dumb expansion of random layouts: whole, in random pieces, back, as memory
 * runs, and counted. Buffers are as small as the data allow, so that the address sanitizer sees any
 * byte too far. */
// sanitize: address,undefined
// timeout: 120
#include "basic.h"
#include "pack.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

spx_obj *spx_predef[SPX_K_COUNT][0x300];
_Noreturn void spx_fatal(int code, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  exit(code);
}

static unsigned seed;
#define CHECK(ok)                                                                                  \
  do {                                                                                             \
    if (!(ok)) {                                                                                   \
      fprintf(stderr, "%s:%d: seed %u: %s\n", __FILE__, __LINE__, seed, #ok);                      \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static uint64_t state;
static uint64_t rnd(void)
{
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}
static int64_t between(int64_t lo, int64_t hi)
{
  return lo + (int64_t)(rnd() % (uint64_t)(hi - lo + 1));
}

/* ---- a layout being made, and what it means: the displacement and element number of every byte
 * ---- */
#define MAX_BYTES 4000
typedef struct {
  int n;
  int64_t disp[MAX_BYTES];
  int element[MAX_BYTES];
  int elements;
} meaning;

static int64_t words[20000];
static int64_t used;
static bool typed;

static int64_t put(int64_t v)
{
  words[used] = v;
  return used++;
}
static void add_bytes(meaning *m, int64_t disp, int64_t n, int element)
{
  for (int64_t k = 0; k < n && m->n < MAX_BYTES; k++) {
    m->disp[m->n] = disp + k;
    m->element[m->n++] = element;
  }
}
static void add(meaning *m, const meaning *kid, int64_t disp)
{
  for (int i = 0; i < kid->n && m->n < MAX_BYTES; i++) {
    m->disp[m->n] = disp + kid->disp[i];
    m->element[m->n++] = m->elements + kid->element[i];
  }
  m->elements += kid->elements;
}

static const int kinds_of_data[] = {SPX_B_CHAR, SPX_B_SHORT, SPX_B_INT, SPX_B_DOUBLE,
                                    SPX_B_INTEGER16};

/* A run of n elements of a basic type, or of any length when types do not matter. */
static void add_run(meaning *m, int64_t disp, int64_t size, int basic)
{
  int64_t one = typed ? spx_basics[basic].size : size;
  for (int64_t at = 0; at < size; at += one) add_bytes(m, disp + at, one, m->elements++);
}
static int64_t run_size(int basic)
{
  static const int64_t common[] = {1, 2, 4, 8, 12, 16, 24, 32, 64};
  if (typed) return spx_basics[basic].size * between(1, 4);
  if (rnd() % 16 == 0) return between(65, 900);
  return rnd() % 2 ? common[rnd() % 9] : between(1, 70);
}

/* The moves of a run, as core/datatype makes them; false: too many. */
typedef struct {
  int n;
  int64_t bytes[32], mem[32], packed[32];
} moves;

static bool add_moves(moves *m, int64_t disp, int64_t at, int64_t size)
{
  int64_t b = 1;
  while (2 * b <= size && b < 16) b *= 2;
  for (int64_t d = 0; d < size; d += b, m->n++) {
    if (d > size - b) d = size - b;
    if (m->n == 32 || size > 64) return false;
    m->bytes[m->n] = b;
    m->mem[m->n] = disp + d;
    m->packed[m->n] = at + d;
  }
  return true;
}

static bool moves_of(moves *m, const spx_node *nd, int64_t disp, int64_t at)
{
  const spx_layout *l = (spx_layout *)words;
  if (nd->kind == SPX_L_RUN) return add_moves(m, disp, at, nd->size);
  for (int64_t i = 0; i < nd->n; i++) {
    int64_t d = nd->kind == SPX_L_REP ? i * nd->stride : spx_layout_words(l, nd->disp)[i];
    if (nd->kind == SPX_L_INDEX) {
      const int64_t *prefix = spx_layout_words(l, nd->prefix);
      if (!add_moves(m, disp + d, at + prefix[i], prefix[i + 1] - prefix[i])) return false;
      continue;
    }
    int64_t kid = nd->kind == SPX_L_LIST ? spx_layout_words(l, nd->kids)[i] : nd->child;
    if (!moves_of(m, spx_layout_node(l, kid), disp + d, at)) return false;
    at += spx_layout_node(l, kid)->size;
  }
  return true;
}

/* Passes of 1 to 4 moves of a size, or of two of which the second is shorter. */
static int64_t store_moves(const spx_node *nd)
{
  moves m = {0};
  if (nd->kind == SPX_L_RUN || !moves_of(&m, nd, 0, 0)) return 0;
  int64_t head = put(0);
  for (int i = 0, k; i < m.n; i += k) {
    int most = (int)between(1, 4);
    for (k = 1; k < most && i + k < m.n && m.bytes[i + k] == m.bytes[i]; k++) {}
    if (k == 1 && i + 1 < m.n && m.bytes[i + 1] < m.bytes[i]) k = 2;
    spx_pass p = {.bytes = m.bytes[i], .last = m.bytes[i + k - 1], .moves = k};
    for (int j = 0; j < k; j++) {
      p.mem[j] = m.mem[i + j];
      p.packed[j] = m.packed[i + j];
    }
    memcpy(words + used, &p, sizeof p);
    used += (int64_t)(sizeof p / sizeof(int64_t));
    words[head]++;
  }
  return head;
}

/* The displacements in 32 bits, where a kernel takes them. */
static int64_t store_near(const spx_node *nd)
{
  const spx_node *c = spx_layout_node((spx_layout *)words, nd->child);
  if (nd->kind != SPX_L_BLOCK || (c->kind != SPX_L_RUN && !c->moves)) return 0;
  int64_t at = used;
  for (int64_t i = 0; i < nd->n; i++)
    ((int32_t *)(words + at))[i] = (int32_t)spx_layout_words((spx_layout *)words, nd->disp)[i];
  used += (nd->n + 1) / 2;
  return at;
}

static int64_t store(spx_node nd)
{
  if (!typed && rnd() % 8) {
    nd.near = store_near(&nd);
    nd.moves = store_moves(&nd);
  }
  int64_t at = used;
  memcpy(words + used, &nd, sizeof nd);
  used += SPX_NODE_WORDS;
  return at;
}

static int64_t make(meaning *m, int depth, int basic);

static int64_t make_run(meaning *m, int basic)
{
  spx_node nd = {.kind = SPX_L_RUN, .size = run_size(basic), .basic = typed ? basic : 0};
  add_run(m, 0, nd.size, basic);
  nd.elements = m->elements;
  return store(nd);
}

enum { MOST_EQUAL = 40 };

static int64_t make_equal(meaning *m, int depth, int basic)
{
  meaning *kid = calloc(1, sizeof *kid);
  spx_node nd = {.kind = rnd() % 2 ? SPX_L_REP : SPX_L_BLOCK,
                 .n = between(2, 6),
                 .stride = rnd() % 3 ? between(-90, 120) : between(-400, 400)};
  nd.child = make(kid, depth - 1, basic);
  if (rnd() % 4 == 0) nd.n = between(2, MOST_EQUAL);
  if (rnd() % 8 == 0) nd.stride = (rnd() % 2 ? 2 : 4) << rnd() % 4; /* every second, every fourth */
  int64_t disp[MOST_EQUAL];
  for (int i = 0; i < nd.n; i++) {
    disp[i] = nd.kind == SPX_L_REP ? i * nd.stride : between(-200, 300);
    add(m, kid, disp[i]);
  }
  if (nd.kind == SPX_L_BLOCK) {
    nd.disp = used;
    for (int i = 0; i < nd.n; i++) put(disp[i]);
  }
  nd.size = nd.n * spx_layout_node((spx_layout *)words, nd.child)->size;
  nd.elements = m->elements;
  nd.basic = spx_layout_node((spx_layout *)words, nd.child)->basic;
  free(kid);
  return store(nd);
}

static int64_t make_list(meaning *m, int depth, int basic)
{
  spx_node nd = {.kind = rnd() % 2 ? SPX_L_INDEX : SPX_L_LIST, .n = between(2, 6)};
  int64_t disp[6], prefix[7] = {0}, kids[6];
  for (int i = 0; i < nd.n; i++) {
    disp[i] = between(-200, 300);
    if (nd.kind == SPX_L_INDEX) {
      int64_t size = run_size(basic);
      add_run(m, disp[i], size, basic);
      prefix[i + 1] = prefix[i] + size;
    } else {
      meaning *kid = calloc(1, sizeof *kid);
      kids[i] = make(kid, depth - 1, kinds_of_data[rnd() % 5]);
      add(m, kid, disp[i]);
      prefix[i + 1] = prefix[i] + spx_layout_node((spx_layout *)words, kids[i])->size;
      free(kid);
    }
  }
  nd.basic = typed && nd.kind == SPX_L_INDEX ? basic : 0;
  nd.disp = used;
  for (int i = 0; i < nd.n; i++) put(disp[i]);
  nd.prefix = used;
  for (int i = 0; i <= nd.n; i++) put(prefix[i]);
  if (nd.kind == SPX_L_LIST) {
    nd.kids = used;
    for (int i = 0; i < nd.n; i++) put(kids[i]);
  }
  nd.size = prefix[nd.n];
  nd.elements = m->elements;
  return store(nd);
}

static int64_t make(meaning *m, int depth, int basic)
{
  if (depth == 0) return make_run(m, basic);
  return rnd() % 2 ? make_equal(m, depth, basic) : make_list(m, depth, basic);
}

/* ---- the tests ---- */
typedef struct {
  spx_type t;
  int64_t count, total;
  meaning m; /* of all elements */
  int64_t low, bytes;
} sample;

/* A random type and a number of elements of it; false when it came out too large. */
static bool random_sample(sample *s)
{
  memset(s, 0, sizeof *s);
  memset(words, 0, sizeof words);
  used = sizeof(spx_layout) / sizeof(int64_t);
  meaning *one = calloc(1, sizeof *one);
  spx_layout head = {.root = make(one, (int)between(0, 3), kinds_of_data[rnd() % 5]),
                     .offset = between(-50, 50)};
  head.words = used;
  memcpy(words, &head, sizeof head);
  s->count = rnd() % 4 ? between(1, 4) : between(1, 300);
  s->t.extent = rnd() % 4 ? between(-300, 400) : between(-40, 40);
  s->t.size = one->n;
  bool small = one->n * s->count < MAX_BYTES;
  for (int64_t i = 0; i < s->count; i++) add(&s->m, one, head.offset + i * s->t.extent);
  free(one);
  if (!small) return false;
  s->total = s->m.n;
  int64_t high = s->low = s->m.disp[0];
  for (int i = 0; i < s->m.n; i++) {
    if (s->m.disp[i] < s->low) s->low = s->m.disp[i];
    if (s->m.disp[i] > high) high = s->m.disp[i];
  }
  s->bytes = high - s->low + 1;
  s->t.layout = s->t.typed = (spx_layout *)words;
  return true;
}

/* The address of displacement 0 of a buffer that holds exactly the data. */
static char *origin(const sample *s, unsigned char *mem)
{
  return (char *)((uintptr_t)mem - (uintptr_t)s->low);
}

static void test_pack(const sample *s)
{
  unsigned char *mem = malloc((size_t)s->bytes), *whole = malloc((size_t)s->total);
  for (int64_t i = 0; i < s->bytes; i++) mem[i] = (unsigned char)rnd();
  spx_pack(origin(s, mem), s->count, &s->t, 0, s->total, whole);
  for (int64_t i = 0; i < s->total; i++) CHECK(whole[i] == mem[s->m.disp[i] - s->low]);
  for (int64_t from = 0; from < s->total;) {
    int64_t to = from + between(1, s->total - from);
    if (rnd() % 4) to = from + between(1, s->total - from < 40 ? s->total - from : 40);
    unsigned char *piece = malloc((size_t)(to - from));
    spx_pack(origin(s, mem), s->count, &s->t, from, to, piece);
    CHECK(memcmp(piece, whole + from, (size_t)(to - from)) == 0);
    free(piece);
    from = to;
  }
  free(mem);
  free(whole);
}

/* Where data overlap, which a receiver may not have (MPI-5.0, 5.1.11), any of the bytes may
 * stay. */
static void test_unpack(const sample *s, int64_t from, int64_t to)
{
  unsigned char *twice = calloc(1, (size_t)s->bytes);
  unsigned char *got = malloc((size_t)s->bytes), *want = malloc((size_t)s->bytes),
                *packed = malloc((size_t)(to - from) + 1);
  for (int64_t i = 0; i < s->bytes; i++) got[i] = want[i] = (unsigned char)rnd();
  for (int64_t i = from; i < to; i++) {
    packed[i - from] = (unsigned char)rnd();
    want[s->m.disp[i] - s->low] = packed[i - from];
    twice[s->m.disp[i] - s->low]++;
  }
  spx_unpack(origin(s, got), s->count, &s->t, from, to, packed);
  for (int64_t i = 0; i < s->bytes; i++) CHECK(got[i] == want[i] || twice[i] > 1);
  free(twice);
  free(got);
  free(want);
  free(packed);
}

static void test_iovecs(const sample *s, int64_t from, int64_t to)
{
  struct iovec v[40];
  int max = (int)between(1, 40);
  int64_t done, at = from;
  char *zero = (char *)(uintptr_t)(1u << 20);
  int n = spx_iovecs(zero, s->count, &s->t, from, to, v, max, &done);
  CHECK(n <= max && (n == max || done == to - from));
  for (int i = 0; i < n; i++) {
    CHECK(v[i].iov_len > 0);
    CHECK(i == 0 || (char *)v[i - 1].iov_base + v[i - 1].iov_len != v[i].iov_base);
    for (size_t k = 0; k < v[i].iov_len; k++, at++)
      CHECK((char *)v[i].iov_base + k == zero + s->m.disp[at]);
  }
  CHECK(at - from == done);
  CHECK(done == to - from || zero + s->m.disp[at] != (char *)v[n - 1].iov_base + v[n - 1].iov_len);
}

static void test_elements(const sample *s)
{
  for (int64_t b = 0; b <= s->total; b++) {
    int64_t want = b == s->total ? s->m.elements : s->m.element[b];
    bool whole = b == 0 || b == s->total || s->m.element[b] != s->m.element[b - 1];
    CHECK(spx_type_elements(&s->t, b) == (whole ? want : -1));
    if (whole) CHECK(spx_type_bytes(&s->t, want) == b);
  }
}

int main(void)
{
  spx_basic_init();
  int made = 0;
  for (seed = 1; made < 8000; seed++) {
    state = seed * 0x9e3779b97f4a7c15ull + 1;
    typed = rnd() % 2;
    static sample s;
    if (!random_sample(&s)) continue;
    made++;
    test_pack(&s);
    for (int k = 0; k < 4; k++) {
      int64_t from = between(0, s.total), to = between(from, s.total);
      test_unpack(&s, from, to);
      test_iovecs(&s, from, to);
    }
    test_unpack(&s, 0, s.total);
    if (typed) test_elements(&s);
  }
  for (int i = 1; i < SPX_B_COUNT_OF; i++) spx_type_release(&spx_basic_types[i]);
  return 0;
}
