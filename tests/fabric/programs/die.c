/* A rank is killed while all communicate over a fabric; the rest goes on without it, over the same
 * pairs. With "revoked": they wait for messages from each other meanwhile. */
#include "fabric.h"
#include <mpi-ext.h>
#include <signal.h>

enum { VICTIM = 1, ROUNDS = 300, EACH = 20000 };

static int failed(int code)
{
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED;
}

static int exchange(MPI_Comm comm, int n)
{
  static unsigned char out[EACH], in[EACH];
  int me, of;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &of);
  int to = (me + 1) % of, from = (me + of - 1) % of, who[2] = {rank, -1};
  fill(out, EACH, rank, n);
  int code = MPI_Sendrecv(&who[0], 1, MPI_INT, to, 1, &who[1], 1, MPI_INT, from, 1, comm, MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS)
    code = MPI_Sendrecv(out, EACH, MPI_BYTE, to, 2, in, EACH, MPI_BYTE, from, 2, comm, MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS) verify(in, EACH, who[1], n);
  return code;
}

int main(int argc, char **argv)
{
  MPI_Comm comm, smaller;
  int code = MPI_SUCCESS;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  begin_count();
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int n = 0; n < ROUNDS && code == MPI_SUCCESS; n++) {
    if (rank == VICTIM && n == ROUNDS / 2) kill(getpid(), SIGKILL);
    code = exchange(comm, n);
  }
  CHECK(failed(code));
  MPIX_Comm_revoke(comm);
  CHECK(MPIX_Comm_shrink(comm, &smaller) == MPI_SUCCESS);
  int left;
  MPI_Comm_size(smaller, &left);
  CHECK(left == size - 1);
  for (int n = 0; n < ROUNDS; n++) CHECK(exchange(smaller, n) == MPI_SUCCESS);
  long long pairs = counted(PAIRS), least;
  MPI_Allreduce(&pairs, &least, 1, MPI_LONG_LONG, MPI_MIN, smaller);
  if (rank == 0) printf("%d left, pairs: %s\n", left, least >= 2 ? "fabric" : "none");
  MPI_Finalize();
  return 0;
}
