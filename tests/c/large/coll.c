/* Collective operations of more than 2^31 elements: as one count, as the sum of counts, and as displacements. MPI-5.0, chapter 6. */
// run: n=2 args="bcast,empty_elements" timeout=120 alone=1
// run: n=2 timeout=300 alone=1 full=1
#define _GNU_SOURCE
#include "large.h"

static char *from, *to;
static int me;

static void bcast(void)
{
  MPI_Request r;
  fill(to, N, me ? 9 : 1);
  MPI_Bcast_c(to, N, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(same(to, N, 1));
  fill(to, N, me ? 2 : 5);
  MPI_Ibcast_c(to, N, MPI_BYTE, 1, MPI_COMM_WORLD, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  CHECK(same(to, N, 2));
}

/* a | b, at places in the repeated and in the last part. */
static int both(const char *p, int a, int b)
{
  for (int64_t i = 0; i < 100000; i += 7)
    if ((unsigned char)p[i] != (pattern(a, i) | pattern(b, i))) return 0;
  for (int64_t i = own_part(N); i < N; i += 5)
    if ((unsigned char)p[i] != (pattern(a + 1, i) | pattern(b + 1, i))) return 0;
  return 1;
}

static void allreduce(void)
{
  fill(from, N, 1 + 2 * me);
  fill(to, N, 8);
  MPI_Allreduce_c(from, to, N, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  CHECK(both(to, 1, 3));
}

/* To one rank, and to each what those before it have. */
static void reduce_and_scan(void)
{
  fill(from, N, 1 + 2 * me);
  fill(to, N, 8);
  CHECK(MPI_Reduce_c(from, to, N, MPI_BYTE, MPI_BOR, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(me ? both(to, 1, 3) : same(to, N, 8));
  fill(to, N, 8);
  CHECK(MPI_Scan_c(from, to, N, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(me ? both(to, 1, 3) : same(to, N, 1));
  fill(to, N, 8);
  CHECK(MPI_Exscan_c(from, to, N, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(same(to, N, me ? 1 : 8));
}

/* Nonblocking and persistent reductions, in no more temporary memory than the blocking ones. */
static void reductions_behind_requests(void)
{
  MPI_Request r;
  fill(from, N, 1 + 2 * me);
  fill(to, N, 8);
  CHECK(MPI_Iallreduce_c(from, to, N, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD, &r) == MPI_SUCCESS);
  CHECK(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(both(to, 1, 3));
  fill(to, N, 8);
  CHECK(MPI_Iscan_c(from, to, N, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD, &r) == MPI_SUCCESS);
  CHECK(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(me ? both(to, 1, 3) : same(to, N, 1));
  fill(to, N, 8);
  CHECK(MPI_Reduce_init_c(from, to, N, MPI_BYTE, MPI_BOR, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r) == MPI_SUCCESS);
  for (int i = 0; i < 2; i++) {
    CHECK(MPI_Start(&r) == MPI_SUCCESS);
    CHECK(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(me ? both(to, 1, 3) : same(to, N, 8));
  }
  MPI_Request_free(&r);
}

static void nothing(void *in, void *inout, MPI_Count *len, MPI_Datatype *t)
{
  (void)in, (void)inout, (void)len, (void)t;
}

/* Reductions of more than 2^32 elements that have no bytes. */
static void empty_elements(void)
{
  MPI_Count n = ((MPI_Count)1 << 32) + 7, counts[2] = {n, 2 * n};
  MPI_Datatype none;
  MPI_Op op;
  MPI_Type_contiguous(0, MPI_INT, &none);
  MPI_Type_commit(&none);
  MPI_Op_create_c(nothing, 1, &op);
  CHECK(MPI_Reduce_c(from, to, n, none, op, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Scan_c(from, to, n, none, op, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Exscan_c(from, to, n, none, op, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Reduce_scatter_c(from, to, counts, none, op, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Reduce_scatter_block_c(from, to, n, none, op, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Alltoall_c(from, n, none, to, n, none, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Scatter_c(from, n, none, to, n, none, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  MPI_Op_free(&op);
  MPI_Type_free(&none);
}

/* N bytes of each: what rank 1 sends stands behind what rank 0 sends, more than 2^31 bytes from the beginning. */
static void gather(void)
{
  char *all = large(2 * N);
  fill(from, N, 4);
  memset(all, 0, (size_t)REPEAT);
  MPI_Gather_c(from, N, MPI_BYTE, all, N, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(me != 0 || all[2 * N - 1] == from[N - 1]);
  all[2 * N - 1] = 1;
  MPI_Allgather_c(from, N, MPI_BYTE, all, N, MPI_BYTE, MPI_COMM_WORLD);
  CHECK(all[2 * N - 1] == from[N - 1]);
  munmap(all, (size_t)(2 * N));
}

/* Few bytes at large displacements, and many at small ones. */
static void displacements(void)
{
  MPI_Count large_counts[2] = {N, 0};
  MPI_Aint displs[2] = {0, N - 3};
  fill(from, N, 1);
  fill(to, N, 7);
  MPI_Scatterv_c(from, (MPI_Count[]){3, 3}, displs, MPI_BYTE, to, 3, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(!memcmp(to, from + displs[me], 3));
  MPI_Gatherv_c(from + N - 3, 3, MPI_BYTE, to, (MPI_Count[]){3, 3}, displs, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(me != 0 || !memcmp(to + N - 3, from + N - 3, 3));
  fill(to, N, 7);
  MPI_Scatterv_c(from, large_counts, displs, MPI_BYTE, to, me ? 0 : N, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(me != 0 || same(to, N, 1));
  fill(to, N, 7);
  MPI_Allgatherv_c(from, me ? 0 : N, MPI_BYTE, to, large_counts, (MPI_Aint[]){0, 0}, MPI_BYTE, MPI_COMM_WORLD);
  CHECK(same(to, N, 1));
  /* Rank 0 sends N bytes to rank 1, which sends 3 bytes back. */
  fill(to, N, 7);
  MPI_Count send[2] = {me ? 3 : 0, me ? 0 : N}, recv[2] = {me ? N : 0, me ? 0 : 3};
  MPI_Alltoallv_c(from, send, (MPI_Aint[]){me ? N - 3 : 0, 0}, MPI_BYTE, to, recv, (MPI_Aint[]){0, me ? 0 : N - 3},
                  MPI_BYTE, MPI_COMM_WORLD);
  CHECK(me ? same(to, N, 1) : !memcmp(to + N - 3, from + N - 3, 3));
  MPI_Datatype types[2] = {MPI_BYTE, MPI_BYTE};
  fill(to, N, 7);
  MPI_Alltoallw_c(from, send, (MPI_Aint[]){me ? N - 3 : 0, 0}, types, to, recv, (MPI_Aint[]){0, me ? 0 : N - 3}, types,
                  MPI_COMM_WORLD);
  CHECK(me ? same(to, N, 1) : !memcmp(to + N - 3, from + N - 3, 3));
}

/* The small form over elements of 1 GiB. */
static void large_elements(void)
{
  MPI_Datatype giga;
  MPI_Type_contiguous(1 << 30, MPI_BYTE, &giga);
  MPI_Type_commit(&giga);
  fill(to, N, me ? 9 : 3);
  MPI_Bcast(to, 2, giga, 0, MPI_COMM_WORLD);
  CHECK(same(to, REPEAT, 3));
  MPI_Type_free(&giga);
}

/* Each step under its own name, so that one of them can be run alone. */
int main(int argc, char **argv)
{
  const struct {
    const char *name;
    void (*run)(void);
  } steps[] = {{"bcast", bcast},
               {"allreduce", allreduce},
               {"reduce_and_scan", reduce_and_scan},
               {"reductions_behind_requests", reductions_behind_requests},
               {"gather", gather},
               {"displacements", displacements},
               {"large_elements", large_elements},
               {"empty_elements", empty_elements}};
  MPI_Init(&argc, &argv);
  small_memory();
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  from = large(N);
  to = large(N);
  for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
    if (argc > 1 && !strstr(argv[1], steps[i].name)) continue;
    double start = MPI_Wtime();
    steps[i].run();
    if (me == 0) printf("%s: %.1f s\n", steps[i].name, MPI_Wtime() - start);
    fflush(stdout);
  }
  MPI_Finalize();
  return check_status();
}
