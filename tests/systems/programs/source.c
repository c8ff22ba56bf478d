/* A compute process that sends to other clusters by every call there is. Its own world is as if it were alone: argv[1] processes. */
#include <mpi.h>
#include <mpisp.h>
#include <stdlib.h>
#include "../../c/check.h"
#include "ways.h"

static int rank, size;

static void send(int k, const int *buf, int n, MPI_Comm dup, MPI_Request *again)
{
  MPI_Request r;
  MPI_Status st;
  int got = -1, mine = k, next = (rank + 1) % size, before = (rank + size - 1) % size;
  switch (k % WAYS) {
  case 0: MPI_Send(buf, n, MPI_INT, MPISP_CLUSTER_OUT, TAG(k), MPI_COMM_WORLD); return;
  case 1: MPI_Ssend(buf, n, MPI_INT, MPISP_CLUSTER_OUT, TAG(k), MPI_COMM_WORLD); return;
  case 2: MPI_Isend(buf, n, MPI_INT, MPISP_CLUSTER_OUT, TAG(k), MPI_COMM_WORLD, &r); break;
  case 3: MPI_Issend(buf, n, MPI_INT, MPISP_CLUSTER_OUT, TAG(k), dup, &r); break;
  case 4: MPI_Bsend(buf, n, MPI_INT, MPISP_CLUSTER_OUT, TAG(k), MPI_COMM_WORLD); return;
  case 5: MPI_Send(buf, n, MPI_INT, MPISP_CLUSTER_OUT, TAG(k), dup); return;
  case 6: /* the other half stays in the cluster */
    MPI_Isend(&mine, 1, MPI_INT, next, 77, MPI_COMM_WORLD, &r);
    MPI_Sendrecv(buf, n, MPI_INT, MPISP_CLUSTER_OUT, TAG(k), &got, 1, MPI_INT, before, 77, MPI_COMM_WORLD, &st);
    CHECK(got == k && st.MPI_SOURCE == before);
    break;
  case 7: /* every other element of a buffer twice as long */
  {
    int *wide = malloc((size_t)(2 * n + 1) * sizeof *wide);
    for (int i = 0; i < n; i++) wide[2 * i] = buf[i], wide[2 * i + 1] = -1;
    MPI_Datatype every;
    MPI_Type_vector(n, 1, 2, MPI_INT, &every);
    MPI_Type_commit(&every);
    MPI_Send(wide, 1, every, MPISP_CLUSTER_OUT, TAG(k), MPI_COMM_WORLD);
    MPI_Type_free(&every);
    free(wide);
    return;
  }
  default: /* a persistent one of a fixed buffer */
    MPI_Start(again);
    MPI_Wait(again, MPI_STATUS_IGNORE);
    return;
  }
  MPI_Wait(&r, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm dup;
  MPI_Request again;
  int sum, one = 1, constant = 0, largest = LENGTH(6), cluster;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(argc > 1 && size == atoi(argv[1]));
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size);
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  int *buf = malloc((size_t)largest * sizeof *buf);
  static char attached[1 << 22];
  MPI_Buffer_attach(attached, sizeof attached);
  MPI_Send_init(&constant, 1, MPI_INT, MPISP_CLUSTER_OUT, WAYS - 1, MPI_COMM_WORLD, &again);
  for (int k = 0; k < WAYS * ROUNDS; k++) {
    int n = LENGTH(k);
    for (int i = 0; i < n; i++) buf[i] = VALUE(rank, k, i);
    constant = k;
    send(k, buf, n, dup, &again);
  }
  MPI_Request_free(&again);
  MPI_Status st;
  MPI_Sendrecv(&one, 1, MPI_INT, rank, 5, &sum, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &st);
  MPISP_Status_get_cluster(&st, &cluster);
  CHECK(cluster == 0);
  void *gone;
  int bytes;
  MPI_Buffer_detach(&gone, &bytes);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_ERROR(MPI_Recv(&one, 1, MPI_INT, MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD, &st), MPI_ERR_RANK,
              "source = MPISP_CLUSTER_IN: no link leads to this cluster");
  CHECK_CLASS(MPI_Send(&one, 1, MPI_INT, MPISP_CLUSTER_IN, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Send(&one, 1, MPI_INT, size, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
  if (size > 1)
    CHECK_ERROR(MPI_Send(&one, 1, MPI_INT, MPISP_CLUSTER_OUT, 0, half), MPI_ERR_RANK,
                "dest = MPISP_CLUSTER_OUT: only MPI_COMM_WORLD and its duplicates lead to other clusters");
  MPI_Comm_free(&half);
  MPI_Comm_free(&dup);
  free(buf);
  MPI_Finalize();
  return check_failures != 0;
}
