/* A long multicast to one rank on each of four hosts, the last of which calls nothing of MPI from before it is sent until the others have received it all. Its part of the message, which they would get from
 * it, they get from the master. Arguments: two FIFOs that all hosts see; by the first the last says that it is silent, by the second it is told to go on. */
#include <fcntl.h>
#include <mpi-ext.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../c/check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)

/* Writes a byte to a FIFO, or reads one: each waits for the other. */
static void meet(const char *fifo, int how)
{
  char byte = 1;
  int fd = open(fifo, how);
  CHECK(fd >= 0 && (how == O_WRONLY ? write(fd, &byte, 1) : read(fd, &byte, 1)) == 1);
  close(fd);
}

enum { BYTES = 3000000, STEP = 4099, LAST = 4 };

int main(int argc, char **argv)
{
  int me, range[1][3] = {{1, LAST, 1}};
  char *b = calloc(1, BYTES);
  if (argc < 3 || !b) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0) {
    MPIX_Rankset set;
    for (int k = 0; k < BYTES; k += STEP) b[k] = (char)(k / STEP);
    meet(argv[1], O_RDONLY);
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
    MUST(MPIX_Mcast(b, BYTES, MPI_BYTE, set, 1, MPI_COMM_WORLD));
    MUST(MPIX_Rankset_free(&set));
  } else {
    if (me == LAST) {
      meet(argv[1], O_WRONLY);
      meet(argv[2], O_RDONLY);
    }
    MUST(MPI_Recv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int k = 0; k < BYTES; k += STEP) CHECK(b[k] == (char)(k / STEP));
    if (me > 1 && me < LAST) MUST(MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
    if (me == 1) {
      for (int r = 2; r < LAST; r++) MUST(MPI_Recv(NULL, 0, MPI_BYTE, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      meet(argv[2], O_WRONLY);
    }
  }
  free(b);
  MPI_Finalize();
  return check_status();
}
