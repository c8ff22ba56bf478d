/* Long multicasts: the master may change its buffer at once and go on, also when nobody has received yet; members receive later, in order,
 * each for itself, into other datatypes, too little room, or after a probe; what no member has room for waits at the master. A master that
 * has left MPI still gives. */
// run: n=5 timeout=40
// run: n=5 env=SPX_MCAST_STAGING=0 timeout=40
// run: n=5 env=SPX_MCAST_EACH=0 timeout=40
// run: n=5 env=SPX_MCAST_STAGING=1M timeout=40
// run: n=3 env=SPX_CMA=0 timeout=40
// run: n=4 env=SPX_TRANSPORTS=tcp timeout=40
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MUST(call) CHECK_CLASS(call, MPI_SUCCESS)
enum { MOST = 8 << 20, ROUNDS = 3 };

static const int sizes[] = {20000, 65536, 131072, 131073, 300000, 1 << 20, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int me, size;
static char *buf;

static char byte_of(int round, int k, int at) { return (char)(at / 3 + 5 * k + round); }

static void verify(const char *b, int n, int round, int k)
{
  for (int i = 0; i < n; i++)
    if (b[i] != byte_of(round, k, i)) {
      CHECK(!"data");
      return;
    }
}

static void send_all(MPIX_Rankset set)
{
  MPI_Request r[ROUNDS * SIZES];
  char *own[ROUNDS * SIZES];
  int n = 0;
  for (int round = 0; round < ROUNDS; round++)
    for (int k = 0; k < SIZES; k++, n++) {
      own[n] = malloc((size_t)sizes[k]);
      for (int i = 0; i < sizes[k]; i++) own[n][i] = byte_of(round, k, i);
      MUST(MPIX_Imcast(own[n], sizes[k], MPI_BYTE, set, 3, MPI_COMM_WORLD, &r[n]));
    }
  for (int r2 = 1; r2 < size; r2++) MUST(MPI_Send(NULL, 0, MPI_BYTE, r2, 4, MPI_COMM_WORLD)); /* now they receive */
  MUST(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
  while (n > 0) {
    n--;
    memset(own[n], 0, (size_t)sizes[n % SIZES]);
    free(own[n]);
  }
}

static void receive_one(int round, int k)
{
  MPI_Status st;
  MPI_Message m;
  int n = sizes[k], got, how = (round + k + me) % 4;
  memset(buf, 0, (size_t)n);
  if (how == 0) {
    MPI_Datatype every;
    MUST(MPI_Type_vector(n / 4 + 1, 4, 8, MPI_BYTE, &every));
    MUST(MPI_Type_commit(&every));
    MUST(MPI_Recv(buf, 1, every, 0, 3, MPI_COMM_WORLD, &st));
    for (int i = 0; i < n; i++) buf[i] = buf[i / 4 * 8 + i % 4];
    MUST(MPI_Type_free(&every));
  } else if (how == 1) {
    MUST(MPI_Mprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &m, &st));
    MPI_Get_count(&st, MPI_BYTE, &got);
    CHECK(got == n);
    MUST(MPI_Mrecv(buf, MOST, MPI_BYTE, &m, &st));
  } else if (how == 2) {
    CHECK_CLASS(MPI_Recv(buf, n / 2, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &st), MPI_ERR_TRUNCATE);
    verify(buf, n / 2, round, k);
    return;
  } else
    MUST(MPI_Recv(buf, MOST, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &st));
  MPI_Get_count(&st, MPI_BYTE, &got);
  CHECK(got == n && st.MPI_SOURCE == 0);
  verify(buf, n, round, k);
}

/* The master overwrites what it has sent, and leaves. */
static void last(MPIX_Rankset set)
{
  int n = 200000;
  if (me == 0) {
    for (int i = 0; i < n; i++) buf[i] = byte_of(9, 9, i);
    MUST(MPIX_Mcast(buf, n, MPI_BYTE, set, 3, MPI_COMM_WORLD));
    memset(buf, 0, (size_t)n);
  } else {
    MUST(MPI_Recv(buf, MOST, MPI_BYTE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    verify(buf, n, 9, 9);
  }
}

int main(int argc, char **argv)
{
  int range[1][3] = {{1, 0, 1}};
  MPIX_Rankset set;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  range[0][1] = size - 1;
  buf = malloc(2 * MOST + 16);
  MUST(MPIX_Rankset_range_incl(MPI_COMM_WORLD, 1, range, &set));
  if (me == 0)
    send_all(set);
  else {
    MUST(MPI_Recv(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int round = 0; round < ROUNDS; round++)
      for (int k = 0; k < SIZES; k++) receive_one(round, k);
  }
  last(set);
  MUST(MPIX_Rankset_free(&set));
  MPI_Finalize();
  free(buf);
  return check_status();
}
