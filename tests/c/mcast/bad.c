/* What is asked for wrongly, or does not fit: empty sets, the master in its own set, ranks that are none, sets of another communicator, types that
 * do not match at a member, flags that there are not; which members have failed. Whatever was wrong, the next multicast works. */
// run: n=1,3 timeout=40
// run: n=3 env=SPX_TRANSPORTS=tcp timeout=40
// run: n=4 spxrun="--with-ft" args="kill" timeout=40
#include <mpi-ext.h>
#include <signal.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { LONG = 100000 };

static int me, size;
static char buf[LONG];

static MPIX_Rankset everybody(MPI_Comm c)
{
  int range[1][3] = {{0, size - 1, 1}};
  MPIX_Rankset all;
  MUST(MPIX_Rankset_range_incl(c, 1, range, &all));
  return all;
}

/* It still works. */
static void once(MPIX_Rankset all, int bytes)
{
  MPI_Request r = MPI_REQUEST_NULL;
  memset(buf, me == 0 ? 7 : 0, sizeof buf);
  if (me == 0) MUST(MPIX_Imcast(buf, bytes, MPI_BYTE, all, 1, MPI_COMM_WORLD, &r));
  static char in[LONG];
  MUST(MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(in[0] == 7 && in[bytes - 1] == 7);
  MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

static void no_members(MPIX_Rankset all)
{
  MPIX_Rankset none;
  MPI_Request r;
  int n = -1;
  MUST(MPIX_Rankset_incl(MPI_COMM_WORLD, 0, NULL, &none));
  for (int flags = 0; flags < 4; flags++) {
    MUST(MPIX_Rankset_set_flags(none, (flags & 1 ? MPIX_MCAST_ORDERED : 0) | (flags & 2 ? MPIX_MCAST_ACKED : 0)));
    MUST(MPIX_Mcast(buf, LONG, MPI_BYTE, none, 1, MPI_COMM_WORLD));
    MUST(MPIX_Smcast(buf, 1, MPI_BYTE, none, 1, MPI_COMM_WORLD));
    MUST(MPIX_Imcast(buf, LONG, MPI_BYTE, none, 1, MPI_COMM_WORLD, &r));
    MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MUST(MPIX_Mcast_init(buf, 1, MPI_BYTE, none, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    MUST(MPI_Start(&r));
    MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MUST(MPI_Request_free(&r));
  }
  MPIX_Rankset failed;
  MUST(MPIX_Rankset_get_failed(all, &failed));
  MUST(MPIX_Rankset_size(failed, &n));
  CHECK(n == 0);
  MUST(MPIX_Rankset_free(&failed));
  MUST(MPIX_Rankset_free(&none));
}

static void wrong_arguments(MPIX_Rankset all)
{
  int ranks[] = {0, size, -1, 0};
  unsigned char bits[2] = {0, 0};
  MPI_Comm dup;
  MPIX_Rankset s = MPIX_RANKSET_NULL;
  MPI_Request r;
  MUST(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  MPIX_Rankset other = everybody(dup);
  CHECK_CLASS(MPIX_Rankset_incl(MPI_COMM_WORLD, 2, ranks, &s), MPI_ERR_RANK);
  CHECK_CLASS(MPIX_Rankset_incl(MPI_COMM_WORLD, 1, ranks + 2, &s), MPI_ERR_RANK);
  ranks[1] = 0;
  CHECK_CLASS(MPIX_Rankset_incl(MPI_COMM_WORLD, 2, ranks, &s), MPI_ERR_RANK); /* twice */
  bits[size / 8] = (unsigned char)(1 << size % 8);
  CHECK_CLASS(MPIX_Rankset_from_bitmap(MPI_COMM_WORLD, bits, &s), size % 8 ? MPI_ERR_RANK : MPI_SUCCESS);
  CHECK_CLASS(MPIX_Mcast(buf, 1, MPI_BYTE, other, 1, MPI_COMM_WORLD), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Mcast(buf, 1, MPI_BYTE, all, 1, dup), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Mcast_init(buf, 1, MPI_BYTE, all, 1, dup, MPI_INFO_NULL, &r), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Mbarrier(other, 1, MPI_COMM_WORLD), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Rankset_union(all, other, &s), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Mcast(buf, 1, MPI_BYTE, MPIX_RANKSET_NULL, 1, MPI_COMM_WORLD), MPI_ERR_ARG);
  CHECK_CLASS(MPIX_Mcast(buf, -1, MPI_BYTE, all, 1, MPI_COMM_WORLD), MPI_ERR_COUNT);
  CHECK_CLASS(MPIX_Mcast(buf, 1, MPI_BYTE, all, -1, MPI_COMM_WORLD), MPI_ERR_TAG);
  CHECK_CLASS(MPIX_Mcast(buf, 1, MPI_DATATYPE_NULL, all, 1, MPI_COMM_WORLD), MPI_ERR_TYPE);
  CHECK_CLASS(MPIX_Rankset_set_flags(all, 1), MPI_ERR_ASSERT);
  CHECK_CLASS(MPIX_Rankset_set_flags(all, -1), MPI_ERR_ASSERT);
  CHECK_CLASS(MPIX_Rankset_set_flags(MPIX_RANKSET_NULL, 0), MPI_ERR_ARG);
  MUST(MPIX_Rankset_free(&other));
  MUST(MPI_Comm_free(&dup));
}

/* The last rank receives less, or as another type, than was sent: it is its error, and nobody else's. */
static void mismatch(MPIX_Rankset all, int bytes, int flags)
{
  static char in[LONG];
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Status st;
  int n;
  MUST(MPIX_Rankset_set_flags(all, flags));
  memset(buf, 9, sizeof buf);
  if (me == 0) MUST(MPIX_Imcast(buf, bytes, MPI_BYTE, all, 2, MPI_COMM_WORLD, &r));
  if (me == size - 1)
    CHECK_CLASS(MPI_Recv(in, bytes / 2, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  else {
    MUST(MPI_Recv(in, bytes / 4, MPI_INT, 0, 2, MPI_COMM_WORLD, &st));
    MPI_Get_count(&st, MPI_INT, &n);
    CHECK(n == bytes / 4 && in[bytes - 1] == 9);
    MPI_Get_count(&st, MPI_LONG_DOUBLE, &n); /* another type: as many as fit, or none that is whole */
    CHECK(bytes % (int)sizeof(long double) ? n == MPI_UNDEFINED : n == bytes / (int)sizeof(long double));
  }
  MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
  MUST(MPIX_Rankset_set_flags(all, 0));
}

/* The last rank ends itself; the master asks who it was. */
static void death(MPIX_Rankset all)
{
  if (me == size - 1) raise(SIGKILL);
  if (me > 0) {
    MUST(MPI_Recv(buf, LONG, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return;
  }
  int rank = -1, n = 0, range[1][3] = {{1, size - 1, 1}};
  MPIX_Rankset others, failed;
  MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &others));
  MUST(MPIX_Rankset_set_flags(others, MPIX_MCAST_ACKED | MPIX_MCAST_ORDERED));
  CHECK_CLASS(MPIX_Mcast(buf, LONG, MPI_BYTE, others, 3, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
  MUST(MPIX_Rankset_get_failed(all, &failed));
  MUST(MPIX_Rankset_size(failed, &n));
  MUST(MPIX_Rankset_ranks(failed, 1, &rank));
  CHECK(n == 1 && rank == size - 1);
  MUST(MPIX_Rankset_free(&failed));
  MUST(MPIX_Rankset_free(&others));
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPIX_Rankset all = everybody(MPI_COMM_WORLD);
  no_members(all);
  once(all, 100);
  wrong_arguments(all);
  once(all, LONG); /* the master is in its set: it receives, too */
  static const int flags[] = {0, MPIX_MCAST_ORDERED, MPIX_MCAST_ACKED, MPIX_MCAST_ORDERED | MPIX_MCAST_ACKED};
  for (int k = 0; k < 4; k++) {
    mismatch(all, 1000, flags[k]);
    mismatch(all, LONG, flags[k]);
  }
  once(all, 100);
  if (argc > 1) death(all);
  MUST(MPIX_Rankset_free(&all));
  MPI_Finalize();
  return check_status();
}
