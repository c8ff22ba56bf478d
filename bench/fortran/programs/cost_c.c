/* The calls in C, and the clock. */
#include <mpi.h>
#include <stdint.h>
#include <time.h>

int64_t now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void c_rank(int n)
{
  int r;
  for (int i = 0; i < n; i++) MPI_Comm_rank(MPI_COMM_WORLD, &r);
}

void c_null(int n)
{
  double x[8] = {1};
  for (int i = 0; i < n; i++) MPI_Send(x, 8, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_SELF);
}

void c_self(int n)
{
  double x[8] = {1}, y[8];
  MPI_Request q;
  for (int i = 0; i < n; i++) {
    MPI_Irecv(y, 8, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &q);
    MPI_Send(x, 8, MPI_DOUBLE, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  }
}
