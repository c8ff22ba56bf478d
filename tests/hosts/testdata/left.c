/* The last rank leaves a barrier while its connection with rank 1 is still being made, and calls nothing of MPI until the others have left the barrier, too: what it has sent to rank 1 leaves without it. Arguments: two
 * FIFOs that all hosts and the test see; by the first the test learns that the rank has left, by the second this one that all have. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../c/check.h"

/* Writes a byte to a FIFO, or reads one: each waits for the other. */
static void meet(const char *fifo, int how)
{
  char byte = 1;
  int fd = open(fifo, how);
  CHECK(fd >= 0 && (how == O_WRONLY ? write(fd, &byte, 1) : read(fd, &byte, 1)) == 1);
  close(fd);
}

int main(int argc, char **argv)
{
  int me, size;
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == size - 1) {
    meet(argv[1], O_WRONLY);
    meet(argv[2], O_RDONLY);
  } else if (me > 0)
    MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  else {
    for (int r = 1; r < size - 1; r++) MPI_Recv(NULL, 0, MPI_BYTE, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    meet(argv[2], O_WRONLY);
  }
  MPI_Finalize();
  return check_status();
}
