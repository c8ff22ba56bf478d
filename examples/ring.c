/* ring.c - a number goes round: each rank adds its own, rank 0 checks the sum and prints the time of a hop.
 *
 *   mpicc ring.c -o ring && spxrun -n 16 ./ring 1000
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  int rank, size, wrong = 0;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int rounds = argc > 1 ? atoi(argv[1]) : 100;
  int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  double start = MPI_Wtime();

  for (int i = 0; i < rounds; i++) {
    long sum = 0;
    if (rank == 0) {
      MPI_Sendrecv(&sum, 1, MPI_LONG, next, i, &sum, 1, MPI_LONG, previous, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (sum != (long)size * (size - 1) / 2) wrong++;
    } else {
      MPI_Recv(&sum, 1, MPI_LONG, previous, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      sum += rank;
      MPI_Send(&sum, 1, MPI_LONG, next, i, MPI_COMM_WORLD);
    }
  }
  if (rank == 0) {
    double hop = (MPI_Wtime() - start) / rounds / size;
    printf("%d rounds over %d ranks, %.2f us a hop, %d wrong sums\n", rounds, size, hop * 1e6, wrong);
  }
  MPI_Finalize();
  return wrong != 0;
}
