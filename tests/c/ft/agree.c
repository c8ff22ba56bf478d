// run: n=5 spxrun="--with-ft"
// MPIX_Comm_agree with a failure: the flag is the bitwise and of the living; the call raises MPIX_ERR_PROC_FAILED at all members
// until all have acknowledged the failure (ULFM 1.0). Twice, then nonblocking.
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>

static int rank, n;

static void expect(int ok, const char *what, int value)
{
  if (ok) return;
  fprintf(stderr, "rank %d: %s: %x\n", rank, what, value);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int class_of(int rc)
{
  int class = 0;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
  return class;
}

/* Waits until the death of the last rank is known here. */
static void wait_for_death(void)
{
  int size = 0;
  while (size == 0) {
    MPI_Group failed;
    MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed);
    MPI_Group_size(failed, &size);
    MPI_Group_free(&failed);
  }
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int flag = ~(1 << rank);
  expect(MPIX_Comm_agree(MPI_COMM_WORLD, &flag) == MPI_SUCCESS && flag == ~((1 << n) - 1), "agreement of all", flag);
  if (rank == n - 1) raise(SIGKILL);
  wait_for_death();

  flag = ~(1 << rank);
  int class = class_of(MPIX_Comm_agree(MPI_COMM_WORLD, &flag));
  expect(class == MPIX_ERR_PROC_FAILED, "class with an unacknowledged failure", class);
  expect(flag == ~((1 << (n - 1)) - 1), "flag with an unacknowledged failure", flag);

  if (rank != 0) MPIX_Comm_failure_ack(MPI_COMM_WORLD); /* one has not */
  flag = ~0;
  class = class_of(MPIX_Comm_agree(MPI_COMM_WORLD, &flag));
  expect(class == MPIX_ERR_PROC_FAILED, "class when one has not acknowledged", class);

  MPI_Group acked;
  int size, dead, last = n - 1;
  MPIX_Comm_failure_ack(MPI_COMM_WORLD);
  MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &acked);
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_size(acked, &size);
  MPI_Group_translate_ranks(world, 1, &last, acked, &dead);
  expect(size == 1 && dead == 0, "acknowledged", size);
  MPI_Group_free(&acked);
  MPI_Group_free(&world);

  MPI_Request r;
  flag = rank == 1 ? 6 : 7;
  class = class_of(MPIX_Comm_iagree(MPI_COMM_WORLD, &flag, &r));
  expect(class == MPI_SUCCESS, "iagree", class);
  class = class_of(MPI_Wait(&r, MPI_STATUS_IGNORE));
  expect(class == MPI_SUCCESS && flag == 6, "iagree's outcome", flag);
  MPI_Comm small;
  class = class_of(MPIX_Comm_ishrink(MPI_COMM_WORLD, &small, &r));
  expect(class == MPI_SUCCESS && class_of(MPI_Wait(&r, MPI_STATUS_IGNORE)) == MPI_SUCCESS, "ishrink", class);
  MPI_Comm_size(small, &size);
  expect(size == n - 1 && MPI_Barrier(small) == MPI_SUCCESS, "size after ishrink", size);
  MPI_Comm_free(&small);
  MPI_Finalize();
  return 0;
}
