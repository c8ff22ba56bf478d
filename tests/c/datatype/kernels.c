/* Random datatypes, with enough blocks for the packer's kernels, against lists of the bytes that they mean: packed, unpacked,
 * and sent in pieces that end anywhere. Nothing beside the data is written. Arguments: seed, cases. MPI-5.0 4.2, 5.1. */
// run: n=2 args="1 400" env=SPX_CMA=0 env=SPX_FRAGMENT_PACKED=64 env=SPX_EAGER_MAX=512 timeout=60
// run: n=2 args="2 400" timeout=60
// run: n=2 args="3 6000" env=SPX_CMA=0 env=SPX_FRAGMENT_PACKED=1024 env=SPX_EAGER_MAX=512 timeout=120 full=1
#include "../check.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16, AROUND = 64, BLOCKS = 60 };

static uint64_t state;
static int roll(int n) /* 0 to n - 1, the same in all processes */
{
  state += 0x9e3779b97f4a7c15ull;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return (int)((z ^ z >> 31) >> 33) % n;
}

/* A type and the displacement of each of its bytes, in packing order. */
typedef struct {
  MPI_Datatype type;
  int n;
  long *at;
} sample;

static sample basic(void)
{
  static const struct {
    MPI_Datatype t;
    int size;
  } all[] = {{MPI_CHAR, 1}, {MPI_SHORT, 2}, {MPI_INT, 4}, {MPI_FLOAT, 4}, {MPI_DOUBLE, 8}, {MPI_C_DOUBLE_COMPLEX, 16}};
  int k = roll(6);
  sample s = {all[k].t, all[k].size, malloc(MOST * sizeof(long))};
  MPI_Type_dup(all[k].t, &s.type);
  for (int i = 0; i < s.n; i++) s.at[i] = i;
  return s;
}

static void add(sample *to, const sample *kid, long at)
{
  for (int i = 0; i < kid->n && to->n < MOST; i++) to->at[to->n++] = at + kid->at[i];
}

/* Blocks of kid at displacements in bytes. */
static sample derived(sample kid)
{
  sample s = {MPI_DATATYPE_NULL, 0, malloc(MOST * sizeof(long))};
  MPI_Aint lb, extent, first, span, at[BLOCKS];
  int lengths[BLOCKS], n = 1 + roll(roll(3) ? 8 : BLOCKS), most = 1 + roll(5), same = roll(2), how = roll(5);
  MPI_Type_get_extent(kid.type, &lb, &extent);
  MPI_Type_get_true_extent(kid.type, &first, &span);
  MPI_Aint step = (most - 1) * extent + span + roll(40) * roll(3), last = 0;
  for (int i = 0; i < n; i++) {
    lengths[i] = same ? most : roll(most + 1);
    at[i] = how < 2 ? i * step : last;
    last += (lengths[i] ? (lengths[i] - 1) * extent + span : 0) + (roll(3) ? roll(3) * 8 : roll(20));
  }
  if (how == 0 || how == 1) {
    MPI_Type_create_hvector(n, most, how ? step : -step, kid.type, &s.type);
    for (int i = 0; i < n; i++)
      for (int k = 0; k < most; k++) add(&s, &kid, (how ? i : -i) * step + k * extent);
  } else {
    if (how == 2 && same) {
      MPI_Type_create_hindexed_block(n, most, at, kid.type, &s.type);
    } else if (how == 3) {
      MPI_Datatype types[BLOCKS];
      for (int i = 0; i < n; i++) types[i] = kid.type;
      MPI_Type_create_struct(n, lengths, at, types, &s.type);
    } else {
      MPI_Type_create_hindexed(n, lengths, at, kid.type, &s.type);
    }
    for (int i = 0; i < n; i++)
      for (int k = 0; k < lengths[i]; k++) add(&s, &kid, at[i] + k * extent);
  }
  MPI_Type_free(&kid.type);
  free(kid.at);
  return s;
}

/* A last resize: elements side by side, with holes, or interleaved as the columns of a matrix. */
static void resize(sample *s)
{
  MPI_Datatype t;
  MPI_Aint first, span;
  MPI_Type_get_true_extent(s->type, &first, &span);
  MPI_Type_create_resized(s->type, first, span + roll(3) * 8, &t);
  MPI_Type_free(&s->type);
  s->type = t;
}

