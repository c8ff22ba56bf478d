/* Descriptors run short while the job runs, because the program has files: connections that were not used for long are closed, and made again when they are wanted. All
 * messages arrive. docs/connections.md. */
// run: n=12 n.few=6 env=SPX_TRANSPORTS=tcp timeout=60
// run: n=12 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:4 env=SPX_TOPOLOGY=groups:3 timeout=60 full=1
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "../check.h"

enum { SOME = 20, ROUNDS = 4, BYTES = 20000 };

static int rank, size, fds[4096], n_fds;

/* Everybody exchanges with everybody, pair by pair. */
static void all_pairs(int round)
{
  static char mine[BYTES], theirs[BYTES];
  for (int step = 1; step < size; step++) {
    int to = (rank + step) % size, from = (rank + size - step) % size;
    for (int i = 0; i < BYTES; i++) mine[i] = (char)(rank * 31 + round + i);
    CHECK(MPI_Sendrecv(mine, BYTES, MPI_CHAR, to, round, theirs, BYTES, MPI_CHAR, from, round, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < BYTES; i++) CHECK(theirs[i] == (char)(from * 31 + round + i));
  }
}

static void take_all(void)
{
  for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) fds[n_fds++] = fd;
}

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle;

static void count_evicted(void)
{
  int index, count, provided;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  CHECK(MPI_T_pvar_get_index("spx_connections_evicted", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS);
  MPI_T_pvar_start(session, handle);
}

static unsigned long evicted(void)
{
  unsigned long v = 0;
  CHECK(MPI_T_pvar_read(session, handle, &v) == MPI_SUCCESS);
  return v;
}

int main(int argc, char **argv)
{
  struct rlimit l = {200, 200};
  CHECK(setrlimit(RLIMIT_NOFILE, &l) == 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char byte = 0, other;
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Sendrecv(&byte, 1, MPI_CHAR, right, 0, &other, 1, MPI_CHAR, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  count_evicted();
  take_all(); /* no connection more can be made, unless one goes */
  for (int round = 1; round <= ROUNDS; round++) all_pairs(round);
  unsigned long gone = evicted(), most;
  MPI_Allreduce(&gone, &most, 1, MPI_UNSIGNED_LONG, MPI_MAX, MPI_COMM_WORLD);
  CHECK(most > 0);
  while (n_fds > 0) close(fds[--n_fds]);
  for (int round = 1; round <= SOME; round++) all_pairs(round);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
