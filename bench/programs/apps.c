/* apps.c - rows: small programs, for many ranks on few processors. bytes: 0; one iteration. */
#include <math.h>
#include "rows.h"

/* Jacobi's method on a square of N x N points, in strips of rows: a halo to either side and the largest change, each iteration. */
enum { N = 512 };

static double *grid_now, *grid_next;
static int strip; /* rows of this rank */

static void jacobi_start(void)
{
  for (int i = 0; i < (strip + 2) * N; i++) grid_now[i] = grid_next[i] = 0;
  for (int y = 0; y < strip + 2; y++) {
    grid_now[y * N] = grid_next[y * N] = 1;
    grid_now[y * N + N - 1] = grid_next[y * N + N - 1] = -2;
  }
}

static void jacobi_open(const row *r, size_t bytes)
{
  (void)r, (void)bytes;
  strip = N * (rank + 1) / size - N * rank / size;
  grid_now = malloc((size_t)(strip + 2) * N * sizeof(double));
  grid_next = malloc((size_t)(strip + 2) * N * sizeof(double));
  jacobi_start();
}

static void jacobi_close(const row *r, size_t bytes)
{
  (void)r, (void)bytes;
  free(grid_now);
  free(grid_next);
}

static double sweep(void)
{
  double most = 0;
  for (int y = 1; y <= strip; y++) {
    const double *c = grid_now + y * N, *up = c - N, *down = c + N;
    double *to = grid_next + y * N;
    for (int x = 1; x < N - 1; x++) {
      double v = 0.25 * (up[x] + down[x] + c[x - 1] + c[x + 1]), d = fabs(v - c[x]);
      to[x] = v;
      if (d > most) most = d;
    }
  }
  double *t = grid_now;
  grid_now = grid_next, grid_next = t;
  return most;
}

static double largest;

static void jacobi(const row *r, size_t bytes, long times)
{
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  (void)r, (void)bytes;
  for (long i = 0; i < times; i++) {
    MPI_Request q[4];
    MPI_Irecv(grid_now, N, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(grid_now + (strip + 1) * N, N, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &q[1]);
    MPI_Isend(grid_now + N, N, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &q[2]);
    MPI_Isend(grid_now + strip * N, N, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &q[3]);
    MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
    double mine = sweep();
    MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
}

/* Ten more iterations: the sum of all points is that of a single process. */
static int jacobi_wrong(const row *r, size_t bytes)
{
  double mine = 0, all, alone = 0;
  int my_strip = strip;
  jacobi_start();
  jacobi(r, bytes, 10);
  for (int i = N; i < (strip + 1) * N; i++) mine += grid_now[i];
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    double *a = grid_now, *b = grid_next;
    strip = N;
    grid_now = malloc((N + 2) * N * sizeof(double));
    grid_next = malloc((N + 2) * N * sizeof(double));
    jacobi_start();
    for (int i = 0; i < 10; i++) sweep();
    for (int i = N; i < (N + 1) * N; i++) alone += grid_now[i];
    free(grid_now);
    free(grid_next);
    grid_now = a, grid_next = b;
  }
  strip = my_strip;
  return rank == 0 && fabs(all - alone) > 1e-9 * fabs(alone);
}

const row app_rows[] = {{"jacobi", jacobi, jacobi_wrong, 1, 2, 0, {0}, jacobi_open, jacobi_close, 0}, {0}};
