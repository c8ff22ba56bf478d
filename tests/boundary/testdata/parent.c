/* parent PROGRAM: a rank that runs another MPI program, as it is and with SPX_FD taken away. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
  char alone[4096];
  int one = 1, sum = 0, size;
  MPI_Init(&argc, &argv);
  snprintf(alone, sizeof alone, "env -u SPX_FD %s", argv[1]);
  printf("the other said %d\n", WEXITSTATUS(system(argv[1])));
  if (system(alone) != 0) return 2;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum == size ? 0 : 3;
}
