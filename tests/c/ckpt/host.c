/* A whole host is lost at once: with one copy, which lies on another host, those that are left restore what all had. Where all ranks are on one host,
 * the last of them alone dies. Then the same again, with those that are left, from the copies that the restore has made. */
// run: n=6 spxrun="--with-ft" timeout=60
// run: n=9 spxrun="--with-ft" timeout=60
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { N = 30000, ROUNDS = 2 };

static int data[N], got[N];

/* Ends this process if it is to be lost with the last rank. */
static void lose(MPI_Comm comm)
{
  MPI_Comm host;
  int rank, size, here, last;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MUST(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  MPI_Comm_size(host, &here);
  last = rank == size - 1;
  if (here < size) MUST(MPI_Allreduce(MPI_IN_PLACE, &last, 1, MPI_INT, MPI_MAX, host));
  MUST(MPI_Barrier(comm));
  if (last) raise(SIGKILL);
  MPI_Comm_free(&host);
}

/* Waits until those have died, and gives the others. */
static MPI_Comm survivors(MPI_Comm comm)
{
  MPI_Comm left;
  CHECK(MPI_Barrier(comm) != MPI_SUCCESS);
  MUST(MPIX_Comm_revoke(comm));
  MUST(MPIX_Comm_shrink(comm, &left));
  MPI_Comm_set_errhandler(left, MPI_ERRORS_RETURN);
  return left;
}

int main(int argc, char **argv)
{
  MPI_Comm comm;
  MPIX_Checkpoint c;
  int me, first, v, n;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &first);
  MUST(MPIX_Checkpoint_create(comm, MPI_INFO_NULL, &c));
  MUST(MPIX_Checkpoint_register(c, 0, data, N, MPI_INT));
  for (int i = 0; i < N; i++) data[i] = me * N + i;
  MUST(MPIX_Checkpoint_save(c, 1));
  MUST(MPIX_Checkpoint_commit(c));
  for (int round = 0; round < ROUNDS; round++) {
    int size, left;
    MPI_Comm_size(comm, &size);
    if (size < 2) break; /* nobody would be left */
    lose(comm);
    MPI_Comm smaller = survivors(comm);
    MPI_Comm_free(&comm);
    comm = smaller;
    MPI_Comm_size(comm, &left);
    CHECK(left < size);
    MUST(MPIX_Checkpoint_attach(comm, c));
    MUST(MPIX_Checkpoint_restore_begin(c, MPIX_CHECKPOINT_NEWEST, &v, &n));
    CHECK(v == 1 && n == first);
    for (int r = 0; r < first; r++) { /* everybody gets a piece of every part */
      int from = N * r / first, to = N * (r + 1) / first;
      MUST(MPIX_Checkpoint_fetch(c, r, 0, from * (MPI_Count)sizeof *got, got + from, to - from, MPI_INT));
    }
    MUST(MPIX_Checkpoint_restore_end(c));
    for (int r = 0; r < first; r++)
      for (int i = N * r / first; i < N * (r + 1) / first; i++) CHECK(got[i] == r * N + i);
  }
  MUST(MPIX_Checkpoint_free(&c));
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return check_status();
}
