/* shrink.c - an error handler revokes, shrinks, and jumps back by longjmp to where all meet; ranks kill themselves on the way (docs/papers.md, S3.1). */
#include <mpi-ext.h>
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 1000 };

static MPI_Comm world;
static jmp_buf meeting;
static int failures;

static void on_error(MPI_Comm *comm, int *code, ...)
{
  int class;
  MPI_Comm smaller;
  MPI_Error_class(*code, &class);
  if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) MPI_Abort(*comm, 1);
  MPIX_Comm_revoke(world);
  if (MPIX_Comm_shrink(world, &smaller) != MPI_SUCCESS) MPI_Abort(*comm, 1);
  MPI_Comm_free(&world);
  world = smaller;
  failures++;
  longjmp(meeting, 1);
}

int main(int argc, char **argv)
{
  static int rank, size, step, first, one = 1, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &first);
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  setjmp(meeting); /* again, with those that are left: from the step that all have */
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(world, handler);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  MPI_Allreduce(MPI_IN_PLACE, &step, 1, MPI_INT, MPI_MIN, world);
  for (; step < STEPS; step++) {
    if ((first == 1 && step == 300) || (first == 4 && step == 600)) raise(SIGKILL);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, world);
    if (sum != size) MPI_Abort(world, 2);
  }
  MPI_Barrier(world);
  if (rank == 0) printf("%d steps; %d processes are left after %d failures\n", step, size, failures);
  MPI_Finalize();
  return 0;
}
