/* flow.c - a cluster of a system, to be watched: it sends, hands on, or receives a message of a kilobyte every millisecond, for ever. Who has died is
 * passed over.
 *
 *   flow source | pass | sink
 */
#include <mpi.h>
#include <mpisp.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
  char buf[1024] = {0};
  struct timespec pause = {0, 1000000};
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const char *what = argc > 1 ? argv[1] : "source";
  for (;;) {
    if (strcmp(what, "source"))
      MPI_Recv(buf, sizeof buf, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(what, "sink")) MPI_Send(buf, sizeof buf, MPI_BYTE, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD);
    if (!strcmp(what, "source")) nanosleep(&pause, NULL);
  }
}
