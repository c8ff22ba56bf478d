/* typemap.h - random datatypes beside their typemaps, kept as plain lists by the definitions of MPI-5.0, 5.1. For the tests of
 * this folder. */
#ifndef TYPEMAP_H
#define TYPEMAP_H
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned seed;
#define CHECK(ok)                                                                                                      \
  do {                                                                                                                 \
    if (!(ok)) {                                                                                                       \
      fprintf(stderr, "%s:%d: seed %u: not true: %s\n", __FILE__, __LINE__, seed, #ok);                                \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                                                    \
    }                                                                                                                  \
  } while (0)

static uint64_t random_state = 1;
static inline uint64_t rnd(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}
static inline void reseed(unsigned s)
{
  seed = s;
  random_state = s * 0x9e3779b97f4a7c15ull + 1;
  for (int i = 0; i < 4; i++) rnd();
}
static inline int64_t between(int64_t lo, int64_t hi) { return lo + (int64_t)(rnd() % (uint64_t)(hi - lo + 1)); }

/* Basic types by number. LB and UB are the markers of 5.1.6. */
enum { CHAR, SHORT, INT, DOUBLE, BASICS, LB, UB };
static const MPI_Datatype basic_type[BASICS] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE};
static const int basic_size[BASICS] = {1, 2, 4, 8};

#define MAX_ENTRIES 3000
typedef struct {
  int n;
  struct {
    int what;
    int64_t disp;
  } e[MAX_ENTRIES];
} typemap;

static inline void map_add(typemap *m, int what, int64_t disp)
{
  if (m->n == MAX_ENTRIES) {
    fprintf(stderr, "typemap.h: MAX_ENTRIES\n");
    exit(1);
  }
  m->e[m->n].what = what;
  m->e[m->n++].disp = disp;
}

static inline void map_add_map(typemap *m, const typemap *k, int64_t disp)
{
  for (int i = 0; i < k->n; i++) map_add(m, k->e[i].what, k->e[i].disp + disp);
}

typedef struct {
  int64_t lb, extent, true_lb, true_extent, size;
} bounds;

static inline bounds map_bounds(const typemap *m)
{
  int64_t lb = INT64_MAX, ub = INT64_MIN, first = INT64_MAX, last = INT64_MIN, align = 1;
  bounds b = {0};
  for (int i = 0; i < m->n; i++) {
    int64_t d = m->e[i].disp;
    if (m->e[i].what == LB) {
      lb = d < lb ? d : lb;
      continue;
    }
    if (m->e[i].what == UB) {
      ub = d > ub ? d : ub;
      continue;
    }
    int size = basic_size[m->e[i].what];
    b.size += size;
    if (d < first) first = d;
    if (d + size > last) last = d + size;
    if (size > align) align = size;
  }
  if (b.size == 0) first = last = 0;
  b.true_lb = first;
  b.true_extent = last - first;
  b.lb = lb == INT64_MAX ? first : lb;
  if (ub == INT64_MIN) {
    ub = last;
    while ((ub - first) % align) ub++;
  }
  b.extent = ub - b.lb;
  return b;
}

/* ---- random types ---------------------------------------------------------------------------------------------- */
typedef struct {
  MPI_Datatype t;
  typemap m;
} sample;

static inline void array_of(typemap *m, const typemap *old, const int64_t *sizes, int dims, int order,
                            const int64_t *from, const int64_t *to)
{
  int64_t total = 1, extent = map_bounds(old).extent;
  for (int d = 0; d < dims; d++) total *= sizes[d];
  map_add(m, LB, 0);
  for (int64_t i = 0; i < total; i++) {
    int64_t rest = i;
    int in = 1;
    for (int k = 0; k < dims; k++) {
      int d = order == MPI_ORDER_C ? dims - 1 - k : k;
      int64_t x = rest % sizes[d];
      rest /= sizes[d];
      in = in && x >= from[d] && x < to[d];
    }
    for (int j = 0; in && j < old->n; j++)
      if (old->e[j].what < BASICS) map_add(m, old->e[j].what, old->e[j].disp + i * extent);
  }
  map_add(m, UB, total * extent);
}

