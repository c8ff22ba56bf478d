/* Each rank says where it listens. Then, for each line that rank 0 reads, all exchange messages and check them; rank 0 says how many descriptors a rank has open
 * at most. */
#include <arpa/inet.h>
#include <dirent.h>
#include <mpi.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static void say_where(void)
{
  struct sockaddr_in at;
  socklen_t length = sizeof at;
  char text[INET_ADDRSTRLEN];
  if (getsockname(atoi(getenv("SPX_LISTEN")), (struct sockaddr *)&at, &length) != 0 || at.sin_family != AF_INET)
    exit(3);
  printf("%s %s %s:%d\n", getenv("SPX_JOB"), getenv("SPX_PROC"), inet_ntop(AF_INET, &at.sin_addr, text, sizeof text),
         ntohs(at.sin_port));
  fflush(stdout);
}

static int descriptors(void)
{
  DIR *dir = opendir("/proc/self/fd");
  int n = 0;
  while (readdir(dir)) n++;
  closedir(dir);
  return n - 3; /* ".", "..", and the folder */
}

static int exchange(int rank, int n)
{
  enum { LONG = 100000 };
  int *out = malloc((size_t)n * LONG * sizeof *out), *in = calloc((size_t)n * LONG, sizeof *in), wrong = 0;
  for (int round = 0; round < 200; round++) {
    int length = round % 20 == 0 ? LONG : 1 + round;
    for (int i = 0; i < n * length; i++) out[i] = rank * 1000003 + i + round;
    MPI_Alltoall(out, length, MPI_INT, in, length, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < n; r++)
      for (int i = 0; i < length; i++) wrong += in[r * length + i] != r * 1000003 + rank * length + i + round;
  }
  free(out);
  free(in);
  return wrong;
}

int main(int argc, char **argv)
{
  int rank, n, more = 1;
  char line[64];
  say_where();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  for (;;) {
    if (rank == 0) more = fgets(line, sizeof line, stdin) != NULL;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!more) break;
    int mine[2] = {exchange(rank, n), descriptors()}, most[2];
    MPI_Reduce(mine, most, 2, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("wrong %d descriptors %d\n", most[0], most[1]);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
