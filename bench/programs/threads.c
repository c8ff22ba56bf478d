/* threads.c - rows with MPI_THREAD_MULTIPLE, between two ranks. Time divided by all messages of all threads: one latency of a pair of threads
 * alone, a rate where two pairs share the processors. */
#include <pthread.h>
#include "rows.h"

typedef struct job {
  int id;
  size_t bytes;
  long times;
} job;

static void *pingpong(void *arg)
{
  job *j = arg;
  int n = (int)j->bytes, t = 10 + 2 * j->id;
  for (long i = 0; i < j->times; i++) {
    char *from = slot(out, j->bytes, 2 * i + j->id), *to = slot(in, j->bytes, 2 * i + j->id);
    if (rank == 0) {
      MPI_Send(from, n, MPI_BYTE, 1, t, MPI_COMM_WORLD);
      MPI_Recv(to, n, MPI_BYTE, 1, t + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(to, n, MPI_BYTE, 0, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(from, n, MPI_BYTE, 0, t + 1, MPI_COMM_WORLD);
    }
  }
  return NULL;
}

static int pingpong_wrong(const row *r, size_t bytes)
{
  (void)r;
  return in[0] != pattern(1 - rank, 0) || in[bytes - 1] != pattern(1 - rank, bytes - 1);
}

/* One thread calls MPI: what the level alone costs. */
static void one(const row *r, size_t bytes, long times)
{
  job j = {0, bytes, times};
  (void)r;
  pingpong(&j);
}

/* Two threads on each rank, each with its own partner. */
static void two(const row *r, size_t bytes, long times)
{
  job j[2] = {{0, bytes, times}, {1, bytes, times}};
  pthread_t other;
  (void)r;
  if (pthread_create(&other, NULL, pingpong, &j[1])) abort();
  pingpong(&j[0]);
  pthread_join(other, NULL);
}

static void *listen(void *arg)
{
  char c;
  (void)arg;
  MPI_Recv(&c, 1, MPI_BYTE, rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}

/* One thread works while another waits for a message that comes at the end. */
static void listened(const row *r, size_t bytes, long times)
{
  pthread_t other;
  char c = 1;
  (void)r;
  if (pthread_create(&other, NULL, listen, NULL)) abort();
  one(r, bytes, times);
  MPI_Send(&c, 1, MPI_BYTE, rank, 99, MPI_COMM_WORLD);
  pthread_join(other, NULL);
}

const row thread_rows[] = {{"multiple-1thread", one, pingpong_wrong, 2, 2, 2, {8, 1024, 65536}, 0, 0, 0},
                           {"multiple-2threads", two, pingpong_wrong, 4, 2, 2, {8, 1024, 65536}, 0, 0, 0},
                           {"multiple-listener", listened, pingpong_wrong, 2, 2, 2, {8}, 0, 0, 0},
                           {0}};