static inline void random_subarray(sample *s, const sample *old)
{
  int dims = (int)between(1, 3), order = rnd() % 2 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, a[3], b[3], c[3];
  int64_t sizes[3], from[3], to[3];
  MPI_Count ac[3], bc[3], cc[3];
  for (int d = 0; d < dims; d++) {
    sizes[d] = between(1, 4);
    from[d] = between(0, sizes[d] - 1);
    to[d] = between(from[d] + 1, sizes[d]);
    ac[d] = a[d] = (int)sizes[d];
    bc[d] = b[d] = (int)(to[d] - from[d]);
    cc[d] = c[d] = (int)from[d];
  }
  if (rnd() % 2)
    MPI_Type_create_subarray(dims, a, b, c, order, old->t, &s->t);
  else
    MPI_Type_create_subarray_c(dims, ac, bc, cc, order, old->t, &s->t);
  array_of(&s->m, &old->m, sizes, dims, order, from, to);
}

/* hindexed, indexed, struct: the same three arrays. */
static inline void random_blocks(sample *s, const sample *old)
{
  int n = (int)between(0, 4), bl[4], d[4], kind = (int)between(0, 3), large = (int)(rnd() % 2);
  MPI_Aint ad[4];
  MPI_Count blc[4], dc[4];
  MPI_Datatype types[4];
  int64_t extent = map_bounds(&old->m).extent;
  for (int i = 0; i < n; i++) {
    blc[i] = bl[i] = (int)between(0, 3);
    d[i] = (int)between(-5, 9);
    ad[i] = kind == 0 ? d[i] : between(-60, 120);
    dc[i] = ad[i];
    types[i] = old->t;
    const typemap *m = &old->m;
    typemap one = {1, {{(int)(rnd() % BASICS), 0}}};
    int64_t step = extent;
    if (kind == 2 && i % 2) { /* a struct of two sorts */
      types[i] = basic_type[one.e[0].what];
      step = basic_size[one.e[0].what];
      m = &one;
    }
    if (kind == 3) blc[i] = bl[i] = bl[0];
    for (int k = 0; k < bl[i]; k++) map_add_map(&s->m, m, (kind == 0 ? d[i] * extent : ad[i]) + k * step);
  }
  if (kind == 0 && large)
    MPI_Type_indexed_c(n, blc, dc, old->t, &s->t);
  else if (kind == 0)
    MPI_Type_indexed(n, bl, d, old->t, &s->t);
  else if (kind == 1 && large)
    MPI_Type_create_hindexed_c(n, blc, dc, old->t, &s->t);
  else if (kind == 1)
    MPI_Type_create_hindexed(n, bl, ad, old->t, &s->t);
  else if (kind == 2 && large)
    MPI_Type_create_struct_c(n, blc, dc, types, &s->t);
  else if (kind == 2)
    MPI_Type_create_struct(n, bl, ad, types, &s->t);
  else if (large)
    MPI_Type_create_hindexed_block_c(n, n ? blc[0] : 1, dc, old->t, &s->t);
  else
    MPI_Type_create_hindexed_block(n, n ? bl[0] : 1, ad, old->t, &s->t);
}

static inline void random_vector(sample *s, const sample *old)
{
  int n = (int)between(0, 4), bl = (int)between(0, 3), stride = (int)between(-4, 6), bytes = rnd() % 2,
      large = rnd() % 2;
  int64_t extent = map_bounds(&old->m).extent, step = bytes ? stride * 7 : stride * extent;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < bl; k++) map_add_map(&s->m, &old->m, i * step + k * extent);
  if (bytes && large)
    MPI_Type_create_hvector_c(n, bl, step, old->t, &s->t);
  else if (bytes)
    MPI_Type_create_hvector(n, bl, step, old->t, &s->t);
  else if (large)
    MPI_Type_vector_c(n, bl, stride, old->t, &s->t);
  else
    MPI_Type_vector(n, bl, stride, old->t, &s->t);
}

