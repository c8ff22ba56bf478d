/* A compute process that receives what source.c sends, by every call there is: argv[1] processes here, argv[2] in the cluster that sends (index 0). */
#include <mpi.h>
#include <mpisp.h>
#include <stdlib.h>
#include "../../c/check.h"
#include "ways.h"

static int *buf;
static int rank, size;

/* Message k of some rank, by the way that turn says; *st: its status. */
static void receive(int turn, int k, MPI_Comm dup, MPI_Status *st)
{
  int room = LENGTH(6), flag = 0;
  MPI_Request r;
  MPI_Message m;
  switch (turn % 9) {
  case 0: MPI_Recv(buf, room, MPI_INT, MPISP_CLUSTER_IN, TAG(k), MPI_COMM_WORLD, st); return;
  case 1: MPI_Recv(buf, room, MPI_INT, MPI_ANY_SOURCE, TAG(k), MPI_COMM_WORLD, st); return;
  case 2: MPI_Irecv(buf, room, MPI_INT, MPISP_CLUSTER_IN, TAG(k), dup, &r); break;
  case 3:
    MPI_Probe(MPISP_CLUSTER_IN, TAG(k), MPI_COMM_WORLD, st);
    CHECK(st->MPI_SOURCE == MPISP_CLUSTER_IN);
    MPI_Recv(buf, room, MPI_INT, st->MPI_SOURCE, st->MPI_TAG, MPI_COMM_WORLD, st);
    return;
  case 4:
    MPI_Mprobe(MPISP_CLUSTER_IN, TAG(k), MPI_COMM_WORLD, &m, st);
    MPI_Mrecv(buf, room, MPI_INT, &m, st);
    return;
  case 5:
    while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, TAG(k), MPI_COMM_WORLD, &flag, st);
    MPI_Recv(buf, room, MPI_INT, st->MPI_SOURCE, TAG(k), MPI_COMM_WORLD, st);
    return;
  case 6:
    MPI_Sendrecv(&turn, 1, MPI_INT, MPI_PROC_NULL, 0, buf, room, MPI_INT, MPISP_CLUSTER_IN, TAG(k), MPI_COMM_WORLD, st);
    return;
  case 7:
    MPI_Recv_init(buf, room, MPI_INT, MPISP_CLUSTER_IN, TAG(k), MPI_COMM_WORLD, &r);
    MPI_Start(&r);
    MPI_Wait(&r, st);
    MPI_Request_free(&r);
    return;
  default:
    while (!flag) MPI_Improbe(MPISP_CLUSTER_IN, TAG(k), dup, &flag, &m, st);
    MPI_Imrecv(buf, room, MPI_INT, &m, &r);
  }
  MPI_Wait(&r, st);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm dup;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(argc > 2 && size == atoi(argv[1]));
  int senders = atoi(argv[2]), turn = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  buf = malloc((size_t)LENGTH(6) * sizeof *buf);
  for (int k = 0; k < WAYS * ROUNDS; k++) {
    int persistent = k % WAYS == WAYS - 1, tag = persistent ? WAYS - 1 : TAG(k);
    if (tag % size != rank) continue;
    unsigned seen = 0;
    for (int s = 0; s < senders; s++) {
      MPI_Status st;
      int cluster, origin, n;
      receive(turn++, tag, dup, &st);
      MPISP_Status_get_cluster(&st, &cluster);
      MPISP_Status_get_rank(&st, &origin);
      MPI_Get_count(&st, MPI_INT, &n);
      CHECK(st.MPI_SOURCE == MPISP_CLUSTER_IN && st.MPI_TAG == tag && cluster == 0 && origin >= 0 && origin < senders);
      if (persistent) {
        CHECK(n == 1 && buf[0] % WAYS == WAYS - 1);
        continue;
      }
      CHECK(n == LENGTH(k) && !(seen >> origin & 1));
      seen |= 1u << origin;
      for (int i = 0; i < n; i++) CHECK(buf[i] == VALUE(origin, k, i));
    }
  }
  MPI_Status st;
  MPI_Recv(buf, 1, MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD,
           &st); /* the end: all I/O processes have left */
  CHECK(st.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Barrier(dup);
  MPI_Comm_free(&dup);
  free(buf);
  MPI_Finalize();
  return check_failures != 0;
}
