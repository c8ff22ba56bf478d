/* Spawned processes agree and shrink with their parents, free what they have in common, and end: what the agreements keep for members that are behind
 * is given up, so that there is room for the next ones. The memory file of a job has room for less than 400 processes here: so the full tests have
 * more. */
// run: n=2 args=40 args.few=8 spxrun="--with-ft" timeout=90
// run: n=2 args=200 spxrun="--with-ft" timeout=90 full=1
#include "../check.h"
#include <mpi-ext.h>
#include <stdlib.h>

enum { CHILDREN = 2 };

static void meet(MPI_Comm between, int high)
{
  MPI_Comm all, shrunk;
  int flag = high ? 6 : 3, n;
  MPI_Intercomm_merge(between, high, &all);
  CHECK(MPIX_Comm_agree(all, &flag) == MPI_SUCCESS && flag == 2);
  CHECK(MPIX_Comm_shrink(all, &shrunk) == MPI_SUCCESS);
  MPI_Comm_size(shrunk, &n);
  CHECK(n == 2 + CHILDREN);
  flag = 1;
  CHECK(MPIX_Comm_agree(shrunk, &flag) == MPI_SUCCESS && flag == 1);
  MPI_Comm_free(&shrunk);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&between);
}

int main(int argc, char **argv)
{
  MPI_Comm parents, children;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parents);
  if (parents != MPI_COMM_NULL)
    meet(parents, 1);
  else
    for (int i = 0; i < atoi(argv[1]); i++) {
      int err = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                               MPI_ERRCODES_IGNORE);
      CHECK(err == MPI_SUCCESS);
      meet(children, 0);
    }
  MPI_Finalize();
  return check_status();
}
