/* The receiver has a message and says so past MPI, while its sender calls nothing of MPI: the buffer of a send that was freed (MPI_Request_free) may be
 * unmapped then, whatever the receiver had asked for before. MPI-5.0, 3.7.3. */
// run: n=2 timeout=40
// run: n=2 env=SPX_STREAM_MAX=8M timeout=40
#define _GNU_SOURCE
#include "../check.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* Where no process may read another, the sender has to be in MPI for its message to arrive. */
static int may_read(int rank)
{
  struct {
    long pid;
    void *at;
  } there = {getpid(), &rank};
  int here = -1, can = 0;
  MPI_Bcast(&there, sizeof there, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    struct iovec to = {&here, sizeof here}, from = {there.at, sizeof here};
    can = process_vm_readv((pid_t)there.pid, &to, 1, &from, 1, 0) == sizeof here && here == 0;
  }
  MPI_Bcast(&can, 1, MPI_INT, 1, MPI_COMM_WORLD);
  return can;
}

static void unmapped_when_received(size_t bytes, int rank)
{
  char mark[64];
  snprintf(mark, sizeof mark, "got.%zu", bytes);
  char *buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(buf != MAP_FAILED);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Request r;
    memset(buf, 7, bytes);
    MPI_Isend(buf, (int)bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &r);
    MPI_Request_free(&r);
    while (access(mark, F_OK) != 0) usleep(100);
    munmap(buf, bytes);
    MPI_Barrier(MPI_COMM_WORLD); /* here it finds what the receiver had asked for */
    unlink(mark);
  } else {
    MPI_Recv(buf, (int)bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < bytes; i++)
      if (buf[i] != 7) {
        CHECK(buf[i] == 7);
        break;
      }
    FILE *f = fopen(mark, "w");
    CHECK(f != NULL);
    if (f) fclose(f);
    MPI_Barrier(MPI_COMM_WORLD);
    munmap(buf, bytes);
  }
}

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  alarm(35);
  int readable = may_read(rank);
  if (!readable && rank == 0) puts("processes may not read each other here");
  for (int round = 0; readable && round < 20; round++)
    for (size_t bytes = 8192; bytes <= 4u << 20; bytes *= 4) unmapped_when_received(bytes, rank);
  MPI_Finalize();
  return check_status();
}
