/* A long multicast to one rank on each of four hosts, the last of which calls nothing of MPI from before it is sent until the others have received it all. Its part of the message, which they would get from
 * it, they get from the master. Arguments: two FIFOs that all hosts see; by the first the last says that it is silent, by the second it is told to go on. With a third, "begins", it has begun to hand the
 * message on when it falls silent. */
#include <fcntl.h>
#include <mpi-ext.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../c/check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
#include "streamed.h"

/* Writes a byte to a FIFO, or reads one: each waits for the other. */
static void meet(const char *fifo, int how)
{
  char byte = 1;
  int fd = open(fifo, how);
  CHECK(fd >= 0 && (how == O_WRONLY ? write(fd, &byte, 1) : read(fd, &byte, 1)) == 1);
  close(fd);
}

enum { BYTES = 3000000, STEP = 4099, LAST = 4 };

/* Calls nothing of MPI until the FIFO says so; with begins, from when it has begun to send something of the message, unless the others have it before. */
static void be_silent(const char *fifo, int begins)
{
  int fd = open(fifo, O_RDONLY | O_NONBLOCK), there;
  struct pollfd p = {.fd = fd, .events = POLLIN};
  char byte;
  while (begins && streamed() == 0 && poll(&p, 1, 0) == 0)
    MUST(MPI_Iprobe(0, 2, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
  if (begins && streamed() > 0) fprintf(stderr, "rank %d has begun to hand on, and is silent\n", LAST);
  CHECK(poll(&p, 1, -1) == 1 && read(fd, &byte, 1) == 1);
  close(fd);
}

int main(int argc, char **argv)
{
  int me, range[1][3] = {{1, LAST, 1}}, begins = argc > 3;
  char *b = calloc(1, BYTES);
  if (argc < 3 || !b) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0) {
    MPIX_Rankset set;
    for (int k = 0; k < BYTES; k += STEP) b[k] = (char)(k / STEP);
    if (!begins) meet(argv[1], O_RDONLY);
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
    MUST(MPIX_Mcast(b, BYTES, MPI_BYTE, set, 1, MPI_COMM_WORLD));
    MUST(MPIX_Rankset_free(&set));
  } else {
    if (me == LAST) {
      if (!begins) meet(argv[1], O_WRONLY);
      be_silent(argv[2], begins);
    }
    MUST(MPI_Recv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int k = 0; k < BYTES; k += STEP) CHECK(b[k] == (char)(k / STEP));
    memset(b, 0xff, BYTES); /* the silent one gets the message all the same */
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
