// run: n=4 args=1 spxrun="--with-ft"
// run: n=4 args=1
// run: n=8 args=0 spxrun="--with-ft"
// run: n=9 args=6 spxrun="--with-ft"
// run: n=4 args=1 spxrun="-disable-auto-cleanup" status=137
// Members die by SIGKILL; the others' error handler returns. They revoke, shrink, and go on together (ULFM 1.0).
// args: how many die; 0: the odd ones.
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int dies(int rank, int n, int deaths) { return deaths ? rank >= n - deaths : rank % 2; }

#define CHECK(x, ...)                                                                                                  \
  do {                                                                                                                 \
    if (!(x)) {                                                                                                        \
      fprintf(stderr, "rank %d: " #x ": ", rank);                                                                      \
      fprintf(stderr, __VA_ARGS__);                                                                                    \
      fprintf(stderr, "\n");                                                                                           \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                                                    \
    }                                                                                                                  \
  } while (0)

int main(int argc, char **argv)
{
  int rank, n, class, flag;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  int deaths = atoi(argv[1]), left = 0;
  for (int i = 0; i < n; i++) left += !dies(i, n, deaths);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (dies(rank, n, deaths)) raise(SIGKILL);

  int rc = MPI_Barrier(MPI_COMM_WORLD);
  CHECK(rc != MPI_SUCCESS, "a barrier with dead members succeeded");
  MPI_Error_class(rc, &class);
  CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED, "class %d", class);
  CHECK(MPIX_Comm_revoke(MPI_COMM_WORLD) == MPI_SUCCESS, "revoke");
  CHECK(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag) == MPI_SUCCESS && flag, "is_revoked");
  rc = MPI_Send(&rank, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
  MPI_Error_class(rc, &class);
  CHECK(class == MPIX_ERR_REVOKED, "a send on a revoked communicator has class %d", class);

  MPI_Comm small;
  int members, me;
  CHECK(MPIX_Comm_shrink(MPI_COMM_WORLD, &small) == MPI_SUCCESS, "shrink");
  MPI_Comm_size(small, &members);
  while (members > left) { /* a death was not known yet when the decision fell */
    MPI_Comm smaller;
    CHECK(MPIX_Comm_shrink(small, &smaller) == MPI_SUCCESS, "shrink again");
    MPI_Comm_free(&small);
    small = smaller;
    MPI_Comm_size(small, &members);
  }
  CHECK(members == left, "%d members, not %d", members, left);
  CHECK(MPI_Barrier(small) == MPI_SUCCESS, "barrier of the survivors");
  int sum = 0, want = 0;
  CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, small) == MPI_SUCCESS, "allreduce of the survivors");
  for (int i = 0; i < n; i++)
    if (!dies(i, n, deaths)) want += i;
  CHECK(sum == want, "%d, not %d", sum, want);
  MPI_Comm_rank(small, &me);
  int agreed = me == left - 1 ? ~4 : ~0;
  CHECK(MPIX_Comm_agree(small, &agreed) == MPI_SUCCESS && agreed == (left ? ~4 : ~0), "agreed on %x", agreed);

  MPI_Group failed;
  int size;
  MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed);
  MPI_Group_size(failed, &size);
  CHECK(size == n - left, "%d known failures, not %d", size, n - left);
  int acked;
  CHECK(MPIX_Comm_ack_failed(MPI_COMM_WORLD, size, &acked) == MPI_SUCCESS && acked == size, "%d acknowledged", acked);
  MPI_Group_free(&failed);
  if (me == 0) printf("%d of %d go on\n", members, n);
  MPI_Comm_free(&small);
  MPI_Finalize();
  return 0;
}
