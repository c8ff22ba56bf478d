/* Threads that make, use and free datatypes at the same time, some of them made of a type that all share.
 * MPI-5.0, 11.6 (MPI_THREAD_MULTIPLE). */
// run: n=1 timeout=60 cflags=-pthread
#include "../check.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 1500, N = 12 };
static MPI_Datatype shared;

static void *work(void *arg)
{
  int me = (int)(intptr_t)arg, in[4 * N], out[N], pos;
  for (int i = 0; i < 4 * N; i++) in[i] = me * 1000 + i;
  for (int r = 0; r < ROUNDS; r++) {
    MPI_Datatype t, u, v;
    int n = 1 + (r + me) % 4, stride = 2 + r % 2, size, ok = 1;
    MPI_Type_vector(n, 1, stride, shared, &t);
    MPI_Type_dup(t, &u);
    MPI_Type_commit(&u);
    MPI_Type_get_contents(u, 0, 0, 1, NULL, NULL, &v);
    MPI_Type_free(&t);
    MPI_Type_size(u, &size);
    CHECK(size == n * 4);
    pos = 0;
    MPI_Pack(in, 1, u, out, sizeof out, &pos, MPI_COMM_SELF);
    for (int k = 0; k < n; k++) ok = ok && out[k] == in[k * stride];
    CHECK(ok && pos == size);
    MPI_Type_set_name(v, "vector of this thread");
    MPI_Type_create_f90_integer(9, &t);
    MPI_Type_free(&u);
    MPI_Type_free(&v);
  }
  return NULL;
}

int main(int argc, char **argv)
{
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  CHECK(level == MPI_THREAD_MULTIPLE);
  MPI_Type_contiguous(1, MPI_INT, &shared);
  pthread_t th[THREADS];
  for (intptr_t i = 0; i < THREADS; i++) pthread_create(&th[i], NULL, work, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(th[i], NULL);
  MPI_Type_free(&shared);
  MPI_Finalize();
  return check_status();
}
