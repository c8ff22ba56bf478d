/* long send: each rank sends messages of up to 40 MB out of its cluster, in all ways. long receive SENDERS: verifies content, and the order of each sender's. */
#include <mpi.h>
#include <mpisp.h>
#include <stdlib.h>
#include <string.h>
#include "../../c/check.h"

static const int lengths[] = {40000000, 3, 1 << 20, (1 << 20) + 13, 300001, 5000000, 0, 262144, 262145, 12345678};
enum { N = sizeof lengths / sizeof *lengths, MOST = 40000000 };

static char value(int rank, int k, int i) { return (char)(rank * 31 + k * 7 + i + (i >> 11)); }

static void fill(char *buf, int rank, int k)
{
  for (int i = 0; i < lengths[k]; i++) buf[i] = value(rank, k, i);
}

static void send_all(int rank)
{
  char *buf = malloc(2 * MOST);
  MPI_Request r;
  for (int k = 0; k < N; k++) {
    if (k % 3 == 2) { /* every other 8 KiB */
      MPI_Datatype t;
      int whole = lengths[k] / 8192, rest = lengths[k] % 8192, n[2] = {1, rest};
      MPI_Aint at[2] = {0, 16384L * whole};
      MPI_Datatype parts[2], blocks;
      MPI_Type_vector(whole, 8192, 16384, MPI_BYTE, &blocks);
      parts[0] = blocks;
      parts[1] = MPI_BYTE;
      MPI_Type_create_struct(2, n, at, parts, &t);
      MPI_Type_commit(&t);
      for (int i = 0; i < lengths[k]; i++) buf[i / 8192 * 16384 + i % 8192] = value(rank, k, i);
      MPI_Send(buf, 1, t, MPISP_CLUSTER_OUT, k, MPI_COMM_WORLD);
      MPI_Type_free(&blocks);
      MPI_Type_free(&t);
      continue;
    }
    fill(buf, rank, k);
    if (k % 3 == 0)
      MPI_Send(buf, lengths[k], MPI_BYTE, MPISP_CLUSTER_OUT, k, MPI_COMM_WORLD);
    else {
      MPI_Issend(buf, lengths[k], MPI_BYTE, MPISP_CLUSTER_OUT, k, MPI_COMM_WORLD, &r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
  }
  free(buf);
}

static void receive_all(int senders)
{
  char *buf = malloc(MOST);
  int next[64] = {0};
  for (int n = 0; n < senders * N; n++) {
    MPI_Status st;
    MPI_Message m;
    MPI_Request r;
    int bytes, rank, k, wrong = 0;
    if (n % 3 == 0)
      MPI_Recv(buf, MOST, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    else if (n % 3 == 1) {
      MPI_Irecv(buf, MOST, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &r);
      MPI_Wait(&r, &st);
    } else {
      MPI_Mprobe(MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &st);
      MPI_Mrecv(buf, MOST, MPI_BYTE, &m, MPI_STATUS_IGNORE);
    }
    MPI_Get_count(&st, MPI_BYTE, &bytes);
    MPISP_Status_get_rank(&st, &rank);
    k = st.MPI_TAG;
    CHECK(st.MPI_SOURCE == MPISP_CLUSTER_IN && rank >= 0 && rank < senders && k >= 0 && k < N);
    if (check_failures) break;
    CHECK(next[rank] == k && bytes == lengths[k]);
    next[rank] = k + 1;
    for (int i = 0; i < bytes; i++) wrong += buf[i] != value(rank, k, i);
    CHECK(wrong == 0);
  }
  MPI_Status st;
  MPI_Recv(buf, 1, MPI_BYTE, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
  CHECK(st.MPI_SOURCE == MPI_PROC_NULL);
  free(buf);
}

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 2 && strcmp(argv[1], "receive") == 0)
    receive_all(atoi(argv[2]));
  else
    send_all(rank);
  MPI_Finalize();
  return check_failures != 0;
}
