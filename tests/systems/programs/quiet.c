/* quiet send FILE: sends nothing for a second from when the file is there, and leaves. quiet receive FILE: makes the file, waits for a message all the time, and sleeps meanwhile. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <mpisp.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "../../c/check.h"

enum { MOST = 60 }; /* times that it may wake in a second */

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  if (strcmp(argv[1], "receive") == 0) {
    struct rusage before, after;
    MPI_Status st;
    int x;
    getrusage(RUSAGE_THREAD, &before);
    double from = MPI_Wtime();
    CHECK(open(argv[2], O_CREAT | O_WRONLY | O_CLOEXEC, 0666) >= 0);
    MPI_Recv(&x, 1, MPI_INT, MPISP_CLUSTER_IN, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    double seconds = MPI_Wtime() - from;
    getrusage(RUSAGE_THREAD, &after);
    long woken = after.ru_nvcsw - before.ru_nvcsw;
    CHECK(st.MPI_SOURCE == MPI_PROC_NULL);
    CHECK(seconds > 0.5);
    printf("woken %ld times in %.1f s\n", woken, seconds);
    CHECK((double)woken < MOST * (seconds + 1)); /* the sender may not have the processor at once */
  } else {
    while (access(argv[2], F_OK) != 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  }
  MPI_Finalize();
  return check_failures != 0;
}
