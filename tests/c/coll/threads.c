/* MPI_THREAD_MULTIPLE: threads with a communicator each run blocking and nonblocking collectives at once, with an operation of
 * their own, while another thread makes progress for all. MPI-5.0 11.6; 6.12 (order holds for each communicator). */
// run: n=1,4 args="300" cflags=-pthread timeout=60
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 3, LENGTH = 50 };

static int rank, size, rounds;
static MPI_Op op;
static MPI_Datatype quad;
static _Atomic int running = THREADS;

/* 2x2 matrices modulo 251. */
static void times(void *in, void *inout, int *len, MPI_Datatype *t)
{
  (void)t;
  for (int i = 0; i < *len * 4; i += 4) {
    int *a = (int *)in + i, *b = (int *)inout + i, c[4];
    for (int k = 0; k < 4; k++) c[k] = (a[k / 2 * 2] * b[k % 2] + a[k / 2 * 2 + 1] * b[2 + k % 2]) % 251;
    for (int k = 0; k < 4; k++) b[k] = c[k];
  }
}

static void operand(int *v, int who, int round)
{
  for (int i = 0; i < LENGTH * 4; i++) v[i] = (who * 37 + round * 11 + i * 7 + 1) % 251;
}

static void *work(void *arg)
{
  MPI_Comm c = *(MPI_Comm *)arg;
  static __thread int in[LENGTH * 4], out[LENGTH * 4], want[LENGTH * 4], next[LENGTH * 4];
  int n = LENGTH;
  for (int round = 0; round < rounds; round++) {
    MPI_Request r[2];
    int word = rank == round % size ? round : -1;
    operand(in, rank, round);
    operand(want, 0, round);
    for (int who = 1; who < size; who++) {
      operand(next, who, round);
      times(want, next, &n, &quad);
      for (int i = 0; i < 4 * n; i++) want[i] = next[i];
    }
    switch (round % 3) {
    case 0: MPI_Allreduce(in, out, n, quad, op, c); break;
    case 1:
      MPI_Iallreduce(in, out, n, quad, op, c, &r[0]);
      MPI_Ibcast(&word, 1, MPI_INT, round % size, c, &r[1]);
      MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
      CHECK(word == round);
      break;
    default:
      MPI_Ireduce(in, out, n, quad, op, 0, c, &r[0]);
      for (int done = 0; !done;) MPI_Test(&r[0], &done, MPI_STATUS_IGNORE);
      MPI_Bcast(out, n, quad, 0, c);
    }
    int same = 1;
    for (int i = 0; i < 4 * n; i++) same &= out[i] == want[i];
    CHECK(same);
  }
  atomic_fetch_sub(&running, 1);
  return NULL;
}

/* Calls that only make progress. */
static void *poke(void *arg)
{
  int flag;
  while (atomic_load(&running) > 0) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
  return arg;
}

int main(int argc, char **argv)
{
  int level;
  pthread_t t[THREADS], poker;
  MPI_Comm comms[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  CHECK(level == MPI_THREAD_MULTIPLE);
  rounds = argc > 1 ? atoi(argv[1]) : 100;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Op_create(times, 0, &op);
  MPI_Type_contiguous(4, MPI_INT, &quad);
  MPI_Type_commit(&quad);
  for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  pthread_create(&poker, NULL, poke, NULL);
  for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, work, &comms[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  pthread_join(poker, NULL);
  for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
  MPI_Op_free(&op);
  MPI_Type_free(&quad);
  MPI_Finalize();
  return check_status();
}
