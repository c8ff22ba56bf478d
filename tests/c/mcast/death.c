/* A member of the set dies, before it hands anything on or somewhere on the way: the others receive everything, in order, and the master is
 * told by the multicasts that are synchronous, and by those that it begins afterwards. */
// run: n=8 spxrun="--with-ft" args="1" timeout=40
// run: n=8 spxrun="--with-ft" args="1 4" timeout=40
// run: n=8 spxrun="--with-ft" args="1 4" env=SPX_MCAST_EACH=0 timeout=40
// run: n=6 spxrun="--with-ft" args="3" env=SPX_TRANSPORTS=tcp timeout=40
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { TOTAL = 600, LONG = 50000 };

static int me, size;

static int length(int i) { return i % 10 == 9 ? LONG : i % 4 == 3 ? 3000 : 8; }

/* As a member: rank victim ends itself when it has received so many. */
static void receive(int victim, int until)
{
  int *b = malloc(LONG);
  MPI_Status st;
  for (int i = 0; i < TOTAL; i++) {
    int n;
    if (victim && i == until) raise(SIGKILL);
    MUST(MPI_Recv(b, LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &st));
    MPI_Get_count(&st, MPI_BYTE, &n);
    CHECK(n == length(i) && b[0] == i);
    if (check_failures) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MUST(MPI_Send(b, 1, MPI_INT, 0, 2, MPI_COMM_WORLD));
  free(b);
}

static int is_one(int argc, char **argv, int rank)
{
  for (int k = 1; k < argc; k++)
    if (atoi(argv[k]) == rank) return k;
  return 0;
}

int main(int argc, char **argv)
{
  int range[1][3] = {{1, 0, 1}}, told = 0, *b = malloc(LONG), code, class;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (me > 0)
    receive(is_one(argc, argv, me), 100 * is_one(argc, argv, me) + 7);
  else {
    MPIX_Rankset set;
    range[0][1] = size - 1;
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
    for (int i = 0; i < TOTAL; i++) {
      b[0] = i;
      if (i % 50 == 49)
        code = MPIX_Smcast(b, length(i), MPI_BYTE, set, 1, MPI_COMM_WORLD);
      else
        code = MPIX_Mcast(b, length(i), MPI_BYTE, set, 1, MPI_COMM_WORLD);
      MPI_Error_class(code, &class);
      CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED);
      CHECK(class == MPIX_ERR_PROC_FAILED || i % 50 != 49 || !told); /* once told, always */
      told = told || class == MPIX_ERR_PROC_FAILED;
    }
    CHECK(told);
    for (int r = 1; r < size; r++)
      if (!is_one(argc, argv, r)) MUST(MPI_Recv(b, 1, MPI_INT, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MUST(MPIX_Rankset_free(&set));
  }
  free(b);
  MPI_Finalize();
  return check_status();
}
