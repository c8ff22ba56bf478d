/* Long multicasts to a member that does not receive: they take a bounded part of its host's memory, then they wait at the master; the others, also those of hosts
 * that come after its own, receive all of them. In the end the member receives everything, in order. */
// run: n=8 env=SPX_MCAST_STAGING=8M timeout=60
// run: n=8 env=SPX_MCAST_SHELF=8M stderr~"libspx: SPX_MCAST_SHELF is now called SPX_MCAST_STAGING" timeout=60
// run: n=5 env=SPX_MCAST_STAGING=2M env=SPX_MCAST_CHAIN=20K timeout=60
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { TOTAL = 150, BYTES = 400000, MOST_KIB = 24 * 1024, LAZY = 1 };

static int me, size;

static long resident_kib(void)
{
  long pages = 0, ignored;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &ignored, &pages) != 2) abort();
  fclose(f);
  return pages * 4;
}

static void receive(int *b)
{
  for (int i = 0; i < TOTAL; i++) {
    MUST(MPI_Recv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(b[0] == i && b[BYTES / (int)sizeof *b - 1] == i + 1);
  }
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  char *all = calloc(me == 0 ? TOTAL : 1, BYTES), done = 0;
  int range[1][3] = {{1, size - 1, 1}}, flag = 0;
  memset(all, 1, BYTES);
  long before = resident_kib();
  if (me == 0) {
    MPIX_Rankset set;
    MPI_Request r[TOTAL];
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
    for (int i = 0; i < TOTAL; i++) {
      int *b = (int *)(all + (size_t)i * BYTES);
      b[0] = i;
      b[BYTES / (int)sizeof *b - 1] = i + 1;
      MUST(MPIX_Imcast(b, BYTES, MPI_BYTE, set, 1, MPI_COMM_WORLD, &r[i]));
    }
    for (int k = 1; k < size; k++)
      if (k != LAZY) MUST(MPI_Recv(&done, 1, MPI_BYTE, k, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MUST(MPI_Testall(TOTAL, r, &flag, MPI_STATUSES_IGNORE));
    CHECK(!flag); /* somebody has not received */
    MUST(MPI_Send(&done, 1, MPI_BYTE, LAZY, 3, MPI_COMM_WORLD));
    MUST(MPI_Waitall(TOTAL, r, MPI_STATUSES_IGNORE));
    MUST(MPIX_Rankset_free(&set));
  } else {
    if (me == LAZY) {
      MUST(MPI_Recv(&done, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      long grown = resident_kib() - before;
      if (grown > MOST_KIB) fprintf(stderr, "%ld KiB more\n", grown);
      CHECK(grown < MOST_KIB);
    }
    receive((int *)all);
    if (me != LAZY) MUST(MPI_Send(&done, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD));
  }
  free(all);
  MPI_Finalize();
  return check_status();
}
