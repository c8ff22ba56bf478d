/* Jobs that were started apart join one after the other: each meets processes of several jobs in one call. They talk all with all, and
 * come again when some have gone. */
// run: n=1,2 timeout=40
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"

enum { JOBS = 4, ROUNDS = 2, BYTES = 200000 };

static pid_t start_other(char *self, const char *port, const char *number)
{
  char launcher[64];
  pid_t p = fork();
  if (p != 0) return p;
  snprintf(launcher, sizeof launcher, "/proc/%s/exe", getenv("SPX_AGENT"));
  execl(launcher, "spxrun", "-n", "1", self, "joins", port, number, NULL);
  _exit(127);
}

/* All with all, short and long. */
static void talk(MPI_Comm all)
{
  int rank, size, sum = 0;
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
  CHECK(sum == size * (size - 1) / 2);
  char *out = malloc(BYTES), *in = malloc(BYTES);
  memset(out, 'a' + rank, BYTES);
  for (int d = 1; d < size; d++) {
    int to = (rank + d) % size, from = (rank - d + size) % size;
    MPI_Sendrecv(out, BYTES, MPI_CHAR, to, d, in, BYTES, MPI_CHAR, from, d, all, MPI_STATUS_IGNORE);
    CHECK(in[0] == 'a' + from && in[BYTES - 1] == 'a' + from);
  }
  free(out);
  free(in);
}

/* Takes jobs in, from the number first on, until there are all. */
static void grow(MPI_Comm *all, char *port, char *self, int first)
{
  for (int k = first; k < JOBS; k++) {
    char number[8];
    MPI_Comm inter, more;
    snprintf(number, sizeof number, "%d", k);
    if (self) start_other(self, port, number);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, *all, &inter);
    MPI_Intercomm_merge(inter, 0, &more);
    talk(more);
    MPI_Comm_free(&inter);
    MPI_Comm_disconnect(all);
    *all = more;
  }
}

int main(int argc, char **argv)
{
  MPI_Comm all, inter;
  char port[MPI_MAX_PORT_NAME] = "";
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 3) {
    MPI_Comm_connect(argv[2], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    MPI_Intercomm_merge(inter, 1, &all);
    talk(all);
    MPI_Comm_free(&inter);
    grow(&all, port, NULL, atoi(argv[3]) + 1);
    MPI_Comm_disconnect(&all);
    MPI_Finalize();
    return check_status();
  }
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    grow(&all, port, rank == 0 ? argv[0] : NULL, 1);
    MPI_Comm_disconnect(&all);
    int status;
    for (int k = 1; rank == 0 && k < JOBS; k++) CHECK(wait(&status) > 0 && status == 0);
  }
  if (rank == 0) MPI_Close_port(port);
  MPI_Finalize();
  return check_status();
}
