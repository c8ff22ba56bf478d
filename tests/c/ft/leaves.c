/* A member of a communicator leaves by MPI_Finalize, and ends, while others agree on something: as one that had returned from its agreements does, which can forward nothing any
 * more that a dead one should have forwarded. They do without it, asleep or not. */
// run: n=3 args=agree timeout=20
// run: n=3 args=shrink timeout=20
// run: n=3 args=agree env=SPX_TRANSPORTS=tcp timeout=20
// run: n=3 args=shrink env=SPX_TRANSPORTS=tcp timeout=20
#include <mpi-ext.h>
#include <string.h>
#include "../check.h"

int main(int argc, char **argv)
{
  int rank, n, word = 1;
  MPI_Comm dup, left;
  MPI_Request q;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
  if (rank == 2) {
    for (int i = 0; i < 2; i++) MPI_Recv(&word, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return check_failures != 0;
  }
  if (strcmp(argv[1], "agree") == 0) {
    MPIX_Comm_iagree(dup, &word, &q);
    MPI_Send(&word, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  } else {
    MPIX_Comm_revoke(dup);
    MPIX_Comm_ishrink(dup, &left, &q);
    MPI_Send(&word, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
    CHECK(MPI_Wait(&q, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_Comm_size(left, &n);
    CHECK(n == 2);
    MPI_Comm_free(&left);
  }
  MPI_Finalize();
  return check_failures != 0;
}
