/* near.h - whether processes share memory: those of a host do, unless they talk by TCP alone (SPX_TRANSPORTS=tcp). */
#ifndef NEAR_H
#define NEAR_H
#include <mpi.h>

static inline int are_near(MPI_Comm comm)
{
  MPI_Comm near;
  int n, size;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  MPI_Comm_size(near, &n);
  MPI_Comm_size(comm, &size);
  MPI_Comm_free(&near);
  return n == size;
}
#endif
