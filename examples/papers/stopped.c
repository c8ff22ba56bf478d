/* stopped.c - four ranks on a host: rank 2 is stopped in the middle of a long message to rank 3, and ranks 0 and 1 go on (docs/papers.md, S4.4). */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 64 << 20, MESSAGES = 20000 };

int main(int argc, char **argv)
{
  int rank, pid = (int)getpid();
  char *data = malloc(LONG);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(data, rank, LONG);
  if (rank == 2) { /* says whom to wake, begins to send, and stops */
    MPI_Request request;
    MPI_Send(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Isend(data, LONG, MPI_BYTE, 3, 0, MPI_COMM_WORLD, &request);
    raise(SIGSTOP);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank == 3) {
    MPI_Recv(data, LONG, MPI_BYTE, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("rank 3 has the long message: %s\n", data[0] == 2 && data[LONG - 1] == 2 ? "whole" : "WRONG");
  } else {
    char state = 0, name[64], line[512];
    if (rank == 0) { /* wait until rank 2 is stopped: state T in /proc */
      MPI_Recv(&pid, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      snprintf(name, sizeof name, "/proc/%d/stat", pid);
      while (state != 'T') {
        FILE *f = fopen(name, "r");
        if (f && fgets(line, sizeof line, f) && strrchr(line, ')')) state = strrchr(line, ')')[2];
        if (f) fclose(f);
      }
    }
    for (int i = 0; i < MESSAGES; i++)
      MPI_Sendrecv_replace(data, 1000, MPI_BYTE, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) {
      printf("rank 2 is stopped; ranks 0 and 1 have exchanged %d messages\n", MESSAGES);
      fflush(stdout);
      kill(pid, SIGCONT);
    }
  }
  MPI_Finalize();
  free(data);
  return 0;
}
