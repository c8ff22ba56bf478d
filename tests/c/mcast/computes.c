/* Members that compute, and call nothing of MPI, do not hold up the others: with SPX_PROGRESS=1 a thread of the library hands the messages on. They
 * compute until all others have received, which they see in shared memory. */
// run: n=8 env=SPX_PROGRESS=1 timeout=60
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { ROUNDS = 20 };
static const int sizes[] = {8, 5000, 200000};

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void compute_until(const int *received, int enough)
{
  for (double end = now() + 40; now() < end;)
    if (__atomic_load_n(received, __ATOMIC_ACQUIRE) >= enough) return;
  CHECK(!"the others have received");
}

int main(int argc, char **argv)
{
  int me, size, unit, *received, range[1][3] = {{1, 0, 1}};
  MPI_Aint bytes;
  MPI_Win win;
  MPIX_Rankset set;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char *b = malloc((size_t)sizes[2]);
  memset(b, 1, (size_t)sizes[2]);
  MUST(MPI_Win_allocate_shared(me == 0 ? sizeof *received : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &received, &win));
  MUST(MPI_Win_shared_query(win, 0, &bytes, &unit, &received));
  if (me == 0) *received = 0;
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  range[0][1] = size - 1;
  MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
  int computes = me == 1 || me % 2 == 0; /* the first member, who looks after all others, and half of the rest */
  int enough = size / 2 - 1;             /* the odd ones from 3 on */
  for (int i = 0; i < ROUNDS; i++) {
    int n = sizes[i % 3];
    if (me == 0) {
      MUST(MPIX_Mcast(b, n, MPI_BYTE, set, 1, MPI_COMM_WORLD));
      continue;
    }
    if (computes) compute_until(received, enough * (i + 1));
    MUST(MPI_Recv(b, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (!computes) __atomic_fetch_add(received, 1, __ATOMIC_ACQ_REL);
  }
  MUST(MPI_Barrier(MPI_COMM_WORLD));
  MUST(MPIX_Rankset_free(&set));
  MUST(MPI_Win_free(&win));
  free(b);
  MPI_Finalize();
  return check_status();
}
