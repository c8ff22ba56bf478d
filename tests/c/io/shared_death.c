// run: n=3 spxrun="--with-ft"
// run: n=3 spxrun="--with-ft" env="SPX_TRANSPORTS=tcp" args="far"
/* Rank 0, which has the shared file pointer, dies while it is in no call of MPI. Where the others share its memory they go on using the
 * pointer; a process that asks it by message, or asks it now, gets an error. MPI-5.0, 15.4.4. */
#include "file.h"
#include <mpi-ext.h>
#include <signal.h>

/* Revoked: another process has met the failure before, and closes the file. */
static void check_end(int class, int far)
{
  CHECK(far ? class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED : class == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
  start(&argc, &argv);
  int far = argc > 1, x = 0, class = MPI_SUCCESS, pid = (int)getpid();
  MPI_Offset at = -1;
  MPI_File f;
  const char *name = test_file("shared-death");
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
  OK(MPI_File_write_shared(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Recv(&x, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (;;) pause();
  }
  if (rank == 1) MPI_Send(&x, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
  if (rank == 2) {
    MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    kill((pid_t)pid, SIGKILL);
  }
  for (int i = 0; i < 3 && class == MPI_SUCCESS;
       i++) /* the first may find rank 0 alive, as its message may be under way */
    MPI_Error_class(MPI_File_write_shared(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE), &class);
  check_end(class, far);
  MPI_Error_class(MPI_File_get_position_shared(f, &at), &class);
  check_end(class, far);
  if (!far) CHECK(at >= (size + 3) * (MPI_Offset)sizeof x);
  CHECK(MPI_File_close(&f) != MPI_SUCCESS);
  if (rank == 1) OK(MPI_File_delete(name, MPI_INFO_NULL));
  MPI_Finalize();
  return check_status();
}
