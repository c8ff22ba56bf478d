/* A cluster of argv[1] processes that is what its system makes of it, without being told:
 *   argv[2] = emit: sends argv[3] messages a process out of its cluster, and gets each of them back once, with one added to every value. In a job that is
 *     no system, or without links, it does its own work alone;
 *   argv[2] = pass: what comes in goes out again, with one added, until nothing comes any more. */
#include <mpi.h>
#include <mpisp.h>
#include <stdlib.h>
#include <string.h>
#include "../../c/check.h"

enum { LONGEST = 200000 };

static int rank, size;
static int length_of(int k) { return k % 10 == 9 ? LONGEST : 1 + k % 5; }

static void own_work(void)
{
  int sum = 0, mine = rank + 1, got, next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size + 1) / 2);
  MPI_Sendrecv(&rank, 1, MPI_INT, next, 3, &got, 1, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(got == before);
  MPI_Barrier(MPI_COMM_WORLD);
}

static int is_alone(void)
{
  int class = MPI_SUCCESS, code, nothing = 0;
  MPI_Request r;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  code = MPI_Send_init(&nothing, 1, MPI_INT, MPISP_CLUSTER_OUT, 0, MPI_COMM_WORLD, &r);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  CHECK(code == MPI_SUCCESS || class == MPI_ERR_RANK);
  if (code == MPI_SUCCESS) MPI_Request_free(&r);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  return code != MPI_SUCCESS;
}

/* Ahead of what came back by at most so many messages. */
enum { AHEAD = 20 };

static void emit(int messages)
{
  int *in = malloc(LONGEST * sizeof *in), *out[AHEAD], *seen = calloc((size_t)messages + 1, sizeof *seen), sent = 0;
  MPI_Request r[AHEAD];
  for (int i = 0; i < AHEAD; i++) out[i] = malloc(LONGEST * sizeof *in), r[i] = MPI_REQUEST_NULL;
  for (int back = 0; back < messages; back++) {
    for (; sent < messages && sent < back + AHEAD; sent++) {
      int n = length_of(sent), slot = sent % AHEAD;
      MPI_Wait(&r[slot], MPI_STATUS_IGNORE);
      for (int i = 0; i < n; i++) out[slot][i] = sent + 7 * i;
      MPI_Isend(out[slot], n, MPI_INT, MPISP_CLUSTER_OUT, sent, MPI_COMM_WORLD, &r[slot]);
    }
    MPI_Status st;
    int n, cluster, origin;
    MPI_Recv(in, LONGEST, MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, MPI_INT, &n);
    MPISP_Status_get_cluster(&st, &cluster);
    MPISP_Status_get_rank(&st, &origin);
    int k = st.MPI_TAG, steps = n > 0 ? in[0] - k : 0;
    CHECK(st.MPI_SOURCE == MPISP_CLUSTER_IN && cluster > 0 && origin == rank);
    CHECK(k >= 0 && k < messages && n == length_of(k) && steps > 0);
    if (k >= 0 && k < messages) CHECK(seen[k]++ == 0);
    for (int i = 0; i < n; i++) CHECK(in[i] == k + 7 * i + steps);
  }
  MPI_Waitall(AHEAD, r, MPI_STATUSES_IGNORE);
  for (int i = 0; i < AHEAD; i++) free(out[i]);
  free(in);
  free(seen);
}

static void pass(void)
{
  int *buf = malloc(LONGEST * sizeof *buf);
  for (;;) {
    MPI_Status st;
    int n;
    MPI_Recv(buf, LONGEST, MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    MPI_Get_count(&st, MPI_INT, &n);
    for (int i = 0; i < n; i++) buf[i]++;
    MPI_Send(buf, n, MPI_INT, MPISP_CLUSTER_OUT, st.MPI_TAG, MPI_COMM_WORLD);
  }
  free(buf);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(argc > 3 && size == atoi(argv[1]));
  own_work();
  if (strcmp(argv[2], "pass") == 0)
    pass();
  else if (is_alone())
    printf("alone\n");
  else
    emit(atoi(argv[3]));
  own_work();
  MPI_Finalize();
  return check_failures != 0;
}
