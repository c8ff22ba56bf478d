/* Rank 0 asks again and again whether a message has come, while messages go by multicast, persistently and matched. */
#include <mpi.h>
#include <mpi-ext.h>

int main(int argc, char **argv)
{
  int rank, size, x = 0, flag = 0;
  MPI_Request r;
  MPI_Message m;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    MPI_Irecv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &r);
    while (!flag) MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    MPI_Mprobe(1, 2, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
    MPI_Mrecv(&x, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    for (double end = MPI_Wtime() + 0.02; MPI_Wtime() < end;) {}
    MPI_Send(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Send_init(&x, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &r);
    MPI_Start(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Request_free(&r);
  }
  if (rank == 0) {
    int all[64];
    MPIX_Rankset set;
    for (int i = 1; i < size; i++) all[i - 1] = i;
    MPIX_Rankset_incl(MPI_COMM_WORLD, size - 1, all, &set);
    MPIX_Mcast(&x, 1, MPI_INT, set, 5, MPI_COMM_WORLD);
    MPIX_Rankset_free(&set);
  } else
    MPI_Recv(&x, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
