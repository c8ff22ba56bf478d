/* datatypes.c - what MPI_Pack, MPI_Unpack and messages of data with holes take, beside loops that a
 * program would have instead, compiled -O3 and run in turns with them by the same process.
 *
 * datatypes [REGEX [PAIRS [MOST]]]: shapes, batches of each kind (default 15), bytes at most. Rank 0
 * of two prints lines "shape TAB operation TAB bytes TAB us of MPI TAB us of the loop TAB ratio": the
 * medians of the batches, and the median of the ratios of a batch to the one beside it. */
#include <mpi.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
/* One element: from memory to the packed side, or back. */
#define MOVE(mem, packed)                                                                                              \
  do {                                                                                                                 \
    if (unpack)                                                                                                        \
      (mem) = (packed);                                                                                                \
    else                                                                                                               \
      (packed) = (mem);                                                                                                \
  } while (0)

typedef struct shape shape;
struct shape {
  const char *name;
  /* Makes the type for n entries. */
  MPI_Datatype (*make)(long n);
  void (*pack)(char *mem, char *packed, long n), (*unpack)(char *mem, char *packed, long n);
  long unit;   /* packed bytes of an entry */
  long spread; /* bytes of memory of an entry, at most */
  bool square; /* n is the side of a square: n * n entries */
};

/* The two directions of a loop. */
#define LOOPS(NAME)                                                                                                    \
  static void NAME##_pack(char *mem, char *packed, long n) { NAME(mem, packed, n, false); }                            \
  static void NAME##_unpack(char *mem, char *packed, long n) { NAME(mem, packed, n, true); }

/* ---- vectors ---- */
#define VECTOR(NAME, T, MPI_T, BLOCK, STRIDE)                                                                          \
  INLINE void NAME(char *restrict m, char *restrict p, long n, bool unpack)                                            \
  {                                                                                                                    \
    T *restrict mem = (T *)m, *restrict packed = (T *)p;                                                               \
    for (long i = 0; i < n; i++)                                                                                       \
      for (long k = 0; k < BLOCK; k++) MOVE(mem[i * STRIDE + k], packed[i * BLOCK + k]);                               \
  }                                                                                                                    \
  LOOPS(NAME)                                                                                                          \
  static MPI_Datatype NAME##_type(long n)                                                                              \
  {                                                                                                                    \
    MPI_Datatype t;                                                                                                    \
    MPI_Type_vector((int)n, BLOCK, STRIDE, MPI_T, &t);                                                                 \
    return t;                                                                                                          \
  }
VECTOR(double1, double, MPI_DOUBLE, 1, 2)
VECTOR(double1x4, double, MPI_DOUBLE, 1, 4)
VECTOR(double1x513, double, MPI_DOUBLE, 1, 513)
VECTOR(double2, double, MPI_DOUBLE, 2, 4)
VECTOR(double3, double, MPI_DOUBLE, 3, 5)
VECTOR(double4, double, MPI_DOUBLE, 4, 8)
VECTOR(double8, double, MPI_DOUBLE, 8, 16)
VECTOR(double16, double, MPI_DOUBLE, 16, 24)
VECTOR(double64, double, MPI_DOUBLE, 64, 100)
VECTOR(char1, char, MPI_CHAR, 1, 2)
VECTOR(char1x3, char, MPI_CHAR, 1, 3)
VECTOR(char1x4, char, MPI_CHAR, 1, 4)
VECTOR(char1x64, char, MPI_CHAR, 1, 64)
VECTOR(char3, char, MPI_CHAR, 3, 4)
VECTOR(short1, short, MPI_SHORT, 1, 2)
VECTOR(int1, int, MPI_INT, 1, 2)
VECTOR(int1x16, int, MPI_INT, 1, 16)
VECTOR(int2, int, MPI_INT, 2, 3)
VECTOR(int3, int, MPI_INT, 3, 4)
VECTOR(float1, float, MPI_FLOAT, 1, 4)
VECTOR(float5, float, MPI_FLOAT, 5, 8)

/* ---- indices ---- */
static int *places, *lengths; /* filled by the makers */
static long spread_of(long i, long most) { return (long)((uint32_t)(i * 2654435761u) >> 8) % most; }

