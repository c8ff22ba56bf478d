/* A rank ends before MPI_Finalize while the others wait for it: the job ends, with that rank's status and one line that says so. */
// run: n=3 args="exit 3" status=3 stderr~"rank 1 .pid [0-9]+ on .*exited with status 3 without calling MPI_Finalize; the job is ended with exit status 3" timeout=20
// run: n=3 args="exit 0" status=1 stderr~"rank 1 .*exited with status 0 without calling MPI_Finalize; the job is ended with exit status 1" timeout=20
// run: n=3 args="kill 11" status=139 stderr~"rank 1 .*killed by signal 11 .SIGSEGV: invalid memory access.*; the job is ended with exit status 139" timeout=20
// run: n=3 args="kill 9" status=137 stderr~"rank 1 .*killed by signal 9" spxrun="--on-death=kill" timeout=20
// run: n=2 args="early 5" status=5 stderr~"rank 1 .*exited with status 5" timeout=20
// run: n=2 args="early 0" status=1 stderr~"rank 1 .*exited with status 0" timeout=20
// run: n=2 args="late 4" status=4 stdout~"rank 0 has finished" stderr~"rank 1 .*exited with status 4 after MPI_Finalize" timeout=20
// run: n=2 args="abort 42" status=42 timeout=20
// run: n=2 args="abort 0" status=1 timeout=20
// run: n=2 args="hang 0" status=124 spxrun="--timeout 4.5" stderr~"ranks 0-1: in MPI_Recv" stderr~"longer than --timeout=4.5 s" timeout=60
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank;

static void die(const char *how, int number)
{
  if (strcmp(how, "exit") == 0) _exit(number);
  if (strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, number);
  if (strcmp(how, "kill") == 0) {
    signal(number, SIG_DFL);
    kill(getpid(), number);
  }
}

/* The other ranks' last word comes after this one has left with a status. */
static int late(int number)
{
  int go;
  MPI_Status st;
  if (rank == 1) {
    MPI_Send(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return number;
  }
  MPI_Recv(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &st);
  MPI_Finalize();
  usleep(300000);
  printf("rank 0 has finished\n");
  return 0;
}

int main(int argc, char **argv)
{
  const char *how = argv[1];
  int number = atoi(argv[argc - 1]), x;
  if (strcmp(how, "early") == 0 && getenv("SPX_RANK")[0] == '1') return number;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(how, "late") == 0) return late(number);
  if (rank == 1) die(how, number);
  MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("nobody has sent anything\n");
  return 99;
}
