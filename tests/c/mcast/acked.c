/* Long multicasts that are complete when all members receive them: one member after the other does, also those of other hosts, and until the last one has
 * begun they are not; the others have the data meanwhile. */
// run: n=2,5,8 timeout=40
// run: n=6 env=SPX_MCAST_STAGING=0 timeout=40
// run: n=7 env=SPX_TRANSPORTS=tcp timeout=40
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { BYTES = 1200000, GO = 2, HAVE = 3 };

static int me, size;

/* As the master: rank last receives when all others have. */
static void round_of(int last, char *b, MPIX_Rankset set, int flags)
{
  MPI_Request r;
  int flag;
  char x = 0;
  memset(b, last, BYTES);
  MUST(MPIX_Rankset_set_flags(set, flags));
  if (flags)
    MUST(MPIX_Imcast(b, BYTES, MPI_BYTE, set, 1, MPI_COMM_WORLD, &r));
  else
    MUST(MPIX_Ismcast(b, BYTES, MPI_BYTE, set, 1, MPI_COMM_WORLD, &r));
  for (int k = 1; k < size; k++) {
    int to = 1 + (last - 1 + k) % (size - 1); /* last comes last */
    MUST(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    MUST(MPI_Send(&x, 1, MPI_BYTE, to, GO, MPI_COMM_WORLD));
    if (to != last) MUST(MPI_Recv(&x, 1, MPI_BYTE, to, HAVE, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
  MUST(MPI_Recv(&x, 1, MPI_BYTE, last, HAVE, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void receive(int last, char *b)
{
  char x;
  MUST(MPI_Recv(&x, 1, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  memset(b, 0, BYTES);
  MUST(MPI_Recv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (int k = 0; k < BYTES; k += 4093) CHECK(b[k] == (char)last);
  MUST(MPI_Send(&x, 1, MPI_BYTE, 0, HAVE, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
  int range[1][3] = {{1, 0, 1}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  char *b = malloc(BYTES);
  MPIX_Rankset set;
  range[0][1] = size - 1;
  MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
  for (int last = 1; last < size; last++)
    for (int flags = 0; flags < 2; flags++)
      if (me == 0)
        round_of(last, b, set, flags ? MPIX_MCAST_ACKED : 0);
      else
        receive(last, b);
  MUST(MPIX_Rankset_free(&set));
  free(b);
  MPI_Finalize();
  return check_status();
}