static MPI_Datatype index_type(long n, int block, int step, int more)
{
  MPI_Datatype t;
  for (long i = 0; i < n; i++) places[i] = (int)(i * step + spread_of(i, more));
  MPI_Type_create_indexed_block((int)n, block, places, MPI_DOUBLE, &t);
  return t;
}
#define INDEXED(NAME, BLOCK, STEP, MORE)                                                                               \
  INLINE void NAME(char *restrict m, char *restrict p, long n, bool unpack)                                            \
  {                                                                                                                    \
    double *restrict mem = (double *)m, *restrict packed = (double *)p;                                                \
    const int *restrict at = places;                                                                                   \
    for (long i = 0; i < n; i++)                                                                                       \
      for (long k = 0; k < BLOCK; k++) MOVE(mem[at[i] + k], packed[i * BLOCK + k]);                                    \
  }                                                                                                                    \
  LOOPS(NAME)                                                                                                          \
  static MPI_Datatype NAME##_type(long n) { return index_type(n, BLOCK, STEP, MORE); }
INDEXED(index1, 1, 3, 3)
INDEXED(index3, 3, 6, 4)
INDEXED(index4, 4, 8, 4)

/* The pattern of MPICH's perf/indexperf. */
INLINE void period3(char *restrict m, char *restrict p, long n, bool unpack)
{
  double *restrict mem = (double *)m, *restrict packed = (double *)p;
  const int *restrict at = places;
  for (long i = 0; i < n; i++) MOVE(mem[at[i]], packed[i]);
}
LOOPS(period3)
static MPI_Datatype period3_type(long n)
{
  MPI_Datatype t;
  for (long i = 0; i < n; i++) places[i] = (int)(i * 3 + i % 3);
  MPI_Type_create_indexed_block((int)n, 1, places, MPI_DOUBLE, &t);
  return t;
}

/* Groups of four blocks of 1 to 5 doubles, 12 in all, in an order that is not regular. */
INLINE void indexed(char *restrict m, char *restrict p, long n, bool unpack)
{
  double *restrict mem = (double *)m, *restrict packed = (double *)p;
  const int *restrict at = places, *restrict len = lengths;
  long to = 0;
  for (long i = 0; i < 4 * n; i++)
    for (long k = 0; k < len[i]; k++, to++) MOVE(mem[at[i] + k], packed[to]);
}
LOOPS(indexed)
static MPI_Datatype indexed_type(long n)
{
  static const int sets[4][4] = {{1, 5, 2, 4}, {3, 3, 5, 1}, {4, 2, 1, 5}, {2, 3, 4, 3}};
  MPI_Datatype t;
  for (long i = 0; i < 4 * n; i++) {
    lengths[i] = sets[spread_of(i / 4, 4)][i % 4];
    places[i] = (int)(7 * i + spread_of(i, 2));
  }
  MPI_Type_indexed((int)(4 * n), lengths, places, MPI_DOUBLE, &t);
  return t;
}

/* The same of bytes: four blocks are 32 bytes. */
INLINE void hindexed(char *restrict mem, char *restrict packed, long n, bool unpack)
{
  const int *restrict at = places, *restrict len = lengths;
  for (long i = 0, to = 0; i < 4 * n; i++)
    for (long k = 0; k < len[i]; k++, to++) MOVE(mem[at[i] + k], packed[to]);
}
LOOPS(hindexed)
static MPI_Datatype hindexed_type(long n)
{
  static const int sets[4][4] = {{1, 17, 4, 10}, {7, 3, 20, 2}, {12, 5, 9, 6}, {8, 8, 1, 15}};
  MPI_Datatype t;
  MPI_Aint *at = malloc((size_t)(4 * n) * sizeof *at);
  for (long i = 0; i < 4 * n; i++) {
    lengths[i] = sets[spread_of(i / 4, 4)][i % 4];
    at[i] = places[i] = (int)(24 * i + spread_of(i, 4));
  }
  MPI_Type_create_hindexed((int)(4 * n), lengths, at, MPI_CHAR, &t);
  free(at);
  return t;
}

/* ---- structs ---- */
static MPI_Datatype array_of(long n, int members, const int *len, const MPI_Aint *at, const MPI_Datatype *of,
                             size_t extent)
{
  MPI_Datatype s, r, t;
  MPI_Type_create_struct(members, len, at, of, &s);
  MPI_Type_create_resized(s, 0, (MPI_Aint)extent, &r);
  MPI_Type_contiguous((int)n, r, &t);
  MPI_Type_free(&s);
  MPI_Type_free(&r);
  return t;
}
/* A member, at a place of the packed side that may be odd. */
#define MEMBER(mem, packed) (unpack ? memcpy(&(mem), packed, sizeof(mem)) : memcpy(packed, &(mem), sizeof(mem)))

