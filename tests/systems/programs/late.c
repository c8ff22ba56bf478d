/* late AWAITS BEFORE AFTER: waits until the file AWAITS is there, makes the file BEFORE, calls MPI_Init, and makes the file AFTER; - is no file. Tells when it
 * has called MPI_Init, and when it has returned, in ns. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void make(const char *file)
{
  if (strcmp(file, "-") != 0 && open(file, O_CREAT | O_WRONLY, 0666) < 0) perror(file);
}

int main(int argc, char **argv)
{
  if (argc < 4) return 2;
  while (strcmp(argv[1], "-") != 0 && access(argv[1], F_OK) != 0) usleep(2000);
  make(argv[2]);
  long long from = now();
  MPI_Init(&argc, &argv);
  long long to = now();
  make(argv[3]);
  printf("%s %lld %lld\n", getenv("SPX_CLUSTER"), from, to);
  MPI_Finalize();
  return 0;
}
