/* A process that waits in MPI_Comm_join for the other one goes on with its communication: here the other one receives a long message of this one first, which does not arrive without its sender's help (MPI-5.0, 11.10.4 and 2.9). */
// run: n=2 env=SPX_CMA=0
// run: n=2 env=SPX_TRANSPORTS=tcp
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "../check.h"

enum { LONG = 16 << 20 };

/* A connected socket between the two, by a name that is in no file system. */
static int between(int rank)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int pid = getpid(), fd = socket(AF_UNIX, SOCK_STREAM, 0);
  MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
  socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                              (size_t)snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "spx-join-%d", pid));
  if (rank == 0) {
    CHECK(bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, 1) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    int to = accept(fd, NULL, NULL);
    close(fd);
    return to;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(connect(fd, (struct sockaddr *)&at, len) == 0);
  return fd;
}

int main(int argc, char **argv)
{
  int rank, mine, theirs = -1;
  char *data = calloc(LONG, 1);
  MPI_Request sent = MPI_REQUEST_NULL;
  MPI_Comm other;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int fd = between(rank);
  CHECK(fd >= 0);
  if (rank == 0) {
    memset(data, 7, LONG);
    MPI_Isend(data, LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &sent);
  } else {
    MPI_Recv(data, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(data[0] == 7 && data[LONG - 1] == 7);
  }
  MPI_Comm_join(fd, &other);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  mine = rank;
  MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &theirs, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
  CHECK(theirs == 1 - rank);
  MPI_Comm_disconnect(&other);
  close(fd);
  free(data);
  MPI_Finalize();
  return check_status();
}
