/* Long multicasts to one rank on each of four hosts, which hand them on to each other. Each rank overwrites its memory as soon as it has a message; one of them, another one each time, takes it slowly, and
 * gets what was sent. */
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include "../../c/check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { BYTES = 2000003, ROUNDS = 24 };

static char byte_of(int round, int k) { return (char)(round * 7 + k / 1021); }

/* Looks for the message now and then, between computations. */
static void take_slowly(MPI_Request *r)
{
  for (int there = 0; !there;) {
    for (double began = MPI_Wtime(); MPI_Wtime() - began < 0.0003;) {}
    MUST(MPI_Test(r, &there, MPI_STATUS_IGNORE));
  }
}

int main(int argc, char **argv)
{
  int me, size;
  char *b = malloc(BYTES);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPIX_Rankset others;
  int range[1][3] = {{1, size - 1, 1}};
  MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &others));
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Request r = MPI_REQUEST_NULL;
    int posted = round % 2; /* before the message can come */
    if (me > 0 && posted) MUST(MPI_Irecv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &r));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    if (me == 0) {
      for (int k = 0; k < BYTES; k++) b[k] = byte_of(round, k);
      MUST(MPIX_Mcast(b, BYTES, MPI_BYTE, others, 1, MPI_COMM_WORLD));
      memset(b, 0xff, BYTES);
      continue;
    }
    if (!posted) MUST(MPI_Irecv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &r));
    if (me == 1 + round % (size - 1))
      take_slowly(&r);
    else
      MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
    for (int k = 0; k < BYTES; k++) CHECK(b[k] == byte_of(round, k));
    memset(b, 0xff, BYTES);
  }
  MUST(MPIX_Rankset_free(&others));
  free(b);
  MPI_Finalize();
  return 0;
}
