/* Buffers of different size (MPI-5.0, 5.2.1, wants them to be of one): what a smaller sender has arrives, and the status says how much
 * it was; a larger one is an error at the receiver, and the sender completes. Started twice each. */
// run: n=2
// run: n=2 env=SPX_CMA=0
#include "../check.h"

#define LARGEST 400000
static int rank, out[LARGEST], in[LARGEST];

static void pair(int sends, int each, int receives, int room)
{
  MPI_Request r;
  MPI_Status st;
  int total = sends * each, n, here;
  for (int i = 0; i < LARGEST; i++) out[i] = i + 1, in[i] = -1;
  if (rank == 0) {
    MPI_Psend_init(out, sends, each, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int it = 0; it < 2; it++) {
      MPI_Start(&r);
      for (int i = sends; i-- > 0;) MPI_Pready(i, r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
  } else {
    MPI_Precv_init(in, receives, room, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int it = 0; it < 2; it++) {
      MPI_Start(&r);
      if (total <= receives * room) {
        do MPI_Parrived(r, receives - 1, &here);
        while (!here);
        CHECK(MPI_Wait(&r, &st) == MPI_SUCCESS);
        MPI_Get_count(&st, MPI_INT, &n);
        CHECK(n == total);
        for (int i = 0; i < total; i++) CHECK(in[i] == i + 1);
        for (int i = total; i < receives * room; i++) CHECK(in[i] == -1);
      } else
        CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
      for (int i = receives * room; i < LARGEST; i++) CHECK(in[i] == -1);
    }
  }
  MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  static const int sizes[] = {0, 1, 3, 500, 50000};
  for (int i = 0; i < 5; i++) {
    int n = sizes[i];
    pair(4, n, 4, 2 * n);
    pair(1, n, 4, n);
    pair(4, n, 1, 5 * n);
    pair(3, n, 7, n);
    pair(4, 2 * n, 4, n);
    pair(7, n, 3, n);
    pair(1, 5 * n, 4, n);
    pair(4, n, 1, n);
  }
  MPI_Finalize();
  return check_status();
}
