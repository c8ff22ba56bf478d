/* What the end of a process of one host means on the others. Argument: how rank 2 ends; the others see what comes of it.
 *   kill    by a signal, nobody has asked to know
 *   told    by a signal, the others have error handlers that return
 *   agent   the agent of its host is killed, and with it the host's processes
 *   abort   in MPI_Abort
 *   well    not at all */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  int rank, err = MPI_SUCCESS;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char *how = argc > 1 ? argv[1] : "well";
  if (!strcmp(how, "told") || !strcmp(how, "agent")) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2 && !strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
  if (rank == 2 && !strcmp(how, "agent")) kill(getppid(), SIGKILL);
  if (rank == 2 && strcmp(how, "well")) raise(SIGKILL);
  for (int i = 0; err == MPI_SUCCESS && (i < 100 || strcmp(how, "well")); i++) err = MPI_Barrier(MPI_COMM_WORLD);
  int class = err;
  if (err != MPI_SUCCESS) MPI_Error_class(err, &class);
  printf("rank %d: %d\n", rank, class);
  MPI_Finalize();
  return 0;
}
