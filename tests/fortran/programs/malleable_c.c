/* The control of malleable.f90. setjmp stays in C: the frames of Fortran that longjmp leaves have nothing to be cleaned up. */
#define _GNU_SOURCE
#include <ulfm_dyprc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void compute(int comm);
void restore(int comm, int newcomer);
void finish(int comm, int processes);

static MPI_Comm mworld;
static char file[64]; /* where rank 0 plays the batch system */

static void command(const char *text)
{
  FILE *f = fopen(file, "w");
  if (!f || fputs(text, f) < 0 || fclose(f) != 0) MPI_Abort(MPI_COMM_WORLD, 6);
}

void step_ends(int step, int rank, int size)
{
  static int given;
  if (step == 100 && size == 4 && rank == 3) raise(SIGKILL);
  if (rank == 0 && step >= 200 && given == 0 && size == 3) command("6\n"), given = 1;
  if (rank == 0 && step >= 300 && given == 1 && size == 6) command("2\n"), given = 2;
  /* With so little to do the end might come before the command: wait for it here, by polling, as all do. */
  do ulfm_dyprc_poll(mworld);
  while ((step == 250 && size == 3) || (step == 350 && size == 6));
}

/* Not inlined: its frame is the one that is gone back to. */
static __attribute__((noinline)) void control(int newcomer)
{
  static int first;
  first = newcomer;
  if (ulfm_dyprc_setjmp(mworld, newcomer)) {
    restore(MPI_Comm_toint(mworld), first);
    first = 0;
  }
  compute(MPI_Comm_toint(mworld));
  finish(MPI_Comm_toint(mworld), 2);
}

int main(int argc, char **argv)
{
  snprintf(file, sizeof file, "/tmp/malleable.%d.cmd", (int)getpid());
  setenv("SPX_DYPRC_FILE", file, 1); /* rank 0 lives to the end, so its own counts */
  MPI_Init(&argc, &argv);
  control(ulfm_dyprc_merge_child(&mworld));
  MPI_Finalize();
  unlink(file);
  return 0;
}
