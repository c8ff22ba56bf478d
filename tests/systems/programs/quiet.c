/* quiet send: sends nothing for a second, and leaves. quiet receive: waits for a message all the time, and sleeps meanwhile. */
#define _GNU_SOURCE
#include <mpi.h>
#include <mpisp.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "../../c/check.h"

enum { MOST = 60 }; /* times that it may wake in that second */

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "receive") == 0) {
    struct rusage before, after;
    MPI_Status st;
    int x;
    getrusage(RUSAGE_THREAD, &before);
    double from = MPI_Wtime();
    MPI_Recv(&x, 1, MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    double seconds = MPI_Wtime() - from;
    getrusage(RUSAGE_THREAD, &after);
    long woken = after.ru_nvcsw - before.ru_nvcsw;
    CHECK(st.MPI_SOURCE == MPI_PROC_NULL);
    CHECK(seconds > 0.5);
    printf("woken %ld times in %.1f s\n", woken, seconds);
    CHECK(woken < MOST);
  } else
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  MPI_Finalize();
  return check_failures != 0;
}
