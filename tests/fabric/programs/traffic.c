/* Messages of all kinds between all ranks, whose contents are checked; rank 0 prints with how many
 * processes each has come to communicate over a fabric, at least. */
#include "fabric.h"

enum { LENGTHS = 14, ROUNDS = 20, STORM = 400, SHORT = 3000 };
static const size_t lengths[LENGTHS] = {0,     1,     8,      64,     1000,    16335,   16336,
                                        16337, 65536, 100000, 300000, 1 << 20, 5000001, 16 << 20};

static void ping_pong(unsigned char *b)
{
  int other = rank ^ 1;
  if (other >= size) return;
  for (int k = 0; k < LENGTHS; k++)
    for (int i = 0; i < (lengths[k] > 200000 ? 3 : ROUNDS); i++)
      for (int way = 0; way < 2; way++) {
        if ((rank & 1) == way) {
          fill(b, lengths[k], rank, i);
          MPI_Send(b, (int)lengths[k], MPI_BYTE, other, i, MPI_COMM_WORLD);
        } else {
          memset(b, 255, lengths[k]);
          MPI_Recv(b, (int)lengths[k], MPI_BYTE, other, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          verify(b, lengths[k], other, i);
        }
      }
}

/* Both ways at once, many messages of many lengths under way. */
static void storm(void)
{
  enum { AT_ONCE = 16, MOST = 40000 };
  unsigned char *out = malloc((size_t)AT_ONCE * MOST), *in = malloc((size_t)AT_ONCE * MOST);
  MPI_Request r[2 * AT_ONCE];
  for (int n = 0; n < STORM; n++) {
    int shift = n % (size - 1) + 1, to = (rank + shift) % size, from = (rank + size - shift) % size;
    for (int k = 0; k < AT_ONCE; k++) {
      size_t bytes = (size_t)(n * 7919 + k * 104729) % MOST;
      fill(out + k * MOST, bytes, rank, n + k);
      MPI_Irecv(in + k * MOST, (int)bytes, MPI_BYTE, from, k, MPI_COMM_WORLD, &r[k]);
      MPI_Isend(out + k * MOST, (int)bytes, MPI_BYTE, to, k, MPI_COMM_WORLD, &r[AT_ONCE + k]);
    }
    MPI_Waitall(2 * AT_ONCE, r, MPI_STATUSES_IGNORE);
    for (int k = 0; k < AT_ONCE; k++) verify(in + k * MOST, (size_t)(n * 7919 + k * 104729) % MOST, from, n + k);
  }
  free(out);
  free(in);
}

/* A long message in pieces of memory, under way together with short ones. */
static void pieces(void)
{
  enum { BLOCKS = 2000, BLOCK = 1500, STRIDE = 2000 };
  MPI_Datatype type;
  MPI_Type_vector(BLOCKS, BLOCK, STRIDE, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  unsigned char *out = calloc(BLOCKS, STRIDE), *in = calloc(BLOCKS, STRIDE);
  fill(out, (size_t)BLOCKS * STRIDE, rank, 5);
  int to = (rank + 1) % size, from = (rank + size - 1) % size, word[2] = {rank, -1};
  MPI_Request r[4];
  MPI_Irecv(in, 1, type, from, 1, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(out, 1, type, to, 1, MPI_COMM_WORLD, &r[1]);
  MPI_Irecv(&word[1], 1, MPI_INT, from, 2, MPI_COMM_WORLD, &r[2]);
  MPI_Isend(&word[0], 1, MPI_INT, to, 2, MPI_COMM_WORLD, &r[3]);
  MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  CHECK(word[1] == from);
  for (size_t i = 0; i < (size_t)BLOCKS * STRIDE; i++) CHECK(in[i] == (i % STRIDE < BLOCK ? byte_of(from, 5, i) : 0));
  MPI_Type_free(&type);
  free(out);
  free(in);
}

static void collectives(void)
{
  enum { EACH = 3000 };
  unsigned char *out = malloc((size_t)size * EACH), *in = malloc((size_t)size * EACH);
  for (int n = 0; n < ROUNDS; n++) {
    for (int i = 0; i < size; i++) fill(out + i * EACH, EACH, rank, n + i);
    MPI_Alltoall(out, EACH, MPI_BYTE, in, EACH, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) verify(in + i * EACH, EACH, i, n + rank);
    long mine = rank + n, sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (long)size * (size - 1) / 2 + (long)n * size);
  }
  free(out);
  free(in);
}

/* One sends and does not look, so that there is no room for long; the last one has all. */
static void flood(void)
{
  if (rank > 1) return;
  for (int i = 0, word[16]; i < SHORT; i++) {
    for (int k = 0; k < 16; k++) word[k] = rank ? -1 : i * 16 + k;
    if (rank == 0)
      MPI_Send(word, 16, MPI_INT, 1, 3, MPI_COMM_WORLD);
    else
      MPI_Recv(word, 16, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < 16; k++) CHECK(word[k] == i * 16 + k);
    if (rank == 1 && i == 0) usleep(200000);
  }
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned char *b = malloc(lengths[LENGTHS - 1]);
  begin_count();
  collectives();
  ping_pong(b);
  storm();
  pieces();
  flood();
  collectives();
  long long pairs = counted(PAIRS), least;
  long long messages = counted(RECEIVED), fewest;
  long long refused = counted(REFUSED), all;
  MPI_Allreduce(&pairs, &least, 1, MPI_LONG_LONG, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&messages, &fewest, 1, MPI_LONG_LONG, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&refused, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("pairs: %lld, messages: %s, refused: %lld\n", least, fewest > 1000 ? "many" : "few", all);
  free(b);
  MPI_Finalize();
  return 0;
}