typedef struct {
  double x;
  int kind, left_out;
  double y;
} particle;
INLINE void particles(char *restrict m, char *restrict p, long n, bool unpack)
{
  particle *restrict mem = (particle *)m;
  for (long i = 0; i < n; i++, p += 20) {
    MEMBER(mem[i].x, p);
    MEMBER(mem[i].kind, p + 8);
    MEMBER(mem[i].y, p + 12);
  }
}
LOOPS(particles)
static MPI_Datatype particles_type(long n)
{
  return array_of(n, 3, (int[]){1, 1, 1},
                  (MPI_Aint[]){offsetof(particle, x), offsetof(particle, kind), offsetof(particle, y)},
                  (MPI_Datatype[]){MPI_DOUBLE, MPI_INT, MPI_DOUBLE}, sizeof(particle));
}

typedef struct {
  char tag;
  double x;
  short level;
  int id;
} record;
INLINE void records(char *restrict m, char *restrict p, long n, bool unpack)
{
  record *restrict mem = (record *)m;
  for (long i = 0; i < n; i++, p += 15) {
    MEMBER(mem[i].tag, p);
    MEMBER(mem[i].x, p + 1);
    MEMBER(mem[i].level, p + 9);
    MEMBER(mem[i].id, p + 11);
  }
}
LOOPS(records)
static MPI_Datatype records_type(long n)
{
  return array_of(
      n, 4, (int[]){1, 1, 1, 1},
      (MPI_Aint[]){offsetof(record, tag), offsetof(record, x), offsetof(record, level), offsetof(record, id)},
      (MPI_Datatype[]){MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT}, sizeof(record));
}

typedef struct {
  int id, left_out;
  double at[3], v[3];
  long not_sent;
  float mass;
} body;
INLINE void bodies(char *restrict m, char *restrict p, long n, bool unpack)
{
  body *restrict mem = (body *)m;
  for (long i = 0; i < n; i++, p += 56) {
    MEMBER(mem[i].id, p);
    MEMBER(mem[i].at, p + 4);
    MEMBER(mem[i].v, p + 28);
    MEMBER(mem[i].mass, p + 52);
  }
}
LOOPS(bodies)
static MPI_Datatype bodies_type(long n)
{
  return array_of(n, 4, (int[]){1, 3, 3, 1},
                  (MPI_Aint[]){offsetof(body, id), offsetof(body, at), offsetof(body, v), offsetof(body, mass)},
                  (MPI_Datatype[]){MPI_INT, MPI_DOUBLE, MPI_DOUBLE, MPI_FLOAT}, sizeof(body));
}

/* Some of the particles, by their indices. */
INLINE void chosen(char *restrict m, char *restrict p, long n, bool unpack)
{
  particle *restrict mem = (particle *)m;
  const int *restrict at = places;
  for (long i = 0; i < n; i++, p += 20) {
    particle *q = &mem[at[i]];
    MEMBER(q->x, p);
    MEMBER(q->kind, p + 8);
    MEMBER(q->y, p + 12);
  }
}
LOOPS(chosen)
static MPI_Datatype chosen_type(long n)
{
  MPI_Datatype one = particles_type(1), t;
  for (long i = 0; i < n; i++) places[i] = (int)(i * 2 + spread_of(i, 2));
  MPI_Type_create_indexed_block((int)n, 1, places, one, &t);
  MPI_Type_free(&one);
  return t;
}

/* ---- arrays ---- */
/* The left half of a matrix; n: entries of 32 doubles. */
INLINE void half(char *restrict m, char *restrict p, long n, bool unpack)
{
  double *restrict mem = (double *)m, *restrict packed = (double *)p;
  for (long i = 0; i < n; i++)
    for (long k = 0; k < 32; k++) MOVE(mem[i * 64 + k], packed[i * 32 + k]);
}
LOOPS(half)
static MPI_Datatype half_type(long n)
{
  MPI_Datatype t;
  MPI_Type_create_subarray(2, (int[]){(int)n, 64}, (int[]){(int)n, 32}, (int[]){0, 0}, MPI_ORDER_C, MPI_DOUBLE, &t);
  return t;
}