static inline void random_resized(sample *s, const sample *old)
{
  int64_t lb = between(-20, 20), extent = between(-10, 60);
  map_add(&s->m, LB, lb);
  for (int i = 0; i < old->m.n; i++)
    if (old->m.e[i].what < BASICS) map_add(&s->m, old->m.e[i].what, old->m.e[i].disp);
  map_add(&s->m, UB, lb + extent);
  if (rnd() % 2)
    MPI_Type_create_resized(old->t, lb, extent, &s->t);
  else
    MPI_Type_create_resized_c(old->t, lb, extent, &s->t);
}

/* A type of up to depth constructors. The types that it is made of are freed at once: it has to live on. */
static inline sample *random_type(int depth)
{
  sample *s = calloc(1, sizeof *s);
  if (depth == 0) {
    int b = (int)(rnd() % BASICS);
    MPI_Type_dup(basic_type[b], &s->t);
    map_add(&s->m, b, 0);
    return s;
  }
  sample *old = random_type(depth - 1);
  if (old->m.n > 45) {
    free(s);
    return old;
  }
  int n = (int)between(0, 4);
  switch (between(0, 5)) {
  case 0:
    MPI_Type_contiguous(n, old->t, &s->t);
    for (int i = 0; i < n; i++) map_add_map(&s->m, &old->m, i * map_bounds(&old->m).extent);
    break;
  case 1: random_vector(s, old); break;
  case 2:
  case 3: random_blocks(s, old); break;
  case 4: random_subarray(s, old); break;
  default: random_resized(s, old); break;
  }
  MPI_Type_free(&old->t);
  free(old);
  return s;
}

static inline void free_type(sample *s)
{
  MPI_Type_free(&s->t);
  free(s);
}

/* ---- a buffer that holds exactly count elements ------------------------------------------------------------------ */
typedef struct {
  unsigned char *mem;
  int64_t bytes, low;
} area;

static inline area area_for(const sample *s, int64_t count)
{
  bounds b = map_bounds(&s->m);
  int64_t far = count > 0 ? (count - 1) * b.extent : 0;
  area a = {.low = b.true_lb + (far < 0 ? far : 0), .bytes = b.true_extent + (far < 0 ? -far : far)};
  a.mem = malloc((size_t)a.bytes + 1);
  for (int64_t i = 0; i < a.bytes; i++) a.mem[i] = (unsigned char)rnd();
  return a;
}
/* The address to give to MPI. */
static inline void *area_address(const area *a) { return (void *)((uintptr_t)a->mem - (uintptr_t)a->low); }

/* The k-th byte of the packed form is byte packed_at[k] of the area. Returns how many there are. */
static inline int64_t area_bytes(const area *a, const sample *s, int64_t count, int64_t *packed_at)
{
  int64_t n = 0, extent = map_bounds(&s->m).extent;
  for (int64_t i = 0; i < count; i++)
    for (int j = 0; j < s->m.n; j++)
      for (int k = 0; s->m.e[j].what < BASICS && k < basic_size[s->m.e[j].what]; k++)
        packed_at[n++] = i * extent + s->m.e[j].disp + k - a->low;
  return n;
}

/* What an area has to be like after its count elements were received as packed. Where they overlap, which a receiver may not
 * have (5.1.11), any of the bytes may stay. */
static inline int area_received(const area *a, const unsigned char *before, const int64_t *packed_at,
                                const unsigned char *packed, int64_t n)
{
  unsigned char *want = malloc((size_t)a->bytes + 1), *times = calloc(1, (size_t)a->bytes + 1);
  int ok = 1;
  memcpy(want, before, (size_t)a->bytes);
  for (int64_t i = 0; i < n; i++) {
    want[packed_at[i]] = packed[i];
    if (times[packed_at[i]] < 2) times[packed_at[i]]++;
  }
  for (int64_t i = 0; i < a->bytes; i++) ok = ok && (a->mem[i] == want[i] || times[i] > 1);
  free(want), free(times);
  return ok;
}

/* A copy of an area's bytes. */
static inline unsigned char *area_copy(const area *a)
{
  unsigned char *c = malloc((size_t)a->bytes + 1);
  memcpy(c, a->mem, (size_t)a->bytes);
  return c;
}
#endif
