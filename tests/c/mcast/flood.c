/* A member that does not receive: the master may send on until the credit for it is used up, then the multicasts are announced and wait, and the
 * memory of nobody grows; the others receive all that was sent with its data. In the end the member receives everything, in order. */
// run: n=5 env=SPX_CREDIT=64K timeout=40
// run: n=4 env=SPX_CREDIT=64K env=SPX_TRANSPORTS=tcp timeout=40
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { TOTAL = 3000, BYTES = 4000, MOST_KIB = 12 * 1024 };

static int me, size;

static long resident_kib(void)
{
  long pages = 0, ignored;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &ignored, &pages) != 2) abort();
  fclose(f);
  return pages * 4;
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *b = malloc(BYTES), range[1][3] = {{1, size - 1, 1}}, at_once = 0, flag;
  long before = resident_kib();
  if (me == 0) {
    MPIX_Rankset set;
    MPI_Request *r = malloc(TOTAL * sizeof *r);
    char *all = malloc((size_t)TOTAL * BYTES);
    memset(all, 1, (size_t)TOTAL * BYTES);
    before = resident_kib();
    MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
    for (int i = 0; i < TOTAL; i++) {
      memcpy(all + (size_t)i * BYTES, &i, sizeof i);
      MUST(MPIX_Imcast(all + (size_t)i * BYTES, BYTES, MPI_BYTE, set, 1, MPI_COMM_WORLD, &r[i]));
      MUST(MPI_Test(&r[i], &flag, MPI_STATUS_IGNORE));
      at_once += flag;
    }
    CHECK(at_once >= 10 && at_once < 64); /* what 64 KiB hold: nobody receives yet */
    for (int k = 1; k < size; k++) MUST(MPI_Send(&at_once, 1, MPI_INT, k, 2, MPI_COMM_WORLD));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Waitall(TOTAL, r, MPI_STATUSES_IGNORE));
    MUST(MPIX_Rankset_free(&set));
    free(all);
    free(r);
  } else {
    MUST(MPI_Recv(&at_once, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    int now = me == 1 ? 0 : at_once, next = 0;
    for (; next < now; next++) {
      MUST(MPI_Recv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(b[0] == next);
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    for (; next < TOTAL; next++) {
      MUST(MPI_Recv(b, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(b[0] == next);
    }
  }
  long grown = resident_kib() - before;
  if (grown > MOST_KIB) fprintf(stderr, "rank %d grew by %ld KiB\n", me, grown);
  CHECK(grown <= MOST_KIB);
  free(b);
  MPI_Finalize();
  return check_status();
}
