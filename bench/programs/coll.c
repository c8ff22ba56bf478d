/* coll.c - rows: collectives. bytes: what one rank gives to one other (gather, scatter, allgather, alltoall, reduce_scatter), else
 * the whole vector. */
#include "rows.h"

static int *counts, *places; /* of the forms with a count for each rank: bytes and a little more or less, in turn */
static MPI_Comm grid = MPI_COMM_NULL;
static MPI_Request kept;

static size_t all(size_t bytes) { return bytes * (size_t)size; }
static char *give(size_t bytes, long i) { return slot(out, bytes, i); }
static char *take(size_t bytes, long i) { return slot(in, bytes, i); }

/* The byte of rank r's first slot at i is pattern(r, i): all of these look at the first call's buffers. */
static int differs(const char *got, int from, size_t at, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (got[i] != pattern(from, at + i)) return 1;
  return 0;
}

static void barrier(const row *r, size_t bytes, long times)
{
  (void)r, (void)bytes;
  for (long i = 0; i < times; i++) MPI_Barrier(MPI_COMM_WORLD);
}

static void ibarrier(const row *r, size_t bytes, long times)
{
  MPI_Request q;
  (void)r, (void)bytes;
  for (long i = 0; i < times; i++) {
    MPI_Ibarrier(MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  }
}

static void bcast(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Bcast(rank == 0 ? give(bytes, i) : take(bytes, i), (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int bcast_wrong(const row *r, size_t bytes)
{
  (void)r;
  return rank > 0 && differs(in, 0, 0, bytes);
}

static void ibcast(const row *r, size_t bytes, long times)
{
  MPI_Request q;
  (void)r;
  for (long i = 0; i < times; i++) {
    MPI_Ibcast(rank == 0 ? give(bytes, i) : take(bytes, i), (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  }
}

/* Sums of doubles: the first slot holds small whole numbers. */
static void numbers(const row *r, size_t bytes)
{
  (void)r;
  for (size_t i = 0; i < bytes / 8; i++) ((double *)out)[i] = (rank + 1) * (double)(i % 7);
}

static int sums_wrong(const char *got, size_t bytes, double ranks)
{
  for (size_t i = 0; i < bytes / 8; i++)
    if (((const double *)got)[i] != ranks * (ranks + 1) / 2 * (double)(i % 7)) return 1;
  return 0;
}

static void reduce(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Reduce(give(bytes, i), take(bytes, i), (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static int reduce_wrong(const row *r, size_t bytes)
{
  (void)r;
  return rank == 0 && sums_wrong(in, bytes, size);
}

static void allreduce(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Allreduce(give(bytes, i), take(bytes, i), (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static int allreduce_wrong(const row *r, size_t bytes)
{
  (void)r;
  return sums_wrong(in, bytes, size);
}

static void iallreduce(const row *r, size_t bytes, long times)
{
  MPI_Request q;
  (void)r;
  for (long i = 0; i < times; i++) {
    MPI_Iallreduce(give(bytes, i), take(bytes, i), (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  }
}

static void kept_open(const row *r, size_t bytes)
{
  numbers(r, bytes);
  MPI_Allreduce_init(out, in, (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &kept);
}

static void kept_run(const row *r, size_t bytes, long times)
{
  (void)r, (void)bytes;
  for (long i = 0; i < times; i++) {
    MPI_Start(&kept);
    MPI_Wait(&kept, MPI_STATUS_IGNORE);
  }
}

static void kept_close(const row *r, size_t bytes)
{
  (void)r, (void)bytes;
  MPI_Request_free(&kept);
}

static void scan(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Scan(give(bytes, i), take(bytes, i), (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static int scan_wrong(const row *r, size_t bytes)
{
  (void)r;
  return sums_wrong(in, bytes, rank + 1);
}

static void reduce_scatter(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Reduce_scatter_block(give(all(bytes), i), take(bytes, i), (int)(bytes / 8), MPI_DOUBLE, MPI_SUM,
                             MPI_COMM_WORLD);
}

static void reduce_scatter_open(const row *r, size_t bytes) { numbers(r, all(bytes)); }

static int reduce_scatter_wrong(const row *r, size_t bytes)
{
  (void)r;
  for (size_t i = 0; i < bytes / 8; i++)
    if (((double *)in)[i] != size * (size + 1) / 2.0 * (double)(((size_t)rank * bytes / 8 + i) % 7)) return 1;
  return 0;
}

static void gather(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Gather(give(bytes, i), (int)bytes, MPI_BYTE, take(all(bytes), i), (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int gather_wrong(const row *r, size_t bytes)
{
  int wrong = 0;
  (void)r;
  for (int k = 0; k < size && rank == 0; k++) wrong |= differs(in + (size_t)k * bytes, k, 0, bytes);
  return wrong;
}

static void scatter(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Scatter(give(all(bytes), i), (int)bytes, MPI_BYTE, take(bytes, i), (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int scatter_wrong(const row *r, size_t bytes)
{
  (void)r;
  return differs(in, 0, (size_t)rank * bytes, bytes);
}

static void allgather(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Allgather(give(bytes, i), (int)bytes, MPI_BYTE, take(all(bytes), i), (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static int allgather_wrong(const row *r, size_t bytes)
{
  int wrong = 0;
  (void)r;
  for (int k = 0; k < size; k++) wrong |= differs(in + (size_t)k * bytes, k, 0, bytes);
  return wrong;
}

static void alltoall(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Alltoall(give(all(bytes), i), (int)bytes, MPI_BYTE, take(all(bytes), i), (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static int alltoall_wrong(const row *r, size_t bytes)
{
  int wrong = 0;
  (void)r;
  for (int k = 0; k < size; k++) wrong |= differs(in + (size_t)k * bytes, k, (size_t)rank * bytes, bytes);
  return wrong;
}

static void ialltoall(const row *r, size_t bytes, long times)
{
  MPI_Request q;
  (void)r;
  for (long i = 0; i < times; i++) {
    MPI_Ialltoall(give(all(bytes), i), (int)bytes, MPI_BYTE, take(all(bytes), i), (int)bytes, MPI_BYTE, MPI_COMM_WORLD,
                  &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  }
}

/* The v-forms: every second rank has 8 bytes less. */
static void v_open(const row *r, size_t bytes)
{
  (void)r;
  counts = malloc((size_t)size * sizeof(int));
  places = malloc((size_t)size * sizeof(int));
  for (int k = 0; k < size; k++) {
    counts[k] = (int)bytes - (k % 2) * 8;
    places[k] = k * (int)bytes;
  }
}

static void v_close(const row *r, size_t bytes)
{
  (void)r, (void)bytes;
  free(counts);
  free(places);
}

static void gatherv(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Gatherv(give(bytes, i), counts[rank], MPI_BYTE, take(all(bytes), i), counts, places, MPI_BYTE, 0,
                MPI_COMM_WORLD);
}

static int gatherv_wrong(const row *r, size_t bytes)
{
  int wrong = 0;
  (void)r;
  for (int k = 0; k < size && rank == 0; k++) wrong |= differs(in + (size_t)k * bytes, k, 0, (size_t)counts[k]);
  return wrong;
}

static void scatterv(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Scatterv(give(all(bytes), i), counts, places, MPI_BYTE, take(bytes, i), counts[rank], MPI_BYTE, 0,
                 MPI_COMM_WORLD);
}

static int scatterv_wrong(const row *r, size_t bytes)
{
  (void)r;
  return differs(in, 0, (size_t)rank * bytes, (size_t)counts[rank]);
}

static void allgatherv(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Allgatherv(give(bytes, i), counts[rank], MPI_BYTE, take(all(bytes), i), counts, places, MPI_BYTE,
                   MPI_COMM_WORLD);
}

static int allgatherv_wrong(const row *r, size_t bytes)
{
  int wrong = 0;
  (void)r;
  for (int k = 0; k < size; k++) wrong |= differs(in + (size_t)k * bytes, k, 0, (size_t)counts[k]);
  return wrong;
}

/* What goes from one rank to another is as long as the counts of both together say: bytes, or 8 less when both are odd. */
static int *sizes;

static void alltoallv_open(const row *r, size_t bytes)
{
  v_open(r, bytes);
  sizes = malloc((size_t)size * sizeof(int));
  for (int k = 0; k < size; k++) sizes[k] = (int)bytes - (k % 2 && rank % 2) * 8;
}

static void alltoallv(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Alltoallv(give(all(bytes), i), sizes, places, MPI_BYTE, take(all(bytes), i), sizes, places, MPI_BYTE,
                  MPI_COMM_WORLD);
}

static int alltoallv_wrong(const row *r, size_t bytes)
{
  int wrong = 0;
  (void)r;
  for (int k = 0; k < size; k++) wrong |= differs(in + (size_t)k * bytes, k, (size_t)rank * bytes, (size_t)sizes[k]);
  return wrong;
}

static void alltoallv_close(const row *r, size_t bytes)
{
  free(sizes);
  v_close(r, bytes);
}

/* A periodic grid of two dimensions: four neighbours. */
static void grid_open(const row *r, size_t bytes)
{
  int dims[2] = {0, 0}, periods[2] = {1, 1};
  (void)r, (void)bytes;
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
}

static void neighbours(const row *r, size_t bytes, long times)
{
  (void)r;
  for (long i = 0; i < times; i++)
    MPI_Neighbor_alltoall(give(4 * bytes, i), (int)bytes, MPI_BYTE, take(4 * bytes, i), (int)bytes, MPI_BYTE, grid);
}

static int neighbours_wrong(const row *r, size_t bytes)
{
  int wrong = 0, from[4];
  (void)r;
  for (int d = 0; d < 2; d++) MPI_Cart_shift(grid, d, 1, &from[2 * d], &from[2 * d + 1]);
  for (size_t k = 0; k < 4; k++) wrong |= differs(in + k * bytes, from[k], (k ^ 1) * bytes, bytes);
  return wrong;
}

static void grid_close(const row *r, size_t bytes)
{
  (void)r, (void)bytes;
  MPI_Comm_free(&grid);
}

static void duplicate(const row *r, size_t bytes, long times)
{
  (void)r, (void)bytes;
  for (long i = 0; i < times; i++) {
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_free(&c);
  }
}

#define PLAIN(NAME, RUN, WRONG, ...)                                                                                   \
  {                                                                                                                    \
    NAME, RUN, WRONG, 1, 2, 16, {__VA_ARGS__}, 0, 0, 0                                                                 \
  }
#define SUMS(NAME, RUN, WRONG, ...)                                                                                    \
  {                                                                                                                    \
    NAME, RUN, WRONG, 1, 2, 16, {__VA_ARGS__}, numbers, 0, 0                                                           \
  }
#define LISTS(NAME, RUN, WRONG, ...)                                                                                   \
  {                                                                                                                    \
    NAME, RUN, WRONG, 1, 2, 16, {__VA_ARGS__}, v_open, v_close, 0                                                      \
  }

const row coll_rows[] = {
    {"barrier", barrier, 0, 1, 2, 0, {0}, 0, 0, 0},
    PLAIN("bcast", bcast, bcast_wrong, 8, 1024, 65536, 1048576),
    SUMS("reduce", reduce, reduce_wrong, 8, 1024, 65536, 1048576),
    {"allreduce", allreduce, allreduce_wrong, 1, 2, 0, {8, 1024, 65536, 1048576}, numbers, 0, 0},
    PLAIN("gather", gather, gather_wrong, 8, 1024, 65536),
    PLAIN("scatter", scatter, scatter_wrong, 8, 1024, 65536),
    PLAIN("allgather", allgather, allgather_wrong, 8, 1024, 16384, 65536),
    PLAIN("alltoall", alltoall, alltoall_wrong, 8, 1024, 16384, 65536),
    SUMS("scan", scan, scan_wrong, 8, 1024, 65536),
    {"reduce_scatter", reduce_scatter, reduce_scatter_wrong, 1, 2, 16, {8, 1024, 65536}, reduce_scatter_open, 0, 0},
    LISTS("gatherv", gatherv, gatherv_wrong, 1024, 65536),
    LISTS("scatterv", scatterv, scatterv_wrong, 1024, 65536),
    LISTS("allgatherv", allgatherv, allgatherv_wrong, 1024, 65536),
    {"alltoallv", alltoallv, alltoallv_wrong, 1, 2, 16, {1024, 65536}, alltoallv_open, alltoallv_close, 0},
    {"ibarrier", ibarrier, 0, 1, 2, 16, {0}, 0, 0, 0},
    PLAIN("ibcast", ibcast, bcast_wrong, 1024),
    SUMS("iallreduce", iallreduce, allreduce_wrong, 8, 65536),
    PLAIN("ialltoall", ialltoall, alltoall_wrong, 1024),
    {"allreduce_init", kept_run, allreduce_wrong, 1, 2, 16, {8, 65536}, kept_open, kept_close, 0},
    {"neighbor_alltoall", neighbours, neighbours_wrong, 1, 4, 16, {1024, 65536}, grid_open, grid_close, 0},
    {"comm_dup", duplicate, 0, 1, 2, 16, {0}, 0, 0, 0},
    {0}};
