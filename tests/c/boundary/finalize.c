/* MPI_Finalize frees the attributes of MPI_COMM_SELF first, last set first, while MPI still works (MPI-5.0, 12.2.4); thread levels and
 * the main thread; what was sent before arrives. */
// run: n=1,2,4
#include "boundary.h"

static int order[3], n, sum;
static int deleted(MPI_Comm comm, int keyval, void *value, void *extra)
{
  int flag, one = 1;
  (void)keyval;
  (void)extra;
  MPI_Finalized(&flag);
  CHECK(!flag);
  CHECK(comm == MPI_COMM_SELF);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  order[n++] = *(int *)value;
  return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
  static int values[3] = {1, 2, 3}, keys[3];
  int provided, rank, size, flag;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  CHECK(provided == MPI_THREAD_SERIALIZED);
  MPI_Query_thread(&provided);
  CHECK(provided == MPI_THREAD_SERIALIZED);
  MPI_Is_thread_main(&flag);
  CHECK(flag);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 3; i++) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keys[i], NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], &values[i]);
  }
  if (size > 1 && rank == 0) { /* more than fits, to a receiver that comes late */
    static int load[2000][64];
    for (int i = 0; i < 2000; i++) {
      MPI_Request r;
      load[i][0] = i;
      MPI_Isend(load[i], 64, MPI_INT, 1, i % 7, MPI_COMM_WORLD, &r);
      MPI_Request_free(&r);
    }
  }
  static char large[1 << 20];
  if (size > 1 && rank == 0) { /* and one that the receiver fetches */
    MPI_Request r;
    memset(large, 7, sizeof large);
    MPI_Isend(large, sizeof large, MPI_CHAR, 1, 99, MPI_COMM_WORLD, &r);
    MPI_Request_free(&r);
  }
  if (rank == 1) {
    int got[64];
    usleep(100000);
    for (int i = 0; i < 2000; i++) {
      MPI_Recv(got, 64, MPI_INT, 0, i % 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(got[0] == i);
    }
    usleep(100000);
    MPI_Recv(large, sizeof large, MPI_CHAR, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(large[0] == 7 && large[sizeof large - 1] == 7);
  }
  MPI_Finalize();
  CHECK(n == 3 && order[0] == 3 && order[1] == 2 && order[2] == 1);
  CHECK(sum == size);
  return 0;
}
