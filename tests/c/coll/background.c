// run: n=2,4 env=SPX_PROGRESS=1 cflags=-pthread timeout=60
// run: n=2 args=multiple env=SPX_PROGRESS=1 cflags=-pthread timeout=60
// run: n=3 env=SPX_PROGRESS=1 env=SPX_TRANSPORTS=tcp cflags=-pthread timeout=60
// run: n=4 env=SPX_PROGRESS=1 env=SPX_CMA=0 cflags=-pthread timeout=60
// run: n=2,4 args=waiter cflags=-pthread timeout=60
/* SPX_PROGRESS=1, or a thread of the program's own that waits for a message (waiter): what is under way gets on while a process calls nothing of
 * MPI. Rank 0 begins collectives that all others need it for, and then only looks at a file that the others make when they have what they waited
 * for. Without a thread it would look for ever. MPI-5.0, 6.12. */
#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 300000 };
static int rank, size;

/* Until all the others have written their mark, with no call of MPI. */
static void compute(const char *name)
{
  for (int i = 1; i < size; i++) {
    char mark[64];
    snprintf(mark, sizeof mark, "%s.%d", name, i);
    while (access(mark, F_OK) != 0) usleep(200);
    unlink(mark);
  }
}

static void tell(const char *name)
{
  char mark[64];
  snprintf(mark, sizeof mark, "%s.%d", name, rank);
  FILE *f = fopen(mark, "w");
  CHECK(f != NULL);
  if (f) fclose(f);
}

/* r is under way at rank 0; the others wait for theirs. */
static void others_first(const char *name, MPI_Request *r)
{
  alarm(40);
  if (rank == 0)
    compute(name);
  else {
    MPI_Wait(r, MPI_STATUS_IGNORE);
    tell(name);
  }
  if (rank == 0) MPI_Wait(r, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void *receive(void *comm)
{
  int end = 0;
  MPI_Recv(&end, 1, MPI_INT, rank, 9, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
  CHECK(end == 5);
  return NULL;
}

int main(int argc, char **argv)
{
  int provided, waiter = argc > 1 && strcmp(argv[1], "waiter") == 0;
  int want = argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  pthread_t waits;
  MPI_Init_thread(&argc, &argv, want, &provided);
  CHECK(provided == want);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  if (waiter) pthread_create(&waits, NULL, receive, &own);
  MPI_Request r;
  int *in = malloc(N * sizeof *in), *out = malloc(N * sizeof *out);
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < N; i++) in[i] = i + rank, out[i] = -1;
    MPI_Iallreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    others_first("reduced", &r);
    for (int i = 0; i < N; i++) CHECK(out[i] == size * i + size * (size - 1) / 2);
    MPI_Ibarrier(MPI_COMM_WORLD, &r);
    others_first("met", &r);
    MPI_Ibcast(in, N, MPI_INT, 0, MPI_COMM_WORLD, &r);
    others_first("told", &r);
    for (int i = 0; i < N; i++) CHECK(in[i] == i);
  }
  if (rank == 0) { /* a message that its receiver fetches, where the system lets it not read it itself */
    for (int i = 1; i < size; i++) {
      MPI_Isend(in, N, MPI_INT, i, 7, MPI_COMM_WORLD, &r);
      MPI_Request_free(&r);
    }
    compute("sent");
  } else {
    MPI_Recv(out, N, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    tell("sent");
  }
  if (waiter) {
    MPI_Send(&(int){5}, 1, MPI_INT, rank, 9, own);
    pthread_join(waits, NULL);
  }
  MPI_Comm_free(&own);
  free(in);
  free(out);
  MPI_Finalize();
  return check_status();
}
