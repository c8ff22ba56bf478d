/* Two jobs that have a socket meet by it (MPI_Comm_join). Arguments: keep or call, a file for the socket's port, and the host of the one that keeps it. Rank 0 of each does it. */
#include <mpi.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int keep(const char *file)
{
  struct sockaddr_in at = {.sin_family = AF_INET};
  socklen_t len = sizeof at;
  char beside[1024];
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&at, len) != 0 || listen(listener, 1) != 0) return -1;
  getsockname(listener, (struct sockaddr *)&at, &len);
  snprintf(beside, sizeof beside, "%s.new", file);
  FILE *f = fopen(beside, "w");
  if (!f || fprintf(f, "%d\n", ntohs(at.sin_port)) < 0 || fclose(f) != 0 || rename(beside, file) != 0) return -1;
  int fd = accept(listener, NULL, NULL);
  close(listener);
  return fd;
}

static int call(const char *file, const char *host)
{
  struct addrinfo want = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
  char port[16] = "";
  FILE *f;
  while (!(f = fopen(file, "r"))) usleep(1000);
  if (fscanf(f, "%15s", port) != 1 || getaddrinfo(host, port, &want, &found) != 0) return -1;
  fclose(f);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) return -1;
  freeaddrinfo(found);
  return fd;
}

int main(int argc, char **argv)
{
  int rank, good = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && argc > 3) {
    int keeps = !strcmp(argv[1], "keep"), fd = keeps ? keep(argv[2]) : call(argv[2], argv[3]);
    for (int i = 0; i < 3; i++) {
      MPI_Comm inter;
      int mine = keeps ? 100 + i : 200 + i, theirs = 0;
      char c = 'x';
      MPI_Comm_join(fd, &inter);
      MPI_Sendrecv(&mine, 1, MPI_INT, 0, 1, &theirs, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
      MPI_Comm_disconnect(&inter);
      /* The socket is as it was. */
      good += theirs + mine == 300 + 2 * i && write(fd, &c, 1) == 1 && read(fd, &c, 1) == 1 && c == 'x';
    }
    printf("%s: %d of 3\n", argv[1], good);
    close(fd);
  }
  MPI_Finalize();
  return 0;
}
