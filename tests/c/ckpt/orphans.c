/* All processes that work die: the spares get their places, instead of waiting for them. */
// run: n=3 spxrun="--with-ft" timeout=60
// run: n=4 spxrun="--with-ft" timeout=60
#include <mpi-ext.h>
#include <signal.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)

int main(void)
{
  MPI_Comm work;
  int role, rank, size;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MUST(MPIX_Comm_repair(MPI_COMM_WORLD, size - 1, &work, &role));
  CHECK(rank == 0 ? role == MPIX_ROLE_INITIAL : role != MPIX_ROLE_INITIAL);
  if (rank == 0) raise(SIGKILL);
  if (rank == 1) {
    CHECK(role == MPIX_ROLE_REPLACEMENT);
    MPI_Comm_size(work, &size);
    CHECK(size == 1);
    MUST(MPI_Barrier(work));
    MUST(MPIX_Comm_dismiss(MPI_COMM_WORLD));
  } else
    CHECK(role == MPIX_ROLE_SPARE && work == MPI_COMM_NULL);
  MPI_Finalize();
  return 0;
}
