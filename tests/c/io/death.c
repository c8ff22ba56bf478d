// run: n=3 spxrun="--with-ft"
/* A process dies between two collective writes: the others get an error from the next one, none waits for ever, and they can close
 * the file and remove it. MPI-5.0, 15.7. */
#include "file.h"
#include <mpi-ext.h>
#include <signal.h>

int main(int argc, char **argv)
{
  start(&argc, &argv);
  int x[100] = {0}, class = 0;
  const char *name = test_file("death");
  MPI_Datatype mine;
  MPI_File f;
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
  MPI_Type_create_resized(MPI_INT, 0, size * (MPI_Aint)sizeof(int), &mine);
  MPI_Type_commit(&mine);
  OK(MPI_File_set_view(f, rank * (MPI_Offset)sizeof(int), MPI_INT, mine, "native", MPI_INFO_NULL));
  OK(MPI_File_write_all(f, x, 100, MPI_INT, MPI_STATUS_IGNORE));
  /* What rank 1 has written must have reached the others first, or its last message may die with it and fail the write above. */
  if (rank == 1) {
    for (int i = 1; i < size; i++) MPI_Recv(&class, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    raise(SIGKILL);
  }
  MPI_Send(&class, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  MPI_Error_class(MPI_File_write_all(f, x, 100, MPI_INT, MPI_STATUS_IGNORE), &class);
  CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
  CHECK(MPI_File_close(&f) != MPI_SUCCESS);
  CHECK(f == MPI_FILE_NULL);
  if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
  MPI_Finalize();
  return check_status();
}
