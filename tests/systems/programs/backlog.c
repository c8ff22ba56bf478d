/* Messages come faster than a rank takes them.
 *
 *   send N BYTES   one rank that sends N messages with tag 0, and a last one with tag 1
 *   slow           a rank that commits after each message, and looks for what never comes meanwhile
 *   behind         a rank that looks for the last message first, which is behind all others
 */
#include <mpi.h>
#include <mpisp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 16 };
static char data[MOST];
static int got;

static void send_all(int n, int bytes)
{
  for (int i = 0; i <= n; i++) MPI_Send(data, bytes, MPI_BYTE, MPISP_CLUSTER_OUT, i == n, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
  int flag = 0;
  MPI_Comm side;
  MPI_Init(&argc, &argv);
  if (strcmp(argv[1], "send") == 0) {
    send_all(atoi(argv[2]), atoi(argv[3]));
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &side);
  MPISP_Register(&got, 1, MPI_INT);
  MPISP_Commit();
  if (strcmp(argv[1], "behind") == 0)
    while (!flag) MPI_Iprobe(MPISP_CLUSTER_IN, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  for (;;) {
    MPI_Status st;
    MPI_Recv(data, MOST, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    got++;
    if (flag) continue;
    for (int i = 0, found; i < 8; i++) MPI_Iprobe(MPI_ANY_SOURCE, 99, side, &found, MPI_STATUS_IGNORE);
    usleep(1000);
    MPISP_Commit();
  }
  printf("got %d\n", got);
  MPI_Finalize();
  return 0;
}
