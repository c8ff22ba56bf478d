/* The sockets of libfabric's provider break, and the pair's own connection does not: the job ends
 * with a text about it. (Those of libspx are closed by exec, those of libfabric are not.) */
#include "fabric.h"
#include <fcntl.h>
#include <sys/socket.h>

static int cut(void)
{
  int n = 0;
  for (int fd = 3; fd < 256; fd++) {
    struct sockaddr_storage to;
    socklen_t bytes = sizeof to;
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || flags & FD_CLOEXEC || getpeername(fd, (struct sockaddr *)&to, &bytes) != 0 ||
        (to.ss_family != AF_INET && to.ss_family != AF_INET6))
      continue;
    n += shutdown(fd, SHUT_RDWR) == 0;
  }
  return n;
}

int main(int argc, char **argv)
{
  static unsigned char b[50000];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  begin_count();
  int late = argc > 1; /* only what the other end has sent is lost, and nothing follows it */
  for (int n = 0; n < 200; n++) {
    if (n == 100 && rank == 1) {
      if (late) usleep(300000);
      int found = cut();
      CHECK(found > 0);
    }
    if (late && n == 100 && rank == 0) {
      MPI_Send(b, 1000, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
      MPI_Recv(b, 1000, MPI_BYTE, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (late && n == 100) {
      MPI_Recv(b, 1000, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(b, 1000, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
    }
    MPI_Sendrecv_replace(b, sizeof b, MPI_BYTE, 1 - rank, 1, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  printf("went on, pairs: %lld\n", counted(PAIRS));
  MPI_Finalize();
  return 0;
}
