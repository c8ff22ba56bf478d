/* threads make partitions ready, and look for arrived ones, at the same time, without a lock of their own. */
// run: n=2 timeout=60 cflags="-pthread"
#include <pthread.h>
#include <stdlib.h>
#include "../check.h"

enum { THREADS = 4, PARTS = 64, EACH = 300, ROUNDS = 200 };
static int rank, round_no;
static int data[PARTS * EACH];
static MPI_Request request;
static pthread_barrier_t gate;

static void work(int me)
{
  int per = PARTS / THREADS, low = me * per;
  if (rank == 0) {
    for (int i = low * EACH; i < (low + per) * EACH; i++) data[i] = round_no * 1000 + i;
    if (me % 2)
      MPI_Pready_range(low, low + per - 1, request);
    else
      for (int p = low; p < low + per; p++) MPI_Pready(p, request);
    return;
  }
  for (int p = 2 * low; p < 2 * (low + per); p++) { /* twice as many partitions as the sender has */
    int here = 0, at = p * EACH / 2;
    while (!here) MPI_Parrived(request, p, &here);
    if (data[at] != round_no * 1000 + at || data[at + EACH / 2 - 1] != round_no * 1000 + at + EACH / 2 - 1)
      CHECK(!"the partition's data");
  }
}

static void *thread(void *arg)
{
  int me = (int)(long)arg;
  for (int i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait(&gate);
    work(me);
    pthread_barrier_wait(&gate);
  }
  return NULL;
}

int main(int argc, char **argv)
{
  int level;
  pthread_t t[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  pthread_barrier_init(&gate, NULL, THREADS + 1);
  if (rank == 0)
    MPI_Psend_init(data, PARTS, EACH, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else
    MPI_Precv_init(data, 2 * PARTS, EACH / 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (long i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, thread, (void *)i);
  for (round_no = 0; round_no < ROUNDS; round_no++) {
    MPI_Start(&request);
    pthread_barrier_wait(&gate);
    MPI_Wait(&request, MPI_STATUS_IGNORE); /* while the others work */
    if (rank == 1) CHECK(data[PARTS * EACH - 1] == round_no * 1000 + PARTS * EACH - 1);
    pthread_barrier_wait(&gate);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  MPI_Request_free(&request);
  MPI_Finalize();
  return check_status();
}
