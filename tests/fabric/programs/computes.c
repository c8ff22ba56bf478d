/* A rank sends, and then computes for long: its messages arrive meanwhile. The same with one that
 * has more under way than the other end has room for. */
#include "fabric.h"

enum { MANY = 60, EACH = 15000, COMPUTES_S = 3 };

int main(int argc, char **argv)
{
  static unsigned char b[EACH];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  begin_count();
  for (int i = 0; i < 20; i++) MPI_Barrier(MPI_COMM_WORLD); /* the pair has come to the fabric */
  if (rank == 0) {
    for (int n = 0; n < MANY; n++) {
      fill(b, EACH, 0, n);
      MPI_Send(b, EACH, MPI_BYTE, 1, n, MPI_COMM_WORLD);
    }
    sleep(COMPUTES_S);
  } else {
    usleep(300000);
    double began = MPI_Wtime();
    for (int n = 0; n < MANY; n++) {
      MPI_Recv(b, EACH, MPI_BYTE, 0, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      verify(b, EACH, 0, n);
    }
    printf("all came %s, pairs: %lld\n", MPI_Wtime() - began < COMPUTES_S / 2. ? "while it computed" : "when it looked",
           counted(PAIRS));
  }
  MPI_Finalize();
  return 0;
}
