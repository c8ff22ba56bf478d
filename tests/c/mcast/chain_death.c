/* Members that are killed at any time while long multicasts are on their way, between hosts also those whose host hands them on to the next: the others receive
 * everything, whole and in order, and the master is told. Arguments: a number from which the times follow, then the ranks that die. */
// run: n=9 spxrun="--with-ft" args="1 1 4" timeout=60
// run: n=9 spxrun="--with-ft" args="2 2" timeout=60
// run: n=7 spxrun="--with-ft" args="3 1 2 5" env=SPX_MCAST_CHAIN=64K timeout=60
// run: n=9 spxrun="--with-ft" args="4 1 2" env=SPX_MCAST_STAGING=6M timeout=60
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { TOTAL = 120, BYTES = 1500000, STEP = 997 };

static int me, size;

static char byte_of(int i, int k) { return (char)(i * 7 + k / STEP); }

static void die(int s)
{
  (void)s;
  raise(SIGKILL);
}

/* In 1 to 60 ms. */
static void die_soon(int seed)
{
  struct itimerval t = {.it_value.tv_usec = 1000 + (seed * 7919 + me * 104729) % 60000};
  signal(SIGALRM, die);
  setitimer(ITIMER_REAL, &t, NULL);
}

static int is_victim(int argc, char **argv, int rank)
{
  for (int k = 2; k < argc; k++)
    if (atoi(argv[k]) == rank) return 1;
  return 0;
}

static void receive(char *b)
{
  for (int i = 0; i < TOTAL; i++) {
    MUST(MPI_Recv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int k = 0; k < BYTES && !check_failures; k += STEP) CHECK(b[k] == byte_of(i, k));
    if (check_failures) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MUST(MPI_Send(b, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
  int range[1][3] = {{1, 0, 1}}, told = 0, failed, class;
  MPIX_Rankset set, dead;
  char *b = malloc(BYTES), go;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  if (me > 0) {
    MUST(MPI_Send(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD));
    if (is_victim(argc, argv, me)) {
      MUST(MPI_Recv(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      die_soon(atoi(argv[1]));
    }
    receive(b);
    if (is_victim(argc, argv, me)) MPI_Recv(&go, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* until then */
  } else {
    for (int r = 1; r < size; r++) /* all have left the barrier: some may still need what others have sent in it */
      MUST(MPI_Recv(NULL, 0, MPI_BYTE, r, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int r = 1; r < size; r++)
      if (is_victim(argc, argv, r)) MUST(MPI_Send(NULL, 0, MPI_BYTE, r, 7, MPI_COMM_WORLD));
    range[0][1] = size - 1;
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
    for (int i = 0; i < TOTAL; i++) {
      for (int k = 0; k < BYTES; k += STEP) b[k] = byte_of(i, k);
      MPI_Error_class(MPIX_Mcast(b, BYTES, MPI_BYTE, set, 1, MPI_COMM_WORLD), &class);
      CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED);
      told = told || class == MPIX_ERR_PROC_FAILED;
    }
    memset(b, 0, BYTES);
    for (int r = 1; r < size; r++) {
      MPI_Error_class(MPI_Recv(b, 1, MPI_BYTE, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
      CHECK(class == MPI_SUCCESS || (class == MPIX_ERR_PROC_FAILED && is_victim(argc, argv, r)));
      while (class == MPI_SUCCESS && is_victim(argc, argv, r)) /* it was through before */
        MPI_Error_class(MPI_Recv(b, 1, MPI_BYTE, r, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
    }
    MPI_Error_class(MPIX_Mcast(b, 1, MPI_BYTE, set, 9, MPI_COMM_WORLD), &class);
    CHECK(told || class == MPIX_ERR_PROC_FAILED);
    MUST(MPIX_Rankset_get_failed(set, &dead));
    MUST(MPIX_Rankset_size(dead, &failed));
    CHECK(failed == argc - 2);
    MUST(MPIX_Rankset_free(&dead));
    MUST(MPIX_Rankset_free(&set));
  }
  free(b);
  MPI_Finalize();
  return check_status();
}