/* The inner part, and a face, of a block of 3 dimensions, n planes of 10 x 10 and of 32 x 32. */
INLINE void inner(char *restrict m, char *restrict p, long n, bool unpack)
{
  double *restrict mem = (double *)m, *restrict packed = (double *)p;
  for (long i = 0; i < n; i++)
    for (long j = 0; j < 8; j++)
      for (long k = 0; k < 8; k++) MOVE(mem[(i * 10 + j + 1) * 10 + k + 1], packed[(i * 8 + j) * 8 + k]);
}
LOOPS(inner)
static MPI_Datatype inner_type(long n)
{
  MPI_Datatype t;
  MPI_Type_create_subarray(3, (int[]){(int)n, 10, 10}, (int[]){(int)n, 8, 8}, (int[]){0, 1, 1}, MPI_ORDER_C, MPI_DOUBLE,
                           &t);
  return t;
}
INLINE void face(char *restrict m, char *restrict p, long n, bool unpack)
{
  double *restrict mem = (double *)m, *restrict packed = (double *)p;
  for (long i = 0; i < n; i++)
    for (long j = 0; j < 16; j++) MOVE(mem[(i * 18 + j + 1) * 18], packed[i * 16 + j]);
}
LOOPS(face)
static MPI_Datatype face_type(long n)
{
  MPI_Datatype t;
  MPI_Type_create_subarray(3, (int[]){(int)n, 18, 18}, (int[]){(int)n, 16, 1}, (int[]){0, 1, 0}, MPI_ORDER_C,
                           MPI_DOUBLE, &t);
  return t;
}

/* ---- transposed: columns of a square matrix, one after the other ---- */
#define TRANSPOSE(NAME, T, MPI_T)                                                                                      \
  INLINE void NAME(char *restrict m, char *restrict p, long n, bool unpack)                                            \
  {                                                                                                                    \
    T *restrict mem = (T *)m, *restrict packed = (T *)p;                                                               \
    for (long i = 0; i < n; i++)                                                                                       \
      for (long j = 0; j < n; j++) MOVE(mem[j * n + i], packed[i * n + j]);                                            \
  }                                                                                                                    \
  LOOPS(NAME)                                                                                                          \
  static MPI_Datatype NAME##_type(long n)                                                                              \
  {                                                                                                                    \
    MPI_Datatype column, one, t;                                                                                       \
    MPI_Type_vector((int)n, 1, (int)n, MPI_T, &column);                                                                \
    MPI_Type_create_resized(column, 0, sizeof(T), &one);                                                               \
    MPI_Type_contiguous((int)n, one, &t);                                                                              \
    MPI_Type_free(&column);                                                                                            \
    MPI_Type_free(&one);                                                                                               \
    return t;                                                                                                          \
  }
typedef struct {
  double re, im;
} pair;
TRANSPOSE(transpose4, float, MPI_FLOAT)
TRANSPOSE(transpose8, double, MPI_DOUBLE)
TRANSPOSE(transpose16, pair, MPI_C_DOUBLE_COMPLEX)

/* ---- nested: three blocks of two doubles, four apart, and the next three 16 further on ---- */
INLINE void nested(char *restrict m, char *restrict p, long n, bool unpack)
{
  double *restrict mem = (double *)m, *restrict packed = (double *)p;
  for (long i = 0; i < n; i++)
    for (long j = 0; j < 3; j++)
      for (long k = 0; k < 2; k++) MOVE(mem[i * 16 + j * 4 + k], packed[i * 6 + j * 2 + k]);
}
LOOPS(nested)
static MPI_Datatype nested_type(long n)
{
  MPI_Datatype v, t;
  MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &v);
  MPI_Type_create_hvector((int)n, 1, 128, v, &t);
  MPI_Type_free(&v);
  return t;
}
/* The same of floats, 20 blocks of 1 at a time. */
INLINE void nested20(char *restrict m, char *restrict p, long n, bool unpack)
{
  float *restrict mem = (float *)m, *restrict packed = (float *)p;
  for (long i = 0; i < n; i++)
    for (long j = 0; j < 20; j++) MOVE(mem[i * 64 + j * 3], packed[i * 20 + j]);
}
LOOPS(nested20)
static MPI_Datatype nested20_type(long n)
{
  MPI_Datatype v, t;
  MPI_Type_vector(20, 1, 3, MPI_FLOAT, &v);
  MPI_Type_create_hvector((int)n, 1, 256, v, &t);
  MPI_Type_free(&v);
  return t;
}

