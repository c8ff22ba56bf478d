/* A tool that counts calls of MPI_Send. */
#include <mpi.h>

static int seen;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
  seen++;
  return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int sends_seen(void) { return seen; }
