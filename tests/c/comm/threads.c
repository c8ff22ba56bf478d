/* MPI_THREAD_MULTIPLE: threads create communicators at the same time, on different parents and, with different tags, of the
 * same one (MPI-5.0, 7.4.2). */
// run: n=2,4 cflags=-pthread timeout=40
#include "../check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 30 };
static MPI_Comm parent[THREADS];

static void ring(MPI_Comm c)
{
  int r, n, got = -1;
  MPI_Comm_rank(c, &r);
  MPI_Comm_size(c, &n);
  MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % n, 0, &got, 1, MPI_INT, (r + n - 1) % n, 0, c, MPI_STATUS_IGNORE);
  CHECK(got == (r + n - 1) % n);
}

static void *run(void *arg)
{
  int t = (int)(long)arg;
  MPI_Group g;
  MPI_Comm_group(MPI_COMM_WORLD, &g);
  for (int k = 0; k < ROUNDS; k++) {
    MPI_Comm a, b, c, d;
    MPI_Request q;
    int rank;
    MPI_Comm_rank(parent[t], &rank);
    MPI_Comm_dup(parent[t], &a);
    MPI_Comm_split(a, rank % 2, 0, &b);
    MPI_Comm_create_group(MPI_COMM_WORLD, g, t, &c);
    MPI_Comm_idup(c, &d, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    ring(a);
    ring(b);
    ring(d);
    MPI_Comm_free(&a);
    MPI_Comm_free(&b);
    MPI_Comm_free(&c);
    MPI_Comm_free(&d);
  }
  MPI_Group_free(&g);
  return NULL;
}

int main(int argc, char **argv)
{
  int level;
  pthread_t th[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  CHECK(level == MPI_THREAD_MULTIPLE);
  for (int t = 0; t < THREADS; t++) MPI_Comm_dup(MPI_COMM_WORLD, &parent[t]);
  for (long t = 0; t < THREADS; t++) pthread_create(&th[t], NULL, run, (void *)t);
  for (int t = 0; t < THREADS; t++) pthread_join(th[t], NULL);
  for (int t = 0; t < THREADS; t++) MPI_Comm_free(&parent[t]);
  MPI_Finalize();
  return check_status();
}
