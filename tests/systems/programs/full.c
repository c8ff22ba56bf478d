/* full send DIR COUNT BYTES: sends COUNT messages, and makes DIR/stuck when for half a second none has been taken: it tells how many were then.
 * full receive DIR COUNT BYTES: takes nothing before that, and then all. */
#include <mpi.h>
#include <mpisp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../c/check.h"

static char value(int k, int i) { return (char)(k * 13 + i + (i >> 9)); }

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  CHECK(argc == 5);
  int count = atoi(argv[3]), bytes = atoi(argv[4]), stuck = 0, wrong = 0, flag;
  char *buf = malloc((size_t)bytes), path[1000];
  MPI_Status st;
  snprintf(path, sizeof path, "%s/stuck", argv[2]);
  if (strcmp(argv[1], "send") == 0)
    for (int k = 0; k < count; k++) {
      MPI_Request r;
      for (int i = 0; i < bytes; i++) buf[i] = value(k, i);
      MPI_Isend(buf, bytes, MPI_BYTE, MPISP_CLUSTER_OUT, k, MPI_COMM_WORLD, &r);
      double since = MPI_Wtime();
      for (flag = 0; !flag; MPI_Test(&r, &flag, MPI_STATUS_IGNORE))
        if (!stuck && MPI_Wtime() - since > 0.5) {
          stuck = 1;
          printf("stuck after %d\n", k);
          fclose(fopen(path, "w"));
        }
    }
  else {
    while (access(path, F_OK)) usleep(1000);
    for (int k = 0; k < count; k++) {
      MPI_Recv(buf, bytes, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
      CHECK(st.MPI_TAG == k);
      for (int i = 0; i < bytes; i++) wrong += buf[i] != value(k, i);
    }
    CHECK(wrong == 0);
    MPI_Recv(buf, bytes, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    CHECK(st.MPI_SOURCE == MPI_PROC_NULL);
    printf("received %d\n", count);
  }
  free(buf);
  MPI_Finalize();
  return check_failures != 0;
}
