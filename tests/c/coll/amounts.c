/* The amounts of the first rank differ from those of all others, which must be equal: every other rank is told, also one that gets only what another one has had
 * room for; and what follows is right. Where only some of the ranks share a host, those that get their data in its memory need not see it: somebody does.
 * MPI-5.0, 6.4, 6.9.1 and 6.9.6. */
// run: n=2,4,9 n.few=4,9
// run: n=2,4,9,16 n.few=2,9 env=SPX_TRANSPORTS=tcp
// run: n=16 n.few=8 env=SPX_TRANSPORTS=tcp env=SPX_CONNECTIONS=topology:1 env=SPX_TOPOLOGY=groups:4
#include "../check.h"

enum { MOST = 100 };
static int rank, size;
static char in[MOST], out[MOST];

static int waited(int err, MPI_Request *r) { return err == MPI_SUCCESS ? MPI_Wait(r, MPI_STATUS_IGNORE) : err; }

static int call(int which, int n)
{
  MPI_Comm w = MPI_COMM_WORLD;
  MPI_Request r;
  switch (which) {
  case 0: return MPI_Bcast(out, n, MPI_BYTE, 0, w);
  case 1: return MPI_Allreduce(in, out, n, MPI_BYTE, MPI_BOR, w);
  case 2: return waited(MPI_Ibcast(out, n, MPI_BYTE, 0, w, &r), &r);
  case 3: return waited(MPI_Iallreduce(in, out, n, MPI_BYTE, MPI_BOR, w, &r), &r);
  default: return MPI_Reduce(in, out, n, MPI_BYTE, MPI_BOR, size - 1, w);
  }
}

int main(int argc, char **argv)
{
  const int amounts[][2] = {{4, 40}, {40, 4}, {1, 2}, {2, 1}, {1, 40}, {40, 1}};
  MPI_Comm host;
  int here, class;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &here);
  MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int which = 0; which < 5; which++)
    for (unsigned k = 0; k < sizeof amounts / sizeof *amounts; k++) {
      int err = call(which, amounts[k][rank > 0]), seen, sum = 1;
      MPI_Error_class(err, &class);
      CHECK(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE);
      seen = class == MPI_ERR_TRUNCATE;
      if (rank > 0 && which < 4 && (here == 1 || here == size)) CHECK(seen);
      CHECK_CLASS(MPI_Allreduce(MPI_IN_PLACE, &seen, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD), MPI_SUCCESS);
      CHECK(seen);
      CHECK_CLASS(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
      CHECK(sum == size);
    }
  MPI_Comm_free(&host);
  MPI_Finalize();
  return check_status();
}
