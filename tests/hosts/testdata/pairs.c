/* Every rank exchanges a word with every other one, all at the same time. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  int rank, size, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int got[64];
  MPI_Request r[128];
  for (int i = 0; i < size; i++) {
    MPI_Irecv(&got[i], 1, MPI_INT, i, 0, MPI_COMM_WORLD, &r[i]);
    MPI_Isend(&rank, 1, MPI_INT, i, 0, MPI_COMM_WORLD, &r[size + i]);
  }
  MPI_Waitall(2 * size, r, MPI_STATUSES_IGNORE);
  for (int i = 0; i < size; i++) sum += got[i];
  if (sum != size * (size - 1) / 2) return 1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks have exchanged\n", size);
  MPI_Finalize();
  return 0;
}