#define SHAPE(NAME, UNIT, SPREAD)                                                                                      \
  {                                                                                                                    \
#NAME, NAME##_type, NAME##_pack, NAME##_unpack, UNIT, SPREAD, false                                                \
  }
#define SQUARE(NAME, UNIT)                                                                                             \
  {                                                                                                                    \
#NAME, NAME##_type, NAME##_pack, NAME##_unpack, UNIT, UNIT, true                                                   \
  }
static const shape shapes[] = {
    SHAPE(double1, 8, 16),     SHAPE(double1x4, 8, 32), SHAPE(double1x513, 8, 4104), SHAPE(double2, 16, 32),
    SHAPE(double3, 24, 40),    SHAPE(double4, 32, 64),  SHAPE(double8, 64, 128),     SHAPE(double16, 128, 192),
    SHAPE(double64, 512, 800), SHAPE(char1, 1, 2),      SHAPE(char1x3, 1, 3),        SHAPE(char1x4, 1, 4),
    SHAPE(char1x64, 1, 64),    SHAPE(char3, 3, 4),      SHAPE(short1, 2, 4),         SHAPE(int1, 4, 8),
    SHAPE(int1x16, 4, 64),     SHAPE(int2, 8, 12),      SHAPE(int3, 12, 16),         SHAPE(float1, 4, 16),
    SHAPE(float5, 20, 32),     SHAPE(index1, 8, 24),    SHAPE(index3, 24, 48),       SHAPE(index4, 32, 64),
    SHAPE(period3, 8, 24),     SHAPE(indexed, 96, 224), SHAPE(hindexed, 32, 96),     SHAPE(particles, 20, 24),
    SHAPE(records, 15, 24),    SHAPE(bodies, 56, 72),   SHAPE(chosen, 20, 48),       SHAPE(half, 256, 512),
    SHAPE(inner, 512, 800),    SHAPE(face, 128, 2592),  SQUARE(transpose4, 4),       SQUARE(transpose8, 8),
    SQUARE(transpose16, 16),   SHAPE(nested, 48, 128),  SHAPE(nested20, 80, 256),
};

/* ---- measuring ---- */
enum { MEMORY = 256 << 20, PACKED = 16 << 20, MOST_PAIRS = 101 };
static char *memory, *packed, *other;
static int rank;

