/* intsort.c - sorts whole numbers that are spread over the ranks, in the manner of the NAS benchmark IS: in each of some iterations every rank
 * counts its keys by bucket, the buckets are given to ranks so that all have about as many keys (MPI_Allreduce), and all keys go to their
 * rank (MPI_Alltoall, MPI_Alltoallv). At the end the result is checked: sorted, within and between ranks, with no key lost or made up.
 *
 *   mpicc -O2 intsort.c -o intsort && spxrun -n 8 ./intsort 20 16 10      (2^20 keys below 2^16, 10 iterations)
 *
 * The last line tells the time, and of MPI's variables (MPI_T) what it took of the network, the most of any rank.
 */
#include <dirent.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS = 1024 };

static int rank, size;
static int64_t mine, most_keys; /* keys at first; room for those that come */
static uint32_t limit;          /* keys are below this */
static uint32_t *keys, *sorted_by_bucket, *received;
static int64_t received_n;

static uint32_t uniform(uint64_t *state)
{
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(*state >> 32);
}

/* The mean of four uniform numbers, as in IS: most are near the middle. */
static void make_keys(void)
{
  uint64_t state = (uint64_t)rank * 0x9e3779b97f4a7c15ull + 314159265;
  for (int i = 0; i < 8; i++) uniform(&state);
  for (int64_t i = 0; i < mine; i++) {
    uint64_t sum = 0;
    for (int k = 0; k < 4; k++) sum += uniform(&state);
    keys[i] = (uint32_t)((sum >> 2) * limit >> 32);
  }
}

static uint32_t bucket_of(uint32_t key) { return (uint32_t)((uint64_t)key * BUCKETS / limit); }

static void *need(size_t bytes)
{
  void *p = malloc(bytes ? bytes : 1);
  if (!p) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return p;
}

