/* Processes that talk over TCP alone (SPX_TRANSPORTS=tcp): all pairs with sizes around every threshold, many messages that nobody asks
 * for, wildcards, large messages both ways at once, synchronous and buffered sends, collectives, and a derived type; order and content
 * are checked. MPI-5.0, 3.5. */
// run: n=1,2,4 env=SPX_TRANSPORTS=tcp timeout=60
// run: n=4 env=SPX_TRANSPORTS=tcp env=SPX_DIRECT_MIN=300 env=SPX_EAGER_MAX=256 timeout=60
// run: n=16 n.few=7 env=SPX_TRANSPORTS=tcp timeout=100
// run: n=2 args=threads env=SPX_TRANSPORTS=tcp timeout=60
// run: n=1,4 env=SPX_TRANSPORTS=tcp env=SPX_TLS=1 timeout=100
// run: n=2,16 env=SPX_TRANSPORTS=tcp env=SPX_TLS=1 timeout=100 full=1
// run: n=2 args=threads env=SPX_TRANSPORTS=tcp env=SPX_TLS=1 timeout=60
// run: n=2 env=SPX_TRANSPORTS=smoke status=1 stderr~"SPX_TRANSPORTS=smoke: there are shm, tcp and fabric, not smoke"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

static int rank, size;
static const int sizes[] = {0, 1, 31, 32, 33, 1000, 16384, 16385, 65535, 65536, 65537, 100000, 3000000};
enum { SIZES = sizeof sizes / sizeof *sizes, LARGEST = 3000000 };

static unsigned char byte_of(int from, int to, int k, int i)
{
  return (unsigned char)(from * 31 + to * 17 + k * 5 + i + (i >> 8));
}

static void all_pairs(void)
{
  unsigned char *out = malloc(LARGEST), *in = malloc(LARGEST);
  for (int step = 1; step < size; step++) {
    int to = (rank + step) % size, from = (rank - step + size) % size;
    for (int k = 0; k < SIZES; k++) {
      MPI_Request r;
      MPI_Status st;
      int n, wrong = 0;
      for (int i = 0; i < sizes[k]; i++) out[i] = byte_of(rank, to, k, i);
      MPI_Isend(out, sizes[k], MPI_BYTE, to, k, MPI_COMM_WORLD, &r);
      MPI_Recv(in, LARGEST, MPI_BYTE, from, k, MPI_COMM_WORLD, &st);
      MPI_Get_count(&st, MPI_BYTE, &n);
      CHECK(n == sizes[k]);
      for (int i = 0; i < n; i++) wrong += in[i] != byte_of(from, rank, k, i);
      CHECK(wrong == 0);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
  }
  free(out);
  free(in);
}

/* Rank 0 asks for nothing before all is sent, then takes each sender's messages in their order. */
static void flood(void)
{
  enum { MESSAGES = 3000 };
  int x[64] = {0}, next[64] = {0};
  if (rank != 0) {
    for (int i = 0; i < MESSAGES; i++) {
      x[0] = i;
      MPI_Send(x, i % 64 + 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    for (int i = 0; i < MESSAGES * (size - 1); i++) {
      MPI_Status st;
      int n;
      MPI_Recv(x, 64, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &st);
      MPI_Get_count(&st, MPI_INT, &n);
      CHECK(x[0] == next[st.MPI_SOURCE] && n == x[0] % 64 + 1);
      next[st.MPI_SOURCE]++;
    }
}

static void strided(void)
{
  enum { N = 100000 };
  MPI_Datatype column;
  double *a = malloc(2 * N * sizeof *a);
  int wrong = 0;
  MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < 2 * N; i++) a[i] = rank * 1e6 + i;
  MPI_Sendrecv_replace(a, 1, column, (rank + 1) % size, 3, (rank - 1 + size) % size, 3, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  for (int i = 0; i < 2 * N; i++) wrong += a[i] != (i % 2 ? rank : (rank - 1 + size) % size) * 1e6 + i;
  CHECK(wrong == 0);
  MPI_Type_free(&column);
  free(a);
}

static void modes(void)
{
  int x = -1, to = (rank + 1) % size, from = (rank - 1 + size) % size, detached;
  MPI_Request r[2];
  char *buffer = malloc(100000 + MPI_BSEND_OVERHEAD), *data = calloc(1, 100000);
  MPI_Buffer_attach(buffer, 100000 + MPI_BSEND_OVERHEAD);
  MPI_Issend(&rank, 1, MPI_INT, to, 4, MPI_COMM_WORLD, &r[0]);
  MPI_Ibsend(data, 90000, MPI_BYTE, to, 5, MPI_COMM_WORLD, &r[1]);
  MPI_Recv(&x, 1, MPI_INT, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(x == from);
  MPI_Recv(data, 100000, MPI_BYTE, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Buffer_detach(&buffer, &detached);
  free(buffer);
  free(data);
}

static void collectives(void)
{
  enum { N = 50000 };
  int *a = malloc(N * sizeof *a), *b = malloc((size_t)size * N * sizeof *b), shared, wrong = 0;
  for (int i = 0; i < N; i++) a[i] = rank + i;
  MPI_Allreduce(a, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < N; i++) wrong += b[i] != size * (size - 1) / 2 + size * i;
  CHECK(wrong == 0);
  MPI_Allgather(a, N, MPI_INT, b, N, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; r++) CHECK(b[r * N] == r && b[r * N + N - 1] == r + N - 1);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &shared);
  CHECK(shared == 1); /* nobody shares memory with us */
  MPI_Comm_free(&node);
  free(a);
  free(b);
}

static void *talk(void *arg)
{
  int tag = *(int *)arg, x = -1;
  for (int i = 0; i < 500; i++) {
    MPI_Sendrecv(&i, 1, MPI_INT, 1 - rank, tag, &x, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(x == i);
  }
  return NULL;
}

static void threads(void)
{
  pthread_t t[3];
  int tags[3] = {1, 2, 3};
  for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, talk, &tags[i]);
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
  int level, in_threads = argc > 1 && !strcmp(argv[1], "threads");
  MPI_Init_thread(&argc, &argv, in_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (in_threads) {
    threads();
  } else {
    all_pairs();
    flood();
    strided();
    modes();
    collectives();
  }
  MPI_Finalize();
  return check_status();
}
