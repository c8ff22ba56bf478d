/* Who waits for whom, by the clock: rank 0 sends 50 ms late, then comes 50 ms late to a barrier; rank 1 receives a large message 50 ms late. */
#include <mpi.h>
#include <stdlib.h>

static void work(double seconds)
{
  for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {}
}

int main(int argc, char **argv)
{
  int rank, x = 0, large = 8 << 20;
  char *b = calloc(1, (size_t)large);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) work(0.05);
  if (rank == 0)
    MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  else
    MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0)
    MPI_Ssend(b, large, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
  else {
    work(0.05);
    MPI_Recv(b, large, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 0) work(0.05);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  free(b);
  return 0;
}
