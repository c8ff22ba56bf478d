/* The control layer of recovery.f90. setjmp stays in C: the frames of Fortran that longjmp leaves have nothing to be cleaned up. */
#include <mpi.h>
#include <mpi-ext.h>
#include <setjmp.h>
#include <signal.h>

enum { RANKS = 5, DEATHS = 2 };

void compute(int comm);
void restore(int comm);
void finish(int comm, int survivors);

static MPI_Comm world;
static jmp_buf point;
static int size;

static void on_error(MPI_Comm *comm, int *code, ...)
{
  int class;
  MPI_Comm smaller;
  MPI_Error_class(*code, &class);
  if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) MPI_Abort(MPI_COMM_WORLD, 3);
  MPIX_Comm_revoke(*comm);
  MPIX_Comm_shrink(*comm, &smaller);
  MPI_Comm_free(&world);
  world = smaller;
  longjmp(point, 1);
}

/* The last rank dies in the middle, then the first one. */
void step_begins(int step, int rank)
{
  if (size == RANKS && step == 100 && rank == RANKS - 1) raise(SIGKILL);
  if (size == RANKS - 1 && step == 200 && rank == 0) raise(SIGKILL);
}

int main(int argc, char **argv)
{
  MPI_Errhandler handler;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Comm_create_errhandler(on_error, &handler);
  int again = setjmp(point);
  MPI_Comm_set_errhandler(world, handler);
  MPI_Comm_size(world, &size);
  if (again) restore(MPI_Comm_toint(world));
  compute(MPI_Comm_toint(world));
  finish(MPI_Comm_toint(world), RANKS - DEATHS);
  MPI_Finalize();
  return 0;
}
