/* control.c - the control of series.f90: setjmp and longjmp stay in C, the computation is in Fortran (docs/papers.md, S3.6). */
#include <mpi.h>
#include <ulfm_dyprc.h>

void compute(int comm);
void restore(int comm, int newcomer);
void finish(int comm);

static MPI_Comm mworld;

/* Called from Fortran after every step; does not return when the number of processes changes. */
void step_ends(void) { ulfm_dyprc_poll(mworld); }

/* Its frame is gone back to: it does not return while there is something to compute. */
static __attribute__((noinline)) void control(int newcomer)
{
  static int first;
  first = newcomer;
  if (ulfm_dyprc_setjmp(mworld, newcomer)) {
    restore(MPI_Comm_toint(mworld), first);
    first = 0;
  }
  compute(MPI_Comm_toint(mworld));
  finish(MPI_Comm_toint(mworld));
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  control(ulfm_dyprc_merge_child(&mworld));
  MPI_Finalize();
  return 0;
}
