/* A process of a window dies: operations on it, its lock, and every kind of epoch with it raise MPIX_ERR_PROC_FAILED, and nobody
 * waits for ever. A lock that it held goes to who waits for it. args: where it dies. MPI-5.0, 12; ULFM. */
// run: n=3 args=fence timeout=30
// run: n=3 args=lock timeout=30
// run: n=3 args=pscw timeout=30
// run: n=3 args=mail env=SPX_CMA=0 timeout=30
// run: n=3 args=fence env=SPX_TRANSPORTS=tcp timeout=30
// run: n=3 args=lock env=SPX_TRANSPORTS=tcp timeout=30
// run: n=3 args=pscw env=SPX_TRANSPORTS=tcp timeout=30
#include "../check.h"
#include <mpi-ext.h>
#include <signal.h>
#include <string.h>

static int rank, size;

static int class_of(int err)
{
  int class = MPI_SUCCESS;
  if (err != MPI_SUCCESS) MPI_Error_class(err, &class);
  return class;
}

/* Until the death is known here: an operation on the dead fails then. */
static void until_told(MPI_Win w)
{
  long v = 0;
  int err;
  MPI_Win_lock(MPI_LOCK_SHARED, size - 1, MPI_MODE_NOCHECK, w);
  do {
    err = MPI_Get(&v, 1, MPI_LONG, size - 1, 0, 1, MPI_LONG, w);
    if (err == MPI_SUCCESS) err = MPI_Win_flush(size - 1, w);
  } while (err == MPI_SUCCESS);
  CHECK(class_of(err) == MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Win_unlock(size - 1, w), MPIX_ERR_PROC_FAILED);
}

/* The last rank dies with the lock of rank 0, which the others wait for. */
static void lock(MPI_Win w, MPI_Comm c)
{
  long one = 1;
  if (rank == size - 1) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w);
    MPI_Barrier(c);
    raise(SIGKILL);
  }
  MPI_Barrier(c);
  CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w) == MPI_SUCCESS);
  CHECK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, w) == MPI_SUCCESS);
  CHECK(MPI_Win_unlock(0, w) == MPI_SUCCESS);
  until_told(w);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, w), MPIX_ERR_PROC_FAILED);
}

static void pscw(MPI_Win w)
{
  MPI_Group all;
  if (rank == size - 1) raise(SIGKILL);
  MPI_Win_get_group(w, &all);
  int last = size - 1;
  MPI_Group g;
  MPI_Group_incl(all, 1, &last, &g);
  int err = MPI_Win_post(g, 0, w);
  if (err == MPI_SUCCESS) err = MPI_Win_wait(w);
  CHECK(class_of(err) == MPIX_ERR_PROC_FAILED);
  CHECK_CLASS(MPI_Win_start(g, 0, w), MPIX_ERR_PROC_FAILED);
  MPI_Group_free(&g);
  MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
  MPI_Comm c;
  MPI_Win w;
  long memory[4] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
  MPI_Barrier(c); /* everybody wants to be told */
  if (strcmp(argv[1], "lock") == 0)
    lock(w, c);
  else if (strcmp(argv[1], "pscw") == 0)
    pscw(w);
  else {
    if (rank == size - 1) raise(SIGKILL);
    if (strcmp(argv[1], "mail") == 0)
      until_told(w);
    else
      CHECK_CLASS(MPI_Win_fence(0, w), MPIX_ERR_PROC_FAILED);
  }
  int flag = 1;
  MPIX_Comm_agree(c, &flag); /* the living stay until all have done: their memory is reached without them */
  MPI_Finalize();
  return check_status();
}
