/* Links with the library and calls a function that may be called before MPI_Init. */
#include <mpi.h>

int main(void)
{
  int version, subversion;
  MPI_Get_version(&version, &subversion);
  return version != MPI_VERSION || subversion != MPI_SUBVERSION || MPI_Wtime() < 0;
}
