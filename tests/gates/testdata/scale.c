/* scale.c - every collective on many ranks, with its result checked, and the memory that the ranks have at each stage.
 *
 *   scale [PEERS ...]     before the collectives, every rank exchanges a message with that many others, for each number
 *
 * Rank 0 prints "memory STAGE TOTAL = ...": bytes of all ranks together, with their shares of what they share, and page tables.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "scale: rank %d: %s does not hold (line %d)\n", rank, #condition, __LINE__);                     \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                                                    \
    }                                                                                                                  \
  } while (0)

/* A field of a file in /proc/self that is given in kB; in bytes. */
static double field(const char *file, const char *name)
{
  char line[256];
  double kb = 0;
  FILE *f = fopen(file, "r");
  CHECK(f != NULL);
  while (fgets(line, sizeof line, f))
    if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), ": %lf", &kb);
  fclose(f);
  return kb * 1024;
}

static void memory(const char *stage)
{
  double mine[4], all[4] = {0, 0, 0, 0};
  MPI_Barrier(MPI_COMM_WORLD);
  mine[0] = field("/proc/self/smaps_rollup", "Pss_Anon");
  mine[1] = field("/proc/self/smaps_rollup", "Pss_Shmem");
  mine[2] = field("/proc/self/smaps_rollup", "Pss_File");
  mine[3] = field("/proc/self/status", "VmPTE");
  MPI_Reduce(mine, all, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("memory %s %.0f = %.0f own + %.0f shared + %.0f of files + %.0f of tables\n", stage,
           all[0] + all[1] + all[2] + all[3], all[0], all[1], all[2], all[3]);
    fflush(stdout);
  }
}

/* One long and a few short messages with each of the next peers. */
static void talk(int peers)
{
  char give[4096], take[4096];
  for (int k = 1; k <= peers; k++)
    for (int i = 0; i < 8; i++) {
      int n = i == 0 ? (int)sizeof give : 8, to = (rank + k) % size, from = (rank + size - k) % size;
      memset(give, rank & 127, sizeof give);
      MPI_Sendrecv(give, n, MPI_BYTE, to, k, take, n, MPI_BYTE, from, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(take[0] == (from & 127) && take[n - 1] == (from & 127));
    }
}

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
  MPI_Bcast(in, BLOCK, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < BLOCK; i++) CHECK(in[i] == root * 3 + i);
  MPI_Reduce(out, in, BLOCK, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  for (int i = 0; i < BLOCK && rank == root; i++) CHECK(in[i] == sum(i));
  MPI_Gather(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, root, MPI_COMM_WORLD);
  for (int k = 0; k < size && rank == root; k++) CHECK(in[k * BLOCK + 1] == k * 3 + 1);
  MPI_Gatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, root, MPI_COMM_WORLD);
  for (int k = 0; k < size && rank == root; k++) CHECK(in[k * BLOCK + counts[k] - 1] == k * 3 + counts[k] - 1);
  MPI_Scatter(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, root, MPI_COMM_WORLD);
  CHECK(in[1] == root * 3 + rank * BLOCK + 1);
  MPI_Scatterv(out, counts, places, MPI_INT, in, counts[rank], MPI_INT, root, MPI_COMM_WORLD);
  CHECK(in[counts[rank] - 1] == root * 3 + rank * BLOCK + counts[rank] - 1);
}

static void symmetric(void)
{
  MPI_Datatype *types = malloc((size_t)size * sizeof *types);
  int *bytes = malloc((size_t)size * sizeof *bytes);
  fill(BLOCK * size);
  MPI_Allreduce(out, in, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < BLOCK; i++) CHECK(in[i] == sum(i));
  MPI_Allgather(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, MPI_COMM_WORLD);
  for (int k = 0; k < size; k++) CHECK(in[k * BLOCK + BLOCK - 1] == k * 3 + BLOCK - 1);
  MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int k = 0; k < size; k++) CHECK(in[k * BLOCK + counts[k] - 1] == k * 3 + counts[k] - 1);
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
  for (int k = 0; k < size; k++) CHECK(in[k] == k * 3 + rank);
  MPI_Alltoallv(out, ones, places, MPI_INT, in, ones, places, MPI_INT, MPI_COMM_WORLD);
  for (int k = 0; k < size; k++) CHECK(in[k * BLOCK] == k * 3 + rank * BLOCK);
  for (int k = 0; k < size; k++) types[k] = MPI_INT, bytes[k] = places[k] * (int)sizeof(int);
  MPI_Alltoallw(out, ones, bytes, types, in, ones, bytes, types, MPI_COMM_WORLD);
  for (int k = 0; k < size; k++) CHECK(in[k * BLOCK] == k * 3 + rank * BLOCK);
  MPI_Scan(out, in, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(in[0] == 3 * rank * (rank + 1) / 2);
  MPI_Exscan(out, in, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(rank == 0 || in[0] == 3 * rank * (rank - 1) / 2);
  MPI_Reduce_scatter_block(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(in[0] == sum(rank));
  MPI_Reduce_scatter(out, in, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
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
  MPI_Iallreduce(&a, &b, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &q[0]);
  MPI_Ibcast(&c, 1, MPI_INT, 0, MPI_COMM_WORLD, &q[1]);
  MPI_Ibarrier(MPI_COMM_WORLD, &q[2]);
  MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
  CHECK(b == size - 1 && c == 7);
  MPI_Allreduce_init(&a, &b, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, MPI_INFO_NULL, &kept);
  MPI_Start(&kept);
  MPI_Wait(&kept, MPI_STATUS_IGNORE);
  MPI_Request_free(&kept);
  CHECK(b == 0);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Allreduce(&one, &a, 1, MPI_INT, MPI_SUM, half);
  CHECK(a == size / 2 + (size % 2 && rank % 2 == 0));
  MPI_Comm_free(&half);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
  *own = 0;
  MPI_Win_fence(0, win);
  MPI_Accumulate(&one, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  CHECK(*own == 1);
  MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
  char stage[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  memory("start");
  for (int i = 1; i < argc; i++) {
    int peers = atoi(argv[i]);
    if (peers >= size) continue;
    talk(peers);
    snprintf(stage, sizeof stage, "peers=%d", peers);
    memory(stage);
  }
  out = malloc((size_t)size * BLOCK * sizeof(int));
  in = malloc((size_t)size * BLOCK * sizeof(int));
  counts = malloc((size_t)size * sizeof(int));
  places = malloc((size_t)size * sizeof(int));
  ones = malloc((size_t)size * sizeof(int));
  for (int k = 0; k < size; k++) {
    counts[k] = 1 + k % BLOCK;
    places[k] = k * BLOCK;
    ones[k] = 1;
  }
  rooted(0);
  rooted(size - 1);
  memory("rooted");
  symmetric();
  memory("symmetric");
  others();
  memory("all");
  if (rank == 0) printf("all collectives on %d ranks\n", size);
  MPI_Finalize();
  return 0;
}
