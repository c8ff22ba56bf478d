// run: n=3 spxrun="--with-ft"
// run: n=3 spxrun="--with-ft" env="SPX_TRANSPORTS=tcp"
/* Rank 0, which has the shared file pointer, dies while it is in no call of MPI. Processes that share its memory go on using the pointer; one
 * that asks it by message, or asks it now, gets an error. MPI-5.0, 15.4.4. */
#include "file.h"
#include <mpi-ext.h>
#include <signal.h>
#include <time.h>

/* Does this process reach rank 0 by messages alone? */
static int is_far(void)
{
  MPI_Comm near;
  int first = rank;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  MPI_Bcast(&first, 1, MPI_INT, 0, near);
  MPI_Comm_free(&near);
  return first != 0;
}

/* Revoked: another process has met the failure before, and closes the file. */
static void check_end(int class, int far)
{
  CHECK(far ? class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED : class == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
  start(&argc, &argv);
  int far = is_far(), x = 0, class = MPI_SUCCESS;
  MPI_Offset at = -1;
  MPI_File f;
  const char *name = test_file("shared-death");
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
  OK(MPI_File_write_shared(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    /* Messages that rank 0 has written must have reached the others; then they ask in vain for a while. */
    for (int i = 1; i < size; i++) MPI_Recv(&x, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    raise(SIGKILL);
  }
  MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  /* Rank 0 answers while it is in MPI_Recv, which waits for the slowest of the others. */
  for (int i = 0; (far || i < 3) && class == MPI_SUCCESS; i++)
    MPI_Error_class(MPI_File_write_shared(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE), &class);
  check_end(class, far);
  MPI_Error_class(MPI_File_get_position_shared(f, &at), &class);
  check_end(class, far);
  if (!far) CHECK(at >= size + 3);
  CHECK(MPI_File_close(&f) != MPI_SUCCESS);
  if (rank == 1) OK(MPI_File_delete(name, MPI_INFO_NULL));
  MPI_Finalize();
  return check_status();
}
