/* collectives.h - every collective on a communicator, with its result checked. A program sets comm, calls prepare(), and then rooted(ROOT), symmetric() and others(). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm comm;
static int rank, size;

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "rank %d: %s does not hold (line %d)\n", rank, #condition, __LINE__);                            \
      MPI_Abort(comm, 1);                                                                                              \
    }                                                                                                                  \
  } while (0)

enum { BLOCK = 16 }; /* numbers for each rank */

static int *out, *in, *counts, *places, *ones;

static void fill(int n)
{
  for (int i = 0; i < n; i++) out[i] = rank * 3 + i;
  memset(in, 0xee, (size_t)size * BLOCK * sizeof(int));
}

static int sum(int i) { return 3 * size * (size - 1) / 2 + i * size; } /* of all ranks' out[i] */

static void rooted(int root)
{
  fill(BLOCK * size);
  if (rank == root) memcpy(in, out, BLOCK * sizeof(int));
  MPI_Bcast(in, BLOCK, MPI_INT, root, comm);
  for (int i = 0; i < BLOCK; i++) CHECK(in[i] == root * 3 + i);
  MPI_Reduce(out, in, BLOCK, MPI_INT, MPI_SUM, root, comm);
  for (int i = 0; i < BLOCK && rank == root; i++) CHECK(in[i] == sum(i));
  MPI_Gather(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, root, comm);
  for (int k = 0; k < size && rank == root; k++) CHECK(in[k * BLOCK + 1] == k * 3 + 1);
  MPI_Gatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, root, comm);
  for (int k = 0; k < size && rank == root; k++) CHECK(in[k * BLOCK + counts[k] - 1] == k * 3 + counts[k] - 1);
  MPI_Scatter(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, root, comm);
  CHECK(in[1] == root * 3 + rank * BLOCK + 1);
  MPI_Scatterv(out, counts, places, MPI_INT, in, counts[rank], MPI_INT, root, comm);
  CHECK(in[counts[rank] - 1] == root * 3 + rank * BLOCK + counts[rank] - 1);
}

static void symmetric(void)
{
  MPI_Datatype *types = malloc((size_t)size * sizeof *types);
  int *bytes = malloc((size_t)size * sizeof *bytes);
  fill(BLOCK * size);
  MPI_Allreduce(out, in, BLOCK, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < BLOCK; i++) CHECK(in[i] == sum(i));
  MPI_Allgather(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, comm);
  for (int k = 0; k < size; k++) CHECK(in[k * BLOCK + BLOCK - 1] == k * 3 + BLOCK - 1);
  MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, comm);
  for (int k = 0; k < size; k++) CHECK(in[k * BLOCK + counts[k] - 1] == k * 3 + counts[k] - 1);
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm);
  for (int k = 0; k < size; k++) CHECK(in[k] == k * 3 + rank);
  MPI_Alltoallv(out, ones, places, MPI_INT, in, ones, places, MPI_INT, comm);
  for (int k = 0; k < size; k++) CHECK(in[k * BLOCK] == k * 3 + rank * BLOCK);
  for (int k = 0; k < size; k++) types[k] = MPI_INT, bytes[k] = places[k] * (int)sizeof(int);
  MPI_Alltoallw(out, ones, bytes, types, in, ones, bytes, types, comm);
  for (int k = 0; k < size; k++) CHECK(in[k * BLOCK] == k * 3 + rank * BLOCK);
  MPI_Scan(out, in, BLOCK, MPI_INT, MPI_SUM, comm);
  CHECK(in[0] == 3 * rank * (rank + 1) / 2);
  MPI_Exscan(out, in, BLOCK, MPI_INT, MPI_SUM, comm);
  CHECK(rank == 0 || in[0] == 3 * rank * (rank - 1) / 2);
  MPI_Reduce_scatter_block(out, in, 1, MPI_INT, MPI_SUM, comm);
  CHECK(in[0] == sum(rank));
  MPI_Reduce_scatter(out, in, ones, MPI_INT, MPI_SUM, comm);
  CHECK(in[0] == sum(rank));
  free(types);
  free(bytes);
}

/* The nonblocking forms, all at once; persistent; a split; a window. */
static void others(void)
{
  MPI_Request q[3], kept;
  MPI_Comm half;
  MPI_Win win;
  int a = rank, b = -1, c = rank == 0 ? 7 : 0, *own, one = 1;
  MPI_Iallreduce(&a, &b, 1, MPI_INT, MPI_MAX, comm, &q[0]);
  MPI_Ibcast(&c, 1, MPI_INT, 0, comm, &q[1]);
  MPI_Ibarrier(comm, &q[2]);
  MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
  CHECK(b == size - 1 && c == 7);
  MPI_Allreduce_init(&a, &b, 1, MPI_INT, MPI_MIN, comm, MPI_INFO_NULL, &kept);
  MPI_Start(&kept);
  MPI_Wait(&kept, MPI_STATUS_IGNORE);
  MPI_Request_free(&kept);
  CHECK(b == 0);
  MPI_Comm_split(comm, rank % 2, rank, &half);
  MPI_Allreduce(&one, &a, 1, MPI_INT, MPI_SUM, half);
  CHECK(a == size / 2 + (size % 2 && rank % 2 == 0));
  MPI_Comm_free(&half);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &own, &win);
  *own = 0;
  MPI_Win_fence(0, win);
  MPI_Accumulate(&one, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  CHECK(*own == 1);
  MPI_Win_free(&win);
}

/* Whose ranks comm has, and the buffers for them; again when it is another one. */
static void prepare(void)
{
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  out = realloc(out, (size_t)size * BLOCK * sizeof(int));
  in = realloc(in, (size_t)size * BLOCK * sizeof(int));
  counts = realloc(counts, (size_t)size * sizeof(int));
  places = realloc(places, (size_t)size * sizeof(int));
  ones = realloc(ones, (size_t)size * sizeof(int));
  CHECK(out && in && counts && places && ones);
  for (int k = 0; k < size; k++) {
    counts[k] = 1 + k % BLOCK;
    places[k] = k * BLOCK;
    ones[k] = 1;
  }
}
