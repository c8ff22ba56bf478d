/* Who waits for whom, by the clock: rank 0 sends 50 ms late, then comes 50 ms late to a barrier; rank 1 receives a large message 50 ms late. Rank 0 says how long each has waited, in s: it may be more or less where the
 * processors are taken. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void work(double seconds)
{
  for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {}
}

int main(int argc, char **argv)
{
  int rank, x = 0, large = 8 << 20;
  double at[3], other[3]; /* when this rank, and the other one, comes to the message, the large one, the barrier */
  char *b = calloc(1, (size_t)large);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) work(0.05);
  at[0] = MPI_Wtime();
  if (rank == 0)
    MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  else
    MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) work(0.05);
  at[1] = MPI_Wtime();
  if (rank == 0)
    MPI_Ssend(b, large, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
  else
    MPI_Recv(b, large, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) work(0.05);
  at[2] = MPI_Wtime();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Sendrecv(at, 3, MPI_DOUBLE, 1 - rank, 2, other, 3, MPI_DOUBLE, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) printf("%f %f %f\n", at[0] - other[0], other[1] - at[1], at[2] - other[2]);
  MPI_Finalize();
  free(b);
  return 0;
}
