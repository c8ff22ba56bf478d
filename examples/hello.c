/* hello.c - every rank says where it is.
 *
 *   mpicc hello.c -o hello && spxrun -n 4 ./hello
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  int rank, size, length;
  char host[MPI_MAX_PROCESSOR_NAME], version[MPI_MAX_LIBRARY_VERSION_STRING];

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(host, &length);
  printf("hello from rank %d of %d on %s\n", rank, size, host);
  if (rank == 0) {
    MPI_Get_library_version(version, &length);
    printf("%s\n", version);
  }
  MPI_Finalize();
  return 0;
}
