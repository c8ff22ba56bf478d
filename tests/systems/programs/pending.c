/* pending one: sends one message out of its cluster. pending wait: has more receives pending than messages come: those that are left over end as from
 * MPI_PROC_NULL when nobody is left who could send one, and so do probes. */
#include <mpi.h>
#include <mpisp.h>
#include <string.h>
#include "../../c/check.h"

enum { PENDING = 4 };

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  int x = 41, got[PENDING] = {0}, found = 0, ended = 0, flag = 0;
  if (argc > 1 && strcmp(argv[1], "one") == 0)
    MPI_Send(&x, 1, MPI_INT, MPISP_CLUSTER_OUT, 5, MPI_COMM_WORLD);
  else {
    MPI_Request r[PENDING];
    MPI_Status st[PENDING], s;
    MPI_Message m;
    for (int i = 0; i < PENDING - 1; i++)
      MPI_Irecv(&got[i], 1, MPI_INT, MPISP_CLUSTER_IN, i % 2 ? 5 : MPI_ANY_TAG, MPI_COMM_WORLD, &r[i]);
    MPI_Recv_init(&got[PENDING - 1], 1, MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &r[PENDING - 1]);
    MPI_Start(&r[PENDING - 1]);
    MPI_Waitall(PENDING, r, st);
    for (int i = 0; i < PENDING; i++) {
      if (st[i].MPI_SOURCE == MPISP_CLUSTER_IN) found += got[i];
      ended += st[i].MPI_SOURCE == MPI_PROC_NULL && st[i].MPI_TAG == MPI_ANY_TAG;
    }
    CHECK(found == (argc > 2 ? 0 : 41) && ended == PENDING - (argc > 2 ? 0 : 1));
    MPI_Iprobe(MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &s);
    CHECK(flag && s.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Improbe(MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, &s);
    CHECK(flag && m == MPI_MESSAGE_NO_PROC);
    MPI_Sendrecv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, got, 1, MPI_INT, MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD, &s);
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Start(&r[PENDING - 1]); /* also one that begins when all have left */
    MPI_Wait(&r[PENDING - 1], &s);
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Request_free(&r[PENDING - 1]);
    if (!check_failures) printf("all ended\n");
  }
  MPI_Finalize();
  return check_failures != 0;
}
