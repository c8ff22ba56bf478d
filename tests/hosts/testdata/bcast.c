/* One broadcast of 2 MiB from rank 3, checked everywhere. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 2 << 20 };

int main(void)
{
  int rank, bad = 0;
  unsigned char *b = malloc(N);
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < N; i++) b[i] = rank == 3 ? (unsigned char)(i * 7 + i / 251) : 0;
  MPI_Bcast(b, N, MPI_BYTE, 3, MPI_COMM_WORLD);
  for (int i = 0; i < N; i++) bad += b[i] != (unsigned char)(i * 7 + i / 251);
  if (bad) printf("rank %d: %d bytes are wrong\n", rank, bad);
  MPI_Finalize();
  return bad != 0;
}
