/* MPI_THREAD_MULTIPLE: several threads multicast and receive at once, each with a tag of its own, by turns from every rank to all, short and long,
 * blocking, nonblocking and synchronous. */
// run: n=4 timeout=60 cflags="-pthread"
// run: n=3 env=SPX_TRANSPORTS=tcp timeout=60 cflags="-pthread"
#include <mpi-ext.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { THREADS = 3, ROUNDS = 300, LONG = 40000 };

static int me, size;

static void *run(void *arg)
{
  int t = *(int *)arg, range[1][3] = {{0, size - 1, 1}}, n;
  char *out = malloc(LONG), *in = malloc(LONG);
  MPIX_Rankset all;
  MPI_Status st;
  MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &all));
  for (int i = 0; i < ROUNDS; i++) {
    int master = i % size, bytes = i % 7 == 6 ? LONG : 8 + i % 3 * 1000;
    MPI_Request r = MPI_REQUEST_NULL;
    if (me == master) {
      memset(out, i + t, (size_t)bytes);
      if (i % 4 == 0)
        MUST(MPIX_Mcast(out, bytes, MPI_BYTE, all, t, MPI_COMM_WORLD));
      else if (i % 4 == 1)
        MUST(MPIX_Ismcast(out, bytes, MPI_BYTE, all, t, MPI_COMM_WORLD, &r));
      else
        MUST(MPIX_Imcast(out, bytes, MPI_BYTE, all, t, MPI_COMM_WORLD, &r));
    }
    MUST(MPI_Recv(in, LONG, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : master, t, MPI_COMM_WORLD, &st));
    MPI_Get_count(&st, MPI_BYTE, &n);
    CHECK(n == bytes && st.MPI_SOURCE == master && in[0] == (char)(i + t) && in[n - 1] == (char)(i + t));
    MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
    if (check_failures) MPI_Abort(MPI_COMM_WORLD, 1);
    char token = 0; /* masters are in no order among themselves: the next begins when all have this one */
    if (me != master)
      MUST(MPI_Send(&token, 1, MPI_CHAR, master, 100 + t, MPI_COMM_WORLD));
    else
      for (int k = 1; k < size; k++)
        MUST(MPI_Recv(&token, 1, MPI_CHAR, MPI_ANY_SOURCE, 100 + t, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    int next = (i + 1) % size;
    if (me == master && next != me) MUST(MPI_Send(&token, 1, MPI_CHAR, next, 200 + t, MPI_COMM_WORLD));
    if (me == next && next != master)
      MUST(MPI_Recv(&token, 1, MPI_CHAR, master, 200 + t, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  MUST(MPIX_Rankset_free(&all));
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char **argv)
{
  pthread_t threads[THREADS];
  int level, numbers[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  CHECK(level == MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int t = 0; t < THREADS; t++) {
    numbers[t] = t;
    pthread_create(&threads[t], NULL, run, &numbers[t]);
  }
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  MPI_Finalize();
  return check_status();
}
