/* primes.c - how many prime numbers there are below a limit: the numbers are dealt out, and the counts are summed.
 *
 *   mpicc -O2 primes.c -o primes && spxrun -n 4 ./primes 3000000 1000
 *
 * Every rank gets so many numbers in turn as the second argument says; 1 without it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int is_prime(long n)
{
  if (n < 4) return n > 1;
  if (n % 2 == 0) return 0;
  for (long d = 3; d * d <= n; d += 2)
    if (n % d == 0) return 0;
  return 1;
}

int main(int argc, char **argv)
{
  int rank, size;
  long limit = argc > 1 ? atol(argv[1]) : 3000000, block = argc > 2 ? atol(argv[2]) : 1, mine = 0, all = 0;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (long first = rank * block; first < limit; first += size * block)
    for (long n = first; n < first + block && n < limit; n++) mine += is_prime(n);
  MPI_Reduce(&mine, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%ld primes below %ld, counted by %d processes\n", all, limit, size);
  MPI_Finalize();
  return 0;
}
