/* A long multicast to one rank on each of four hosts, the last of which calls nothing of MPI until the others have received it all. Its part of the message, which they would get from it, they get from the master.
 * Argument: a FIFO that all hosts see. */
#include <fcntl.h>
#include <mpi-ext.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../c/check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { BYTES = 3000000, STEP = 4099, LAST = 4 };

int main(int argc, char **argv)
{
  int me, range[1][3] = {{1, LAST, 1}};
  char *b = calloc(1, BYTES), byte = 1;
  if (argc < 2 || !b) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0) {
    MPIX_Rankset set;
    for (int k = 0; k < BYTES; k += STEP) b[k] = (char)(k / STEP);
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
    MUST(MPIX_Mcast(b, BYTES, MPI_BYTE, set, 1, MPI_COMM_WORLD));
    MUST(MPIX_Rankset_free(&set));
  } else {
    if (me == LAST) {
      int fd = open(argv[1], O_RDONLY);
      CHECK(fd >= 0 && read(fd, &byte, 1) == 1);
    }
    MUST(MPI_Recv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int k = 0; k < BYTES; k += STEP) CHECK(b[k] == (char)(k / STEP));
    if (me > 1 && me < LAST) MUST(MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
    if (me == 1) {
      for (int r = 2; r < LAST; r++) MUST(MPI_Recv(NULL, 0, MPI_BYTE, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      int fd = open(argv[1], O_WRONLY);
      CHECK(fd >= 0 && write(fd, &byte, 1) == 1);
    }
  }
  free(b);
  MPI_Finalize();
  return check_status();
}
