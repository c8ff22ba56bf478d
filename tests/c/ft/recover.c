// run: n=6 spxrun="--with-ft" timeout=60
// The recovery of the DyProReconf paper (section 3): the error handler revokes, shrinks and longjmps to a setjmp point; the
// others go on from their last checkpoint. Ranks die one after another until two are left.
#include <mpi.h>
#include <mpi-ext.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Comm world;
static jmp_buf point;
static volatile int recoveries;

static void on_error(MPI_Comm *comm, int *code, ...)
{
  int class;
  MPI_Error_class(*code, &class);
  if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) {
    fprintf(stderr, "unexpected error class %d\n", class);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Comm smaller;
  MPIX_Comm_revoke(*comm);
  MPIX_Comm_shrink(*comm, &smaller);
  if (*comm != MPI_COMM_WORLD) MPI_Comm_free(&world);
  world = smaller;
  recoveries++;
  longjmp(point, 1);
}

int main(int argc, char **argv)
{
  enum { STEPS = 400, EVERY = 60 };
  static volatile int step; /* survives the jump */
  static double saved_sum;
  static int saved_step, killed;
  MPI_Errhandler handler;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(world, handler);

  static double sum;
  if (setjmp(point)) { /* all agree on the oldest checkpoint */
    int oldest;
    MPI_Comm_set_errhandler(world, handler);
    MPI_Allreduce(&saved_step, &oldest, 1, MPI_INT, MPI_MIN, world);
    step = oldest;
    sum = oldest; /* what the checkpoint holds: one per step */
    int size;
    MPI_Comm_size(world, &size);
    killed = 6 - size;
  }
  for (; step < STEPS; step++) {
    int rank, size;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    if (size > 2 && step == EVERY * (killed + 1) && rank == (killed % 2 ? 0 : size - 1)) raise(SIGKILL);
    double part = 1.0 / size, all;
    MPI_Allreduce(&part, &all, 1, MPI_DOUBLE, MPI_SUM, world);
    sum += all;
    if (step % 20 == 19) {
      saved_sum = sum;
      saved_step = step + 1;
    }
  }
  int rank, size;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  if (size != 2 || sum < STEPS - 1e-6 || sum > STEPS + 1e-6 || saved_sum <= 0) {
    fprintf(stderr, "rank %d of %d: sum %g after %d recoveries\n", rank, size, sum, recoveries);
    MPI_Abort(MPI_COMM_WORLD, 4);
  }
  if (rank == 0) printf("2 of 6 finished after %d recoveries\n", recoveries);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&world);
  MPI_Finalize();
  return 0;
}
