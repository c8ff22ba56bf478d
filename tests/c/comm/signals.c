/* The application's signals arrive while communicators are created, on the application's stack: a handler that was installed
 * without SA_ONSTACK and needs 64 KiB of it. */
// run: n=1,4 timeout=40
#define _GNU_SOURCE
#include "../check.h"
#include <signal.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t hits;
static volatile char sink;

static void handler(int sig)
{
  volatile char big[65536];
  memset((char *)big, sig, sizeof big);
  sink = big[777];
  hits++;
}

int main(int argc, char **argv)
{
  struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
  struct itimerval every = {{0, 500}, {0, 500}};
  int rank, rounds = 0, enough, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  sigaction(SIGALRM, &a, NULL);
  setitimer(ITIMER_REAL, &every, NULL);
  while (!all) { /* until everybody has taken 500 signals */
    MPI_Comm c, d;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_split(c, rank % 2, 0, &d);
    MPI_Comm_free(&d);
    enough = hits >= 500;
    MPI_Allreduce(&enough, &all, 1, MPI_INT, MPI_LAND, c);
    MPI_Comm_free(&c);
    rounds++;
  }
  CHECK(rounds > 0 && hits >= 500);
  MPI_Finalize();
  return check_status();
}
