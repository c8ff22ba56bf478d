/* Members that are killed at any time while multicasts that are complete when all receive them are on their way, and what others have said of having received them: each
 * one is complete when the last living member has begun to receive it, not before, and the others receive everything. Short ones, which have their data with them, and
 * long ones. Arguments: a number from which the times follow, then the ranks that die. */
// run: n=9 spxrun="--with-ft" args="1 1 4" timeout=60
// run: n=9 spxrun="--with-ft" args="2 2 5 7" timeout=60
// run: n=6 spxrun="--with-ft" args="3 1" env=SPX_TRANSPORTS=tcp timeout=60
// run: n=9 spxrun="--with-ft" args="4 1 2" env=SPX_MCAST_STAGING=1M timeout=60
// run: n=30 spxrun="--with-ft" args="5 1 16 8 24" timeout=60
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { TOTAL = 60, MOST = 600000, STEP = 997, GO = 2, HAVE = 3, END = 4 };

static int me, size;

static int length(int i)
{
  static const int bytes[] = {8, 5000, 60000, 8, MOST, 100};
  return bytes[i % 6];
}

/* Who receives message i when all others have. */
static int last_of(int i) { return 1 + i * 5 % (size - 1); }

static char byte_of(int i, int k) { return (char)(i * 7 + k / STEP); }

static void die(int s)
{
  (void)s;
  raise(SIGKILL);
}

/* In 1 to 80 ms. */
static void die_soon(int seed)
{
  struct itimerval t = {.it_value.tv_usec = 1000 + (seed * 7919 + me * 104729) % 80000};
  signal(SIGALRM, die);
  setitimer(ITIMER_REAL, &t, NULL);
}

static int is_victim(int argc, char **argv, int rank)
{
  for (int k = 2; k < argc; k++)
    if (atoi(argv[k]) == rank) return 1;
  return 0;
}

static void receive(int i, char *b)
{
  int n;
  MPI_Status st;
  memset(b, -1, (size_t)length(i));
  if (last_of(i) == me) MUST(MPI_Recv(b, 1, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MUST(MPI_Recv(b, MOST, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &st));
  MPI_Get_count(&st, MPI_BYTE, &n);
  CHECK(n == length(i));
  for (int k = 0; k < n && !check_failures; k += STEP) CHECK(b[k] == byte_of(i, k));
  MUST(MPI_Send(&i, 1, MPI_INT, 0, HAVE, MPI_COMM_WORLD));
  if (check_failures) MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What a member says of message i; false: it is dead. */
static int has(int rank, int i)
{
  int said = -1, class;
  MPI_Error_class(MPI_Recv(&said, 1, MPI_INT, rank, HAVE, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
  CHECK(class == MPIX_ERR_PROC_FAILED || (class == MPI_SUCCESS && said == i));
  return class == MPI_SUCCESS;
}

/* As the master. Returns whether it was told of a death. */
static int send_one(int i, char *b, MPIX_Rankset set, int argc, char **argv)
{
  int flag, class, last = last_of(i);
  MPI_Request r;
  for (int k = 0; k < length(i); k += STEP) b[k] = byte_of(i, k);
  MUST(MPIX_Ismcast(b, length(i), MPI_BYTE, set, 1, MPI_COMM_WORLD, &r));
  for (int rank = 1; rank < size; rank++)
    if (rank != last && !has(rank, i)) CHECK(is_victim(argc, argv, rank));
  if (!is_victim(argc, argv, last)) {
    MUST(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
  }
  MPI_Error_class(MPI_Send(b, 1, MPI_BYTE, last, GO, MPI_COMM_WORLD), &class);
  CHECK(class == MPI_SUCCESS || is_victim(argc, argv, last));
  if (!has(last, i)) CHECK(is_victim(argc, argv, last));
  MPI_Error_class(MPI_Wait(&r, MPI_STATUS_IGNORE), &class);
  CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED);
  return class == MPIX_ERR_PROC_FAILED;
}

int main(int argc, char **argv)
{
  int range[1][3] = {{1, 0, 1}}, told = 0, failed, class, victims = argc - 2;
  MPIX_Rankset set, dead;
  char *b = malloc(MOST);
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  if (me > 0) {
    if (is_victim(argc, argv, me)) die_soon(atoi(argv[1]));
    for (int i = 0; i < TOTAL; i++) receive(i, b);
    if (is_victim(argc, argv, me)) MPI_Recv(b, 1, MPI_BYTE, 0, END, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* until then */
  } else {
    range[0][1] = size - 1;
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
    for (int i = 0; i < TOTAL; i++) told = send_one(i, b, set, argc, argv) || told;
    for (int r = 1; r < size; r++)
      for (class = MPI_SUCCESS; class == MPI_SUCCESS && is_victim(argc, argv, r);) /* it was through before */
        MPI_Error_class(MPI_Recv(b, 1, MPI_BYTE, r, END, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
    MPI_Error_class(MPIX_Mcast(b, 1, MPI_BYTE, set, 9, MPI_COMM_WORLD), &class);
    CHECK(told || class == MPIX_ERR_PROC_FAILED);
    MUST(MPIX_Rankset_get_failed(set, &dead));
    MUST(MPIX_Rankset_size(dead, &failed));
    CHECK(failed == victims);
    MUST(MPIX_Rankset_free(&dead));
    MUST(MPIX_Rankset_free(&set));
  }
  free(b);
  MPI_Finalize();
  return check_status();
}
