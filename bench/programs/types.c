/* types.c - rows: data that do not lie together. bytes: of data, without the holes. */
#include <stddef.h>
#include "rows.h"

enum { VECTOR8, VECTOR64, INDEXED, STRUCT };

static MPI_Datatype type;
static int count;     /* elements of type in one message */
static size_t spread; /* bytes of memory under it */

static MPI_Datatype make(long which, size_t bytes)
{
  MPI_Datatype t = MPI_DATATYPE_NULL, s;
  count = 1;
  switch (which) {
  case VECTOR8: MPI_Type_vector((int)(bytes / 8), 1, 2, MPI_DOUBLE, &t); break;
  case VECTOR64: MPI_Type_vector((int)(bytes / 64), 8, 16, MPI_DOUBLE, &t); break;
  case INDEXED: { /* blocks of 4 doubles, at distances that change */
    int n = (int)(bytes / 32), *at = malloc((size_t)n * sizeof(int));
    for (int i = 0; i < n; i++) at[i] = 8 * i + i * 7 % 4;
    MPI_Type_create_indexed_block(n, 4, at, MPI_DOUBLE, &t);
    free(at);
    break;
  }
  case STRUCT: { /* three members, and one between them that does not go along */
    typedef struct {
      double x;
      int kind, left_out;
      double y;
    } particle;
    int lengths[] = {1, 1, 1};
    MPI_Aint at[] = {offsetof(particle, x), offsetof(particle, kind), offsetof(particle, y)};
    MPI_Datatype of[] = {MPI_DOUBLE, MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(3, lengths, at, of, &s);
    MPI_Type_create_resized(s, 0, sizeof(particle), &t);
    MPI_Type_free(&s);
    count = (int)(bytes / 20);
  }
  }
  MPI_Type_commit(&t);
  return t;
}

static void type_open(const row *r, size_t bytes)
{
  type = make(r->arg, bytes);
  spread = 2 * bytes + 64;
  fill(spread);
}

static void type_close(const row *r, size_t bytes)
{
  (void)r, (void)bytes;
  MPI_Type_free(&type);
}

/* What of a message has arrived in the first slot of in: data that differ, and holes that were written. */
static int type_wrong(const row *r, size_t bytes)
{
  int from = 1 - rank, a, b, wrong = 0, at = 0;
  char *want = malloc(bytes), *got = malloc(bytes), *there = malloc(spread);
  (void)r;
  if (rank > 1) return 0;
  for (size_t i = 0; i < spread; i++) there[i] = pattern(from, i);
  MPI_Pack(there, count, type, want, (int)bytes, &at, MPI_COMM_SELF);
  a = at, at = 0;
  MPI_Pack(in, count, type, got, (int)bytes, &at, MPI_COMM_SELF);
  b = at;
  wrong = a != b || memcmp(want, got, (size_t)a) != 0;
  free(want);
  free(got);
  free(there);
  return wrong;
}

static void send_type(const row *r, size_t bytes, long times)
{
  (void)r, (void)bytes;
  if (rank > 1) return;
  for (long i = 0; i < times; i++) {
    char *from = slot(out, spread, i), *to = slot(in, spread, i);
    if (rank == 0) {
      MPI_Send(from, count, type, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(to, count, type, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(to, count, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(from, count, type, 0, 2, MPI_COMM_WORLD);
    }
  }
}

/* Both ranks pack for themselves. */
static void pack(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++) {
    int at = 0;
    MPI_Pack(slot(out, spread, i), count, type, slot(in, bytes, i), (int)bytes, &at, MPI_COMM_WORLD);
  }
}

static int pack_wrong(const row *r, size_t bytes)
{
  char *back = calloc(1, spread), *again = malloc(bytes);
  int at = 0, wrong, n;
  (void)r;
  MPI_Unpack(in, (int)bytes, &at, back, count, type, MPI_COMM_WORLD);
  n = at, at = 0;
  MPI_Pack(back, count, type, again, (int)bytes, &at, MPI_COMM_WORLD);
  wrong = at != n || memcmp(again, in, (size_t)n) != 0 || back[0] != out[0];
  free(back);
  free(again);
  return wrong;
}

static void unpack(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++) {
    int at = 0;
    MPI_Unpack(slot(out, bytes, i), (int)bytes, &at, slot(in, spread, i), count, type, MPI_COMM_WORLD);
  }
}

static int unpack_wrong(const row *r, size_t bytes)
{
  char *again = malloc(bytes);
  int at = 0, wrong;
  (void)r;
  MPI_Pack(in, count, type, again, (int)bytes, &at, MPI_COMM_WORLD);
  wrong = memcmp(again, out, (size_t)at) != 0;
  free(again);
  return wrong;
}

#define SEND(NAME, WHICH)                                                                                              \
  {                                                                                                                    \
    "send-" NAME, send_type, type_wrong, 2, 2, 2, {960, 61440, 983040}, type_open, type_close, WHICH                   \
  }
#define PACK(NAME, WHICH)                                                                                              \
  {"pack-" NAME, pack, pack_wrong, 1, 2, 2, {960, 61440, 983040}, type_open, type_close, WHICH},                       \
  {                                                                                                                    \
    "unpack-" NAME, unpack, unpack_wrong, 1, 2, 2, {960, 61440, 983040}, type_open, type_close, WHICH                  \
  }

const row type_rows[] = {SEND("vector8", VECTOR8), SEND("vector64", VECTOR64), SEND("indexed", INDEXED),
                         SEND("struct", STRUCT),   PACK("vector8", VECTOR8),   PACK("vector64", VECTOR64),
                         PACK("indexed", INDEXED), PACK("struct", STRUCT),     {0}};
