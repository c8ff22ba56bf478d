// run: n=2 cflags=-pthread timeout=60
// run: n=3 cflags=-pthread env=SPX_CMA=0 timeout=60
// run: n=3 cflags=-pthread env=SPX_TRANSPORTS=tcp timeout=60
/* Several threads of each process use windows at once: one counter that all add to, and a window of each thread's own that it
 * makes, locks and frees. MPI-5.0, 11.6 and 12.7. */
#include "../check.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 200 };
static MPI_Win shared;
static MPI_Comm comms[THREADS];
static int rank, size;

static void *work(void *arg)
{
  int me = *(int *)arg, next = (rank + 1) % size;
  long one = 1, was, memory[2] = {0, 0};
  for (int k = 0; k < ROUNDS; k++) {
    CHECK(MPI_Fetch_and_op(&one, &was, MPI_LONG, k % size, 0, MPI_SUM, shared) == MPI_SUCCESS);
    CHECK(MPI_Put(&one, 1, MPI_LONG, next, 1 + me, 1, MPI_LONG, shared) == MPI_SUCCESS);
    CHECK(MPI_Win_flush(next, shared) == MPI_SUCCESS);
  }
  MPI_Win own;
  MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, comms[me], &own);
  for (int k = 0; k < ROUNDS; k++) {
    CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, own) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(&one, 1, MPI_LONG, next, me % 2, 1, MPI_LONG, MPI_SUM, own) == MPI_SUCCESS);
    CHECK(MPI_Win_unlock(next, own) == MPI_SUCCESS);
  }
  MPI_Win_fence(0, own);
  CHECK(memory[me % 2] == ROUNDS && memory[1 - me % 2] == 0);
  CHECK(MPI_Win_free(&own) == MPI_SUCCESS);
  return NULL;
}

int main(int argc, char **argv)
{
  int level, ids[THREADS];
  long memory[1 + THREADS] = {0}, sum = 0;
  pthread_t threads[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  CHECK(level == MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &shared);
  for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  MPI_Win_lock_all(0, shared);
  for (int i = 0; i < THREADS; i++) {
    ids[i] = i;
    pthread_create(&threads[i], NULL, work, &ids[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  MPI_Win_unlock_all(shared);
  MPI_Win_fence(0, shared);
  MPI_Allreduce(&memory[0], &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == (long)THREADS * ROUNDS * size);
  for (int i = 0; i < THREADS; i++) CHECK(memory[1 + i] == 1);
  for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
  MPI_Win_free(&shared);
  MPI_Finalize();
  return check_status();
}