/* One iteration. Two keys change, so that none can be left out. */
static void sort_keys(int iteration, int *send_n, int *send_at, int *recv_n, int *recv_at)
{
  int64_t own[BUCKETS] = {0}, all[BUCKETS], at[BUCKETS], total = 0, before = 0;
  if (mine > iteration) keys[iteration] = (uint32_t)iteration % limit;
  if (mine > iteration + 16) keys[iteration + 16] = (limit - 1 - (uint32_t)iteration % limit);
  for (int64_t i = 0; i < mine; i++) own[bucket_of(keys[i])]++;
  MPI_Allreduce(own, all, BUCKETS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (int b = 0; b < BUCKETS; b++) total += all[b];
  memset(send_n, 0, (size_t)size * sizeof *send_n);
  for (int b = 0, sum = 0; b < BUCKETS; b++) {
    at[b] = sum;
    sum += (int)own[b];
    int to = total ? (int)(before * size / total) : 0; /* the rank whose share begins with, or before, this bucket */
    send_n[to < size ? to : size - 1] += (int)own[b];
    before += all[b];
  }
  for (int64_t i = 0; i < mine; i++) sorted_by_bucket[at[bucket_of(keys[i])]++] = keys[i];
  MPI_Alltoall(send_n, 1, MPI_INT, recv_n, 1, MPI_INT, MPI_COMM_WORLD);
  int from = 0, to = 0;
  for (int r = 0; r < size; r++) {
    send_at[r] = from;
    recv_at[r] = to;
    from += send_n[r];
    to += recv_n[r];
  }
  if (to > most_keys) {
    free(received);
    received = need((size_t)(most_keys = to + to / 4) * sizeof *received);
  }
  received_n = to;
  MPI_Alltoallv(sorted_by_bucket, send_n, send_at, MPI_UINT32_T, received, recv_n, recv_at, MPI_UINT32_T,
                MPI_COMM_WORLD);
}

/* Counts the keys that came, and writes them in order. */
static void rank_keys(void)
{
  int64_t *count = need((size_t)limit * sizeof *count), n = 0;
  memset(count, 0, (size_t)limit * sizeof *count);
  for (int64_t i = 0; i < received_n; i++) count[received[i]]++;
  for (uint32_t k = 0; k < limit; k++)
    for (int64_t i = 0; i < count[k]; i++) received[n++] = k;
  free(count);
}

static int check(void)
{
  int64_t sums[3] = {mine, 0, 0}, after[3] = {received_n, 0, 0}, wrong = 0, all_wrong;
  for (int64_t i = 0; i < mine; i++) sums[1] += keys[i], sums[2] += (int64_t)keys[i] * keys[i] % 1000003;
  for (int64_t i = 0; i < received_n; i++) {
    after[1] += received[i], after[2] += (int64_t)received[i] * received[i] % 1000003;
    if (i && received[i - 1] > received[i]) wrong++;
  }
  int64_t edge[2] = {received_n ? (int64_t)received[0] : -1, received_n ? (int64_t)received[received_n - 1] : -1},
          last = -1;
  int64_t *edges = need((size_t)size * sizeof edge), total[3], total_after[3];
  MPI_Allgather(edge, 2, MPI_INT64_T, edges, 2, MPI_INT64_T, MPI_COMM_WORLD);
  for (int r = 0; r < size; r++) {
    if (edges[2 * r] < 0) continue;
    if (edges[2 * r] < last) wrong++;
    last = edges[2 * r + 1];
  }
  free(edges);
  MPI_Allreduce(sums, total, 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(after, total_after, 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 3; i++) wrong += total[i] != total_after[i];
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all_wrong == 0;
}

/* ---- what it took ------------------------------------------------------------------------------------------------ */

static const char *const names[] = {"spx_connections_open", "spx_connections_opened", "spx_connections_evicted",
                                    "spx_frames_relayed", "spx_frames_forwarded"};
enum { NAMES = sizeof names / sizeof *names, FIGURES = NAMES + 2 };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[NAMES];

static void watch(void)
{
  int provided, index, count;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  for (int i = 0; i < NAMES; i++) {
    handles[i] = MPI_T_PVAR_HANDLE_NULL;
    if (MPI_T_pvar_get_index(names[i], i ? MPI_T_PVAR_CLASS_COUNTER : MPI_T_PVAR_CLASS_LEVEL, &index) != MPI_SUCCESS)
      continue; /* another MPI */
    MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count);
    MPI_T_pvar_start(session, handles[i]);
  }
}

static long descriptors(void)
{
  long n = -3; /* ".", "..", and this one */
  DIR *d = opendir("/proc/self/fd");
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

/* Memory of this process alone, in KiB. */
static long memory(void)
{
  long all = 0, here = 0, shared = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f && fscanf(f, "%ld %ld %ld", &all, &here, &shared) != 3) here = shared = 0;
  if (f) fclose(f);
  return (here - shared) * (sysconf(_SC_PAGESIZE) / 1024);
}

static void figures(int64_t *most)
{
  int64_t own[FIGURES] = {0};
  for (int i = 0; i < NAMES; i++)
    if (handles[i] != MPI_T_PVAR_HANDLE_NULL) MPI_T_pvar_read(session, handles[i], &own[i]);
  own[NAMES] = descriptors();
  own[NAMES + 1] = memory();
  MPI_Reduce(own, most, FIGURES, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  watch();
  int log_keys = argc > 1 ? atoi(argv[1]) : 20, log_limit = argc > 2 ? atoi(argv[2]) : 16;
  int iterations = argc > 3 ? atoi(argv[3]) : 10;
  if (log_keys < 4 || log_keys > 34 || log_limit < 10 || log_limit > 27 || iterations < 1) {
    if (rank == 0) fprintf(stderr, "usage: intsort LOG2_KEYS (4..34) LOG2_LIMIT (10..27) ITERATIONS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  limit = 1u << log_limit;
  mine = ((int64_t)1 << log_keys) / size;
  keys = need((size_t)mine * sizeof *keys);
  sorted_by_bucket = need((size_t)mine * sizeof *keys);
  int *n = need((size_t)size * 4 * sizeof *n);
  make_keys();
  sort_keys(0, n, n + size, n + 2 * size, n + 3 * size); /* not measured */
  MPI_Barrier(MPI_COMM_WORLD);
  double began = MPI_Wtime();
  for (int i = 1; i <= iterations; i++) sort_keys(i, n, n + size, n + 2 * size, n + 3 * size);
  MPI_Barrier(MPI_COMM_WORLD);
  double took = MPI_Wtime() - began;
  int64_t most[FIGURES];
  figures(most);
  rank_keys();
  int right = check();
  if (rank == 0)
    printf("%s: 2^%d keys, %d ranks, %d iterations: %.4f s; of a rank at most: %lld connections, %lld opened, %lld "
           "evicted, "
           "%lld relayed, %lld forwarded, %lld descriptors, %lld KiB\n",
           right ? "sorted" : "WRONG", log_keys, size, iterations, took, (long long)most[0], (long long)most[1],
           (long long)most[2], (long long)most[3], (long long)most[4], (long long)most[5], (long long)most[6]);
  MPI_T_finalize();
  MPI_Finalize();
  return !right;
}
