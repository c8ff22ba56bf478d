/* A member of the set dies: who waits for it, or for what has to come through it, is told, and nobody waits for ever; afterwards the same
 * operations work with the set of those who live. */
// run: n=9 spxrun="--with-ft" args="4" timeout=40
// run: n=9 spxrun="--with-ft" args="0" timeout=40
// run: n=9 spxrun="--with-ft" args="8" timeout=40
// run: n=6 spxrun="--with-ft" args="2" env=SPX_TRANSPORTS=tcp timeout=40
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { LONG = 40000 };

static int me, size, victim, root;

static int class_of(int code)
{
  int class;
  MPI_Error_class(code, &class);
  return class;
}

/* The sum is right, or the death is told; the root, without the dead one's part, is always told. */
static void reduce(MPIX_Rankset s, int n, int dead)
{
  static int own[LONG], sum[LONG];
  for (int i = 0; i < n; i++) own[i] = me;
  int class = class_of(MPIX_Mreduce(own, sum, n, MPI_INT, MPI_SUM, root, s, 1, MPI_COMM_WORLD));
  CHECK(class == MPI_SUCCESS || (dead && class == MPIX_ERR_PROC_FAILED));
  if (me == root) CHECK(dead ? class == MPIX_ERR_PROC_FAILED : sum[n - 1] == size * (size - 1) / 2 - victim);
  class = class_of(MPIX_Mallreduce(own, sum, n, MPI_INT, MPI_SUM, s, 2, MPI_COMM_WORLD));
  CHECK(dead ? class == MPIX_ERR_PROC_FAILED : class == MPI_SUCCESS && sum[0] == size * (size - 1) / 2 - victim);
}

static void barrier(MPIX_Rankset s, int dead)
{
  int class = class_of(MPIX_Mbarrier(s, 3, MPI_COMM_WORLD));
  CHECK(class == (dead ? MPIX_ERR_PROC_FAILED : MPI_SUCCESS));
}

static void gather(MPIX_Rankset s, int members, int dead)
{
  int *all = malloc((size_t)size * sizeof *all);
  int class = class_of(MPIX_Mgather(&me, 1, MPI_INT, all, 1, MPI_INT, root, s, 4, MPI_COMM_WORLD));
  if (me == root) {
    CHECK(class == (dead ? MPIX_ERR_PROC_FAILED : MPI_SUCCESS));
    for (int k = 0; k < members && !dead; k++) CHECK(all[k] == k + (k >= victim));
  } else
    CHECK(class == MPI_SUCCESS);
  free(all);
}

int main(int argc, char **argv)
{
  MPIX_Rankset all, living, one;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  victim = argc > 1 ? atoi(argv[1]) : 1;
  root = victim == size - 1 ? 0 : size - 1;
  int range[1][3] = {{0, size - 1, 1}};
  MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &all));
  MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, 1, &victim, &one));
  MUST(MPIX_Rankset_difference(all, one, &living));
  MUST(MPIX_Mbarrier(all, 3, MPI_COMM_WORLD));
  if (me == victim) raise(SIGKILL);
  reduce(all, 1, 1);
  reduce(all, LONG, 1);
  barrier(all, 1);
  gather(all, size, 1);
  reduce(living, LONG, 0);
  barrier(living, 0);
  gather(living, size - 1, 0);
  MUST(MPIX_Rankset_free(&all));
  MUST(MPIX_Rankset_free(&living));
  MUST(MPIX_Rankset_free(&one));
  MPI_Finalize();
  return check_status();
}