static int by_size(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}
static double median(double *v, int n)
{
  qsort(v, (size_t)n, sizeof *v, by_size);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

typedef struct {
  const shape *s;
  long n;
  int bytes;
  MPI_Datatype t;
} subject;

static void mpi_pack(const subject *x)
{
  int at = 0;
  MPI_Pack(memory, 1, x->t, packed, x->bytes, &at, MPI_COMM_WORLD);
}
static void loop_pack(const subject *x) { x->s->pack(memory, packed, x->n); }
static void mpi_unpack(const subject *x)
{
  int at = 0;
  MPI_Unpack(packed, x->bytes, &at, memory, 1, x->t, MPI_COMM_WORLD);
}
static void loop_unpack(const subject *x) { x->s->unpack(memory, packed, x->n); }
/* There and back, from memory with holes to memory with holes. */
static void mpi_send(const subject *x)
{
  for (int turn = 0; turn < 2; turn++)
    if (turn == rank)
      MPI_Send(memory, 1, x->t, !rank, 1, MPI_COMM_WORLD);
    else
      MPI_Recv(memory, 1, x->t, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void loop_send(const subject *x)
{
  for (int turn = 0; turn < 2; turn++)
    if (turn == rank) {
      x->s->pack(memory, packed, x->n);
      MPI_Send(packed, x->bytes, MPI_BYTE, !rank, 1, MPI_COMM_WORLD);
    } else {
      MPI_Recv(packed, x->bytes, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      x->s->unpack(memory, packed, x->n);
    }
}

static double batch(void (*f)(const subject *), const subject *x, long times)
{
  double start = MPI_Wtime();
  for (long i = 0; i < times; i++) {
    f(x);
    __asm__ volatile("" : : : "memory");
  }
  return (MPI_Wtime() - start) / (double)times * 1e6;
}

/* Batches of a millisecond or more, in turns. */
static void measure(const char *what, const subject *x, void (*mpi)(const subject *), void (*loop)(const subject *),
                    int pairs, bool both)
{
  double m[MOST_PAIRS], l[MOST_PAIRS], r[MOST_PAIRS];
  long times[2] = {1, 1};
  if (rank == 0 || both) {
    batch(mpi, x, 2), batch(loop, x, 2);
    if (rank == 0) {
      double once = batch(loop, x, 3);
      times[0] = once < 1000 ? (long)(1000 / once) + 1 : 1;
    } else {
      batch(loop, x, 3);
    }
    if (both) MPI_Bcast(times, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int i = 0; i < pairs; i++) {
      m[i] = batch(mpi, x, times[0]);
      l[i] = batch(loop, x, times[0]);
      r[i] = m[i] / l[i];
    }
  }
  if (rank == 0) {
    double half_way = both ? 2 : 1;
    printf("%s\t%s\t%d\t%.3f\t%.3f\t%.3f\n", x->s->name, what, x->bytes, median(m, pairs) / half_way,
           median(l, pairs) / half_way, median(r, pairs));
    fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void check(const char *what, const subject *x, bool ok)
{
  if (ok) return;
  fprintf(stderr, "datatypes: %s of %s, %d bytes, has not the bytes of the loop\n", what, x->s->name, x->bytes);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The same bytes both ways as of the loops. */
static void same(const subject *x)
{
  size_t spread = x->s->square ? (size_t)x->bytes : (size_t)(x->n * x->s->spread) + 4096;
  for (size_t i = 0; i < spread; i++) memory[i] = (char)(i * 2654435761u >> 13);
  mpi_pack(x);
  x->s->pack(memory, other, x->n);
  check("MPI_Pack", x, memcmp(packed, other, (size_t)x->bytes) == 0);
  for (int i = 0; i < x->bytes; i++) packed[i] = (char)(i * 40503u >> 7);
  memset(memory, 0, spread);
  loop_unpack(x);
  x->s->pack(memory, other, x->n);
  memset(memory, 0, spread);
  mpi_unpack(x);
  mpi_pack(x);
  check("MPI_Unpack", x, memcmp(packed, other, (size_t)x->bytes) == 0);
}

static void run(const shape *s, long bytes, int pairs)
{
  subject x = {.s = s, .n = bytes / s->unit};
  if (s->square) {
    long side = 1;
    while ((side + 1) * (side + 1) <= x.n) side++;
    x.n = side;
  }
  if (x.n < 1 || x.n * s->spread + 4096 > MEMORY) return;
  x.t = s->make(x.n);
  MPI_Type_commit(&x.t);
  MPI_Type_size(x.t, &x.bytes);
  same(&x);
  MPI_Barrier(MPI_COMM_WORLD);
  measure("pack", &x, mpi_pack, loop_pack, pairs, false);
  measure("unpack", &x, mpi_unpack, loop_unpack, pairs, false);
  measure("send", &x, mpi_send, loop_send, pairs, true);
  MPI_Type_free(&x.t);
}

int main(int argc, char **argv)
{
  static const long sizes[] = {1 << 10, 8 << 10, 256 << 10, 2 << 20, 16 << 20};
  regex_t wanted;
  int pairs = argc > 2 ? atoi(argv[2]) : 15;
  long most = argc > 3 ? atol(argv[3]) : PACKED;
  if (pairs < 1 || pairs > MOST_PAIRS) pairs = MOST_PAIRS;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (regcomp(&wanted, argc > 1 ? argv[1] : ".", REG_EXTENDED | REG_NOSUB)) return 2;
  memory = aligned_alloc(4096, MEMORY);
  packed = aligned_alloc(4096, PACKED);
  other = aligned_alloc(4096, PACKED);
  places = malloc(PACKED / 8 * sizeof *places);
  lengths = malloc(PACKED / 8 * sizeof *lengths);
  memset(memory, 1, MEMORY);
  memset(packed, 1, PACKED);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
      if (sizes[k] <= most && !regexec(&wanted, shapes[i].name, 0, NULL, 0)) run(&shapes[i], sizes[k], pairs);
  return MPI_Finalize();
}
