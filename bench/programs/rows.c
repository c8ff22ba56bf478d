/* rows.c - measures one MPI: prints a line "row bytes microseconds" for each row. The driver (bench/) runs the same binary
 * under several libraries in turn.
 *
 *   rows [-t MS] [ROW ...]      MS: how long one batch lasts (default 20); ROWs: pingpong rate stream barrier bcast ...
 *
 * A row is calibrated until a batch lasts about MS, then measured in BATCHES batches; the median batch is printed.
 * Every row checks its data once, so that no figure stands for a wrong result.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 5, WINDOW = 64, BIGGEST = 4 << 20 };

static int rank, size;
static char *out, *in; /* BIGGEST bytes, or size * 64 KiB if that is more */
static double batch_ms = 20;

typedef void body(size_t bytes, long times);

static void die(const char *row, size_t bytes)
{
  fprintf(stderr, "rows: %s of %zu bytes: wrong data on rank %d\n", row, bytes, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Half round trips between ranks 0 and 1. */
static void pingpong(size_t bytes, long times)
{
  int n = (int)bytes;
  if (rank > 1) return;
  for (long i = 0; i < times; i++) {
    if (rank == 0) {
      MPI_Send(out, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(in, n, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out, n, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
  }
}

/* Windows of nonblocking messages from rank 0 to rank 1, an answer after each window. */
static void windowed(size_t bytes, long times)
{
  MPI_Request r[WINDOW];
  int n = (int)bytes, ack = 0;
  if (rank > 1) return;
  for (long i = 0; i < times; i++) {
    for (int k = 0; k < WINDOW; k++) {
      if (rank == 0)
        MPI_Isend(out, n, MPI_BYTE, 1, k, MPI_COMM_WORLD, &r[k]);
      else
        MPI_Irecv(in, n, MPI_BYTE, 0, k, MPI_COMM_WORLD, &r[k]);
    }
    MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
    if (rank == 0)
      MPI_Recv(&ack, 1, MPI_INT, 1, WINDOW, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(&ack, 1, MPI_INT, 0, WINDOW, MPI_COMM_WORLD);
  }
}

static void barrier(size_t bytes, long times)
{
  (void)bytes;
  for (long i = 0; i < times; i++) MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(size_t bytes, long times)
{
  for (long i = 0; i < times; i++) MPI_Bcast(rank == 0 ? out : in, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allreduce(size_t bytes, long times)
{
  for (long i = 0; i < times; i++) MPI_Allreduce(out, in, (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(size_t bytes, long times)
{
  for (long i = 0; i < times; i++) MPI_Allgather(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(size_t bytes, long times)
{
  for (long i = 0; i < times; i++) MPI_Alltoall(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

typedef struct row {
  const char *name;
  body *run;
  double per_call; /* operations in a call of run: 2 half round trips, WINDOW messages */
  int pair;        /* 1: ranks 0 and 1 alone; measured with 2 ranks */
  size_t bytes[9]; /* 0 ends the list, except in the first place */
} row;

static const row rows[] = {
    {"pingpong", pingpong, 2, 1, {8, 64, 512, 4096, 16384, 65536, 262144, 1048576, BIGGEST}},
    {"window", windowed, WINDOW, 1, {8, 64, 1024, 8192, 65536, 1048576}},
    {"barrier", barrier, 1, 0, {0}},
    {"bcast", bcast, 1, 0, {8, 1024, 65536, 1048576}},
    {"allreduce", allreduce, 1, 0, {8, 1024, 65536, 1048576}},
    {"allgather", allgather, 1, 0, {8, 1024, 16384}},
    {"alltoall", alltoall, 1, 0, {8, 1024, 16384}},
};

/* One call on known data, and whether the right bytes arrived. */
static void check(const row *r, size_t bytes)
{
  size_t room = (size_t)size * bytes > bytes ? (size_t)size * bytes : bytes;
  int wrong = 0;
  memset(out, 'a' + rank % 20, room < BIGGEST ? room : BIGGEST);
  memset(in, 0, room < BIGGEST ? room : BIGGEST);
  if (r->run == allreduce)
    for (size_t i = 0; i < bytes / 8; i++) ((double *)out)[i] = (double)(rank + 1) * (double)(i % 7);
  r->run(bytes, 1);
  if (r->run == pingpong && rank < 2) wrong = in[0] != 'b' - rank || in[bytes - 1] != 'b' - rank;
  if (r->run == windowed && rank == 1) wrong = in[0] != 'a' || in[bytes - 1] != 'a';
  if (r->run == bcast && rank > 0) wrong = in[0] != 'a' || in[bytes - 1] != 'a';
  if (r->run == allreduce)
    for (size_t i = 0; i < bytes / 8; i++) wrong |= ((double *)in)[i] != size * (size + 1) / 2.0 * (double)(i % 7);
  if (r->run == allgather || r->run == alltoall)
    for (int k = 0; k < size; k++) wrong |= in[(size_t)k * bytes] != 'a' + k % 20;
  if (wrong) die(r->name, bytes);
}

/* Seconds of a batch, on rank 0: all ranks begin together, and the slowest counts. */
static double batch(const row *r, size_t bytes, long times)
{
  double start, mine, most = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  start = MPI_Wtime();
  r->run(bytes, times);
  mine = MPI_Wtime() - start;
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return most;
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void measure(const row *r, size_t bytes)
{
  long times = 1;
  double seconds[BATCHES];
  check(r, bytes);
  batch(r, bytes, 2);
  for (;;) {
    double s = batch(r, bytes, times), want = batch_ms / 1e3;
    long more = 0;
    if (rank == 0 && s < want) more = s < want / 10 ? times * 8 : (long)((double)times * want / s * 1.05) + 1;
    MPI_Bcast(&more, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (more <= times) break;
    times = more;
  }
  for (int i = 0; i < BATCHES; i++) seconds[i] = batch(r, bytes, times);
  qsort(seconds, BATCHES, sizeof(double), ascending);
  if (rank == 0) {
    printf("%s %zu %.4f\n", r->name, bytes, seconds[BATCHES / 2] * 1e6 / (double)times / r->per_call);
    fflush(stdout);
  }
}

static int wanted(const char *name, int argc, char **argv, int first)
{
  for (int i = first; i < argc; i++)
    if (!strcmp(argv[i], name)) return 1;
  return first >= argc;
}

int main(int argc, char **argv)
{
  int first = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 2 && !strcmp(argv[1], "-t")) batch_ms = atof(argv[2]), first = 3;
  size_t room = (size_t)size * 65536 > BIGGEST ? (size_t)size * 65536 : BIGGEST;
  out = malloc(room);
  in = malloc(room);
  if (!out || !in || size < 2) {
    fprintf(stderr, "rows: needs 2 ranks and %zu bytes each\n", 2 * room);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  memset(out, 1, room); /* every page is there before anything is timed */
  memset(in, 2, room);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const row *r = &rows[k];
    if ((r->pair && size != 2) || !wanted(r->name, argc, argv, first)) continue;
    for (int i = 0; i < 9 && (i == 0 || r->bytes[i]); i++) measure(r, r->bytes[i]);
  }
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
