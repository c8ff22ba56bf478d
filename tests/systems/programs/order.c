/* order send N: sends N numbered messages out of its cluster, under several tags, one every millisecond, and commits now and then.
 * order receive N: takes what comes: under each tag, all numbers of each sender, in order, none twice.
 * Both say who has which rank, as the radar does (examples/radar/radar.h). */
#define _GNU_SOURCE
#include <mpi.h>
#include <mpisp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../../c/check.h"

enum { TAGS = 5, SENDERS = 8, BATCH = 16, LONG = 3000 };
static struct {
  int n, last[SENDERS][TAGS];
} s;

static void here(const char *what, int rank)
{
  struct timespec t;
  int again;
  MPISP_Is_replacement(&again);
  clock_gettime(CLOCK_MONOTONIC, &t);
  printf("here %s %d %ld %d %lld\n", what, rank, (long)getpid(), again, (long long)t.tv_sec * 1000000000 + t.tv_nsec);
  fflush(stdout);
}

static void give(int n)
{
  static int data[LONG];
  for (; s.n < n; s.n++) {
    data[0] = s.n;
    MPI_Send(data, s.n % 3 ? 1 : LONG, MPI_INT, MPISP_CLUSTER_OUT, s.n % TAGS, MPI_COMM_WORLD);
    usleep(1000);
    if (s.n % BATCH != 0) continue;
    s.n++;
    MPISP_Commit();
    s.n--;
  }
}

static void take(int n)
{
  static int data[LONG];
  for (;;) {
    MPI_Status st;
    int from;
    MPI_Recv(data, LONG, MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    if (st.MPI_SOURCE == MPI_PROC_NULL) break;
    MPISP_Status_get_rank(&st, &from);
    int *last = &s.last[from][st.MPI_TAG];
    if (data[0] != *last) printf("of rank %d, tag %d: %d instead of %d\n", from, st.MPI_TAG, data[0], *last);
    CHECK(data[0] == *last);
    *last += TAGS;
    if (++s.n % BATCH == 0) MPISP_Commit();
  }
  int whole = 0;
  for (int i = 0; i < SENDERS; i++) whole += s.last[i][0] >= n;
  printf("%d messages, all of %d senders\n", s.n, whole);
}

int main(int argc, char **argv)
{
  int rank;
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < SENDERS; i++)
    for (int k = 0; k < TAGS; k++) s.last[i][k] = k;
  MPISP_Register(&s, sizeof s, MPI_BYTE);
  MPISP_Commit();
  here(argv[1], rank);
  if (strcmp(argv[1], "send") == 0)
    give(atoi(argv[2]));
  else
    take(atoi(argv[2]));
  MPI_Finalize();
  return check_failures != 0;
}
