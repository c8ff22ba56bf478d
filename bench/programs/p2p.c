/* p2p.c - rows: messages between pairs. */
#include "rows.h"

enum { WINDOW = 64, DEEP = 16 };

/* Half round trips between ranks 0 and 1; arg 1: the receives take any source. */
static void pingpong(const row *r, size_t bytes, long times)
{
  int n = (int)bytes, other = r->arg ? MPI_ANY_SOURCE : 1 - rank;
  if (rank > 1) return;
  for (long i = 0; i < times; i++) {
    char *from = slot(out, bytes, i), *to = slot(in, bytes, i);
    if (rank == 0) {
      MPI_Send(from, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(to, n, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(to, n, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(from, n, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
  }
}

static int pingpong_wrong(const row *r, size_t bytes)
{
  (void)r;
  for (size_t i = 0; rank < 2 && i < bytes; i++)
    if (in[i] != pattern(1 - rank, i)) return 1;
  return 0;
}

/* Windows of nonblocking messages from the lower half of the ranks to the upper, an answer after each window. */
static void windowed(const row *r, size_t bytes, long times)
{
  MPI_Request q[WINDOW];
  int n = (int)bytes, ack = 0, half = size / 2, other = rank < half ? rank + half : rank - half;
  (void)r;
  for (long i = 0; i < times; i++) {
    for (int k = 0; k < WINDOW; k++) {
      if (rank < half)
        MPI_Isend(slot(out, bytes, k), n, MPI_BYTE, other, k, MPI_COMM_WORLD, &q[k]);
      else
        MPI_Irecv(slot(in, bytes, k), n, MPI_BYTE, other, k, MPI_COMM_WORLD, &q[k]);
    }
    MPI_Waitall(WINDOW, q, MPI_STATUSES_IGNORE);
    if (rank < half)
      MPI_Recv(&ack, 1, MPI_INT, other, WINDOW, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(&ack, 1, MPI_INT, other, WINDOW, MPI_COMM_WORLD);
  }
}

static int windowed_wrong(const row *r, size_t bytes)
{
  int half = size / 2;
  char *first = slot(in, bytes, 0), *sent = slot(out, bytes, 0);
  (void)r;
  return rank >= half && bytes && (first[0] != pattern(rank - half, (size_t)(sent - out)));
}

/* DEEP messages each way at once. */
static void both_ways(const row *r, size_t bytes, long times)
{
  MPI_Request q[2 * DEEP];
  int n = (int)bytes, other = size / 2 > rank ? rank + size / 2 : rank - size / 2;
  (void)r;
  for (long i = 0; i < times; i++) {
    for (int k = 0; k < DEEP; k++)
      MPI_Irecv(slot(in, bytes, i * DEEP + k), n, MPI_BYTE, other, k, MPI_COMM_WORLD, &q[k]);
    for (int k = 0; k < DEEP; k++)
      MPI_Isend(slot(out, bytes, i * DEEP + k), n, MPI_BYTE, other, k, MPI_COMM_WORLD, &q[DEEP + k]);
    MPI_Waitall(2 * DEEP, q, MPI_STATUSES_IGNORE);
  }
}

static int both_wrong(const row *r, size_t bytes)
{
  (void)r;
  return bytes && in[0] != pattern(size / 2 > rank ? rank + size / 2 : rank - size / 2, 0);
}

/* To the right, from the left, around the ring of ranks. */
static void exchange(const row *r, size_t bytes, long times)
{
  int n = (int)bytes, right = (rank + 1) % size, left = (rank + size - 1) % size;
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Sendrecv(slot(out, bytes, i), n, MPI_BYTE, right, 1, slot(in, bytes, i), n, MPI_BYTE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static int exchange_wrong(const row *r, size_t bytes)
{
  (void)r;
  return in[bytes - 1] != pattern((rank + size - 1) % size, bytes - 1);
}

static MPI_Request kept[2];

static void persistent_open(const row *r, size_t bytes)
{
  (void)r;
  MPI_Send_init(out, (int)bytes, MPI_BYTE, 1 - rank, 3, MPI_COMM_WORLD, &kept[0]);
  MPI_Recv_init(in, (int)bytes, MPI_BYTE, 1 - rank, 3, MPI_COMM_WORLD, &kept[1]);
}

static void persistent(const row *r, size_t bytes, long times)
{
  (void)r, (void)bytes;
  for (long i = 0; i < times; i++)
    for (int k = 0; k < 2; k++) {
      MPI_Start(&kept[k ^ rank]);
      MPI_Wait(&kept[k ^ rank], MPI_STATUS_IGNORE);
    }
}

static void persistent_close(const row *r, size_t bytes)
{
  (void)r, (void)bytes;
  MPI_Request_free(&kept[0]);
  MPI_Request_free(&kept[1]);
}

static const double busy = 100e-6;

/* A message each way, while the processor works for 100 us. */
static void overlap(const row *r, size_t bytes, long times)
{
  MPI_Request q[2];
  int n = (int)bytes;
  (void)r;
  for (long i = 0; i < times; i++) {
    MPI_Irecv(slot(in, bytes, i), n, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &q[0]);
    MPI_Isend(slot(out, bytes, i), n, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &q[1]);
    compute(busy);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  }
}

/* The same with a reduction of all. */
static void overlap_reduce(const row *r, size_t bytes, long times)
{
  MPI_Request q;
  (void)r;
  for (long i = 0; i < times; i++) {
    MPI_Iallreduce(slot(out, bytes, i), slot(in, bytes, i), (int)bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD, &q);
    compute(busy);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  }
}

static int overlap_reduce_wrong(const row *r, size_t bytes)
{
  char want = 0;
  (void)r;
  for (int k = 0; k < size; k++) want ^= pattern(k, bytes - 1);
  return in[bytes - 1] != want;
}

const row p2p_rows[] = {
    {"pingpong",
     pingpong,
     pingpong_wrong,
     2,
     2,
     2,
     {8, 64, 512, 1024, 4096, 16384, 65536, 200000, 262144, 1048576, 4194304},
     0,
     0,
     0},
    {"anysource", pingpong, pingpong_wrong, 2, 2, 2, {8, 65536}, 0, 0, 1},
    {"persistent", persistent, pingpong_wrong, 2, 2, 2, {8, 1024}, persistent_open, persistent_close, 0},
    {"window", windowed, windowed_wrong, WINDOW, 2, 2, {8, 64, 1024, 8192, 65536, 1048576}, 0, 0, 0},
    {"pairs", windowed, windowed_wrong, WINDOW, 4, 16, {8, 1024, 65536}, 0, 0, 0},
    {"bothways", both_ways, both_wrong, DEEP, 2, 16, {8, 1024, 65536, 524288}, 0, 0, 0},
    {"exchange", exchange, exchange_wrong, 1, 2, 16, {8, 1024, 65536, 1048576}, 0, 0, 0},
    {"overlap", overlap, pingpong_wrong, 1, 2, 2, {65536, 1048576}, 0, 0, 0},
    {"overlap-iallreduce", overlap_reduce, overlap_reduce_wrong, 1, 2, 2, {8, 65536}, 0, 0, 0},
    {0}};

/* Half round trips between neighbours, all pairs at once. */
static void neighbours(const row *r, size_t bytes, long times)
{
  int n = (int)bytes, other = rank ^ 1;
  (void)r;
  for (long i = 0; i < times; i++) {
    char *from = slot(out, bytes, i), *to = slot(in, bytes, i);
    if (rank % 2 == 0) MPI_Send(from, n, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    MPI_Recv(to, n, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank % 2) MPI_Send(from, n, MPI_BYTE, other, 1, MPI_COMM_WORLD);
  }
}

static int neighbours_wrong(const row *r, size_t bytes)
{
  (void)r;
  for (size_t i = 0; i < bytes; i++)
    if (in[i] != pattern(rank ^ 1, i)) return 1;
  return 0;
}

/* The sizes at which getting and streaming meet: the driver forbids either in turn. */
const row curve_rows[] = {{"curve",
                           neighbours,
                           neighbours_wrong,
                           2,
                           2,
                           16,
                           {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1048576, 4194304},
                           0,
                           0,
                           0},
                          {0}};
