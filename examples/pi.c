/* pi.c - the integral of 4/(1+x*x) over [0, 1] by the midpoint rule, in equal shares, summed by MPI_Reduce.
 *
 *   mpicc pi.c -o pi -lm && spxrun -n 4 ./pi 10000000
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  int rank, size, status = 0;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long steps = rank == 0 && argc > 1 ? atol(argv[1]) : 10000000;
  MPI_Bcast(&steps, 1, MPI_LONG, 0, MPI_COMM_WORLD);

  double width = 1.0 / (double)steps, part = 0, sum = 0;
  for (long i = rank; i < steps; i += size) {
    double x = ((double)i + 0.5) * width;
    part += 4.0 / (1.0 + x * x);
  }
  part *= width;
  MPI_Reduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    double error = fabs(sum - 3.14159265358979323846);
    printf("pi = %.15f, error %.1e, with %ld steps on %d ranks\n", sum, error, steps, size);
    status = error > 1e-6;
  }
  MPI_Finalize();
  return status;
}
