/* A file is written for which there is no room; its name is the argument. As errors of files are returned, the program asks what went wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N (1 << 20)

int main(int argc, char **argv)
{
  int rank, n, err;
  char text[MPI_MAX_ERROR_STRING];
  char *data = calloc(4, N);
  MPI_File f;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  err = MPI_File_open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "/dev/full", MPI_MODE_WRONLY | MPI_MODE_CREATE,
                      MPI_INFO_NULL, &f);
  if (!err) err = MPI_File_write_at(f, (MPI_Offset)rank * 4 * N, data, N, MPI_INT, MPI_STATUS_IGNORE);
  if (err) {
    MPI_Error_string(err, text, &n);
    fprintf(stderr, "rank %d: %s\n", rank, text);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_File_close(&f);
  MPI_Finalize();
  free(data);
  return 0;
}
