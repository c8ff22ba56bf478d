// run: n=3 spxrun="--with-ft"
// Receives from any source when a possible sender has died (ULFM 1.0): blocking ones raise MPIX_ERR_PROC_FAILED, pending ones
// MPIX_ERR_PROC_FAILED_PENDING and stay; after the failure has been acknowledged they work again. A receive from the dead fails;
// what it has sent before is received.
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>

static int rank;

static void expect(int ok, const char *what, int value)
{
  if (ok) return;
  fprintf(stderr, "rank %d: %s: %d\n", rank, what, value);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int class_of(int rc)
{
  int class = 0;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
  return class;
}

int main(int argc, char **argv)
{
  int value = 0, class;
  MPI_Status st;
  MPI_Request any;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 2) {
    value = 42;
    MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    MPI_Ssend(&value, 1, MPI_INT, 0, 9,
              MPI_COMM_WORLD); /* to another host, the first one would be here until the connection is made */
    raise(SIGKILL);
  }
  if (rank == 1) { /* sends when rank 0 has seen all that it wants to see */
    MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
  }
  MPI_Recv(&value, 1, MPI_INT, 2, 9, MPI_COMM_WORLD, &st);
  value = 0;
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &any);
  class = class_of(MPI_Wait(&any, &st));
  expect(class == MPIX_ERR_PROC_FAILED_PENDING, "class of a pending receive", class);
  expect(any != MPI_REQUEST_NULL, "the pending receive is gone", 0);
  class = class_of(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &st));
  expect(class == MPIX_ERR_PROC_FAILED, "class of a blocking receive", class);
  class = class_of(MPI_Recv(&value, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, &st));
  expect(class == MPI_SUCCESS && value == 42, "what was sent before the death", class);
  class = class_of(MPI_Recv(&value, 1, MPI_INT, 2, 8, MPI_COMM_WORLD, &st));
  expect(class == MPIX_ERR_PROC_FAILED, "class of a receive from the dead", class);
  class = class_of(MPI_Ssend(&value, 1, MPI_INT, 2, 8, MPI_COMM_WORLD));
  expect(class == MPIX_ERR_PROC_FAILED, "class of a send to the dead", class);
  MPIX_Comm_failure_ack(MPI_COMM_WORLD);
  value = 5;
  MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
  class = class_of(MPI_Wait(&any, &st));
  expect(class == MPI_SUCCESS && value == 5 && st.MPI_SOURCE == 1, "the receive after the acknowledgement", class);
  MPI_Finalize();
  return 0;
}
