/* An I/O process that dies, or (a compute process) a rank that takes no part: dying kill, dying leave. */
#include <mpi.h>
#include <signal.h>
#include <string.h>

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "kill") == 0) raise(SIGKILL);
  MPI_Finalize();
  return 0;
}
