// run: n=2,4 spxrun="--with-ft" timeout=30
// run: n=2 args=idup spxrun="--with-ft" timeout=30
// A revocation that arrives before its communicator exists: who makes that later and receives on it is told, without any call of the failure
// interface on it. ULFM, MPIX_Comm_revoke.
#include <mpi.h>
#include <mpi-ext.h>
#include <string.h>
#include "../check.h"

static MPI_Comm duplicate(int idup)
{
  MPI_Comm d = MPI_COMM_NULL;
  MPI_Request r;
  if (!idup)
    MPI_Comm_dup(MPI_COMM_WORLD, &d);
  else {
    MPI_Comm_idup(MPI_COMM_WORLD, &d, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
  return d;
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int rank, size, idup = argc > 1 && strcmp(argv[1], "idup") == 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 20; i++) {
    MPI_Comm d;
    char word;
    if (rank == 0) {
      d = duplicate(idup);
      CHECK(MPIX_Comm_revoke(d) == MPI_SUCCESS);
      for (int to = 1; to < size; to++) MPI_Send("g", 1, MPI_CHAR, to, i, MPI_COMM_WORLD);
    } else {
      MPI_Recv(&word, 1, MPI_CHAR, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the revocation comes before this */
      d = duplicate(idup);
    }
    /* A message that nobody sends; behind a request, too. */
    CHECK_CLASS(MPI_Recv(&word, 1, MPI_CHAR, (rank + 1) % size, 5, d, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    int flag = 0;
    CHECK_CLASS(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, d, &flag, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    MPI_Comm_free(&d);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return check_status();
}
