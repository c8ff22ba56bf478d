/* A process dies while communicators are created: the others come back with an error of class MPIX_ERR_PROC_FAILED or, when one
 * of them has revoked the communicator, MPIX_ERR_REVOKED. Nobody waits for ever. The moment of the death is the argument, in us. */
// run: n=5 args=2000 timeout=30
// run: n=5 args=7000 timeout=30
// run: n=8 args=20000 timeout=30
#include "../check.h"
#include <mpi-ext.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static int rank, size;

static void die(int sig)
{
  (void)sig;
  raise(SIGKILL);
}

static void arm(const char *us)
{
  struct itimerval once = {{0, 0}, {0, atoi(us)}};
  signal(SIGALRM, die);
  setitimer(ITIMER_REAL, &once, NULL);
}

/* Creates communicators until one cannot be created; returns the error. */
static int until_death(MPI_Comm base)
{
  MPI_Group all;
  MPI_Comm_group(base, &all);
  for (int k = 0;; k++) {
    MPI_Comm c = MPI_COMM_NULL;
    MPI_Request q;
    int err;
    switch (k % 4) {
    case 0: err = MPI_Comm_dup(base, &c); break;
    case 1: err = MPI_Comm_split(base, rank % 2, 0, &c); break;
    case 2: err = MPI_Comm_create(base, all, &c); break;
    default:
      err = MPI_Comm_idup(base, &c, &q);
      if (!err) err = MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    if (err) return err;
    MPI_Comm_free(&c);
  }
}

int main(int argc, char **argv)
{
  MPI_Comm base;
  int err, class;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &base);
  MPI_Comm_set_errhandler(base, MPI_ERRORS_RETURN);
  MPI_Barrier(base); /* everybody wants to be told */
  if (rank == size / 2) arm(argv[1]);
  err = until_death(base);
  MPI_Error_class(err, &class);
  CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
  MPIX_Comm_revoke(base);
  MPI_Finalize();
  return check_status();
}