static sample columns(void)
{
  sample s = basic(), all = {MPI_DATATYPE_NULL, 0, malloc(MOST * sizeof(long))};
  MPI_Datatype v, one;
  int size = s.n, rows = 2 + roll(40), wide = 2 + roll(30);
  MPI_Type_vector(rows, 1, wide, s.type, &v);
  MPI_Type_create_resized(v, 0, size, &one);
  MPI_Type_contiguous(wide, one, &all.type);
  for (int c = 0; c < wide; c++)
    for (int r = 0; r < rows; r++) add(&all, &s, (long)(r * wide + c) * size);
  MPI_Type_free(&v);
  MPI_Type_free(&one);
  MPI_Type_free(&s.type);
  free(s.at);
  return all;
}

static sample random_sample(void)
{
  sample s;
  do {
    s = roll(4) == 0 ? columns() : basic();
    for (int depth = roll(4); depth > 0 && s.n < 600; depth--) {
      s = derived(s);
      if (s.n && roll(2)) resize(&s);
    }
    if (s.n == 0 || s.n > MOST / 4) {
      MPI_Type_free(&s.type);
      free(s.at);
      s.n = 0;
    }
  } while (s.n == 0);
  return s;
}

static unsigned char byte_of(long i) { return (unsigned char)(i * 2654435761u >> 11); }

static void one_case(int rank)
{
  sample s = random_sample(), all = {MPI_DATATYPE_NULL, 0, malloc(MOST * sizeof(long))};
  MPI_Aint lb, extent;
  MPI_Type_commit(&s.type);
  MPI_Type_get_extent(s.type, &lb, &extent);
  int count = 1 + roll(MOST / s.n > 30 ? 30 : MOST / s.n), at = 0;
  for (int i = 0; i < count; i++) add(&all, &s, i * extent);
  long low = all.at[0], high = low;
  for (int i = 0; i < all.n; i++) {
    low = all.at[i] < low ? all.at[i] : low;
    high = all.at[i] > high ? all.at[i] : high;
  }
  size_t bytes = (size_t)(high - low + 1) + 2 * AROUND, n = (size_t)all.n;
  unsigned char *mem = malloc(bytes), *got = malloc(bytes), *times = calloc(1, bytes), *packed = malloc(n);
  unsigned char *zero = mem + AROUND - low, *there = got + AROUND - low, *used = times + AROUND - low;
  for (size_t i = 0; i < bytes; i++) mem[i] = byte_of((long)i);
  for (int i = 0; i < all.n; i++) used[all.at[i]]++;
  MPI_Pack(zero, count, s.type, packed, all.n, &at, MPI_COMM_WORLD);
  CHECK(at == all.n);
  for (int i = 0; i < all.n; i++) CHECK(packed[i] == zero[all.at[i]]);
  int overlap = 0;
  for (size_t i = 0; i < bytes; i++) overlap |= times[i] > 1;
  for (int way = 0; way < 3 && !overlap; way++) {
    memset(got, 0x5a, bytes);
    at = 0;
    if (way == 0)
      MPI_Unpack(packed, all.n, &at, there, count, s.type, MPI_COMM_WORLD);
    else if (rank == 0 && way == 1)
      MPI_Send(zero, count, s.type, 1, 0, MPI_COMM_WORLD);
    else if (rank == 0)
      MPI_Send(packed, all.n, MPI_PACKED, 1, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(there, count, s.type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (way == 0 || rank == 1)
      for (size_t i = 0; i < bytes; i++) CHECK(got[i] == (times[i] ? mem[i] : 0x5a));
  }
  MPI_Type_free(&s.type);
  free(s.at);
  free(all.at);
  free(mem);
  free(got);
  free(times);
  free(packed);
}

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int cases = argc > 2 ? atoi(argv[2]) : 100;
  for (int i = 0; i < cases; i++) {
    state = (uint64_t)(argc > 1 ? atoi(argv[1]) : 1) * 1000003u + (uint64_t)i;
    one_case(rank);
  }
  MPI_Finalize();
  return 0;
}
