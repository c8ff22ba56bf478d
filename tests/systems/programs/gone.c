/* gone send N: sends N numbered messages out of its cluster, synchronously, until a send fails.
 * gone receive: takes what comes, to the end.
 * gone iop MARK RELAY: the first of them that finds a message dies, and receives nothing; the others hand on what comes. One that is started later is the relay. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <mpisp.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../c/check.h"

static int send_one(int k)
{
  int class = MPI_SUCCESS, n, code = MPI_Ssend(&k, 1, MPI_INT, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD);
  if (code == MPI_SUCCESS) return 1;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_class(code, &class);
  CHECK(class == MPIX_ERR_PROC_FAILED);
  MPI_Error_string(code, text, &n);
  printf("%d: %s\n", k, text);
  return 0;
}

static void hand_on(void)
{
  for (;;) {
    MPI_Status st;
    int k;
    MPI_Recv(&k, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    MPI_Send(&k, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
}

int main(int argc, char **argv)
{
  if (strcmp(argv[1], "iop") == 0 && access(argv[2], F_OK) == 0) {
    char *words[] = {argv[3], NULL};
    execv(argv[3], words);
    return 127;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int n = 0, last = -1;
  if (strcmp(argv[1], "iop") == 0) {
    MPI_Status st;
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE != MPI_PROC_NULL && open(argv[2], O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0) raise(SIGKILL);
    hand_on();
  } else if (strcmp(argv[1], "send") == 0) {
    while (n < atoi(argv[2]) && send_one(n)) n++;
    printf("sent %d\n", n);
  } else {
    for (;;) {
      MPI_Status st;
      int k;
      CHECK(MPI_Recv(&k, 1, MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st) == MPI_SUCCESS);
      if (st.MPI_SOURCE != MPISP_CLUSTER_IN) break;
      CHECK(k > last);
      last = k;
      n++;
    }
    printf("received %d, the last is %d\n", n, last);
  }
  MPI_Finalize();
  return check_failures != 0;
}
