/* MPI_PROC_NULL, inactive and null requests, to itself, a communicator freed with the request alive, and what is
 * wrong: every error has its class and leaves the request usable. */
// run: n=2
#include "../check.h"

static int rank;

static void to_nobody(void)
{
  int a[4] = {0}, here;
  MPI_Request r[2];
  MPI_Status st[2];
  MPI_Psend_init(a, 2, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
  MPI_Precv_init(a, 2, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
  for (int it = 0; it < 2; it++) {
    MPI_Startall(2, r);
    MPI_Pready(1, r[0]);
    MPI_Test(&r[0], &here, MPI_STATUS_IGNORE);
    CHECK(!here);
    MPI_Pready(0, r[0]);
    MPI_Parrived(r[1], 1, &here);
    CHECK(here);
    MPI_Waitall(2, r, st);
    CHECK(st[1].MPI_SOURCE == MPI_PROC_NULL && st[1].MPI_TAG == MPI_ANY_TAG);
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
}

static void inactive(void)
{
  int a = 0, here = 0, flag = 0;
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Status st;
  MPI_Parrived(r, 0, &here);
  CHECK(here);
  MPI_Precv_init(&a, 1, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  here = 0;
  MPI_Parrived(r, 0, &here);
  CHECK(here);
  MPI_Test(&r, &flag, &st);
  CHECK(flag && st.MPI_SOURCE == MPI_ANY_SOURCE && r != MPI_REQUEST_NULL);
  MPI_Wait(&r, &st);
  MPI_Request s;
  MPI_Psend_init(&a, 1, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
  MPI_Request_free(&r);
  MPI_Request_free(&s);
}

/* The freed pair before has matched, whether it was started or not: these two belong together. */
static void after_a_freed_one(void)
{
  int a = rank == 0 ? 42 : 0;
  MPI_Request r;
  if (rank == 0) {
    MPI_Psend_init(&a, 1, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Pready(0, r);
  } else {
    MPI_Precv_init(&a, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
  }
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  CHECK(a == 42);
  MPI_Request_free(&r);
}

static void to_itself(void)
{
  static double a[40000], b[40000];
  MPI_Comm own;
  MPI_Request r[2];
  MPI_Comm_dup(MPI_COMM_SELF, &own);
  MPI_Psend_init(a, 4, 10000, MPI_DOUBLE, 0, 1, own, MPI_INFO_NULL, &r[0]);
  MPI_Precv_init(b, 5, 8000, MPI_DOUBLE, 0, 1, own, MPI_INFO_NULL, &r[1]);
  MPI_Comm_free(&own);
  for (int it = 0; it < 2; it++) {
    for (int i = 0; i < 40000; i++) a[i] = i + it;
    MPI_Startall(2, r);
    MPI_Pready_range(0, 3, r[0]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    CHECK(b[0] == it && b[39999] == 39999 + it);
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
}

/* Sends have numbers, which come again after 2^19: not to one that is alive. */
static void many_sends(void)
{
  int a[2] = {1, 2}, b[2] = {0, 0}, x;
  MPI_Request r[4], q;
  for (int k = 0; k < 2; k++) {
    MPI_Psend_init(&a[k], 1, 1, MPI_INT, 0, 2, MPI_COMM_SELF, MPI_INFO_NULL, &r[k]);
    MPI_Precv_init(&b[k], 1, 1, MPI_INT, 0, 2, MPI_COMM_SELF, MPI_INFO_NULL, &r[2 + k]);
    for (int i = 0; k == 0 && i < (1 << 19) - 1; i++) {
      MPI_Psend_init(&x, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_INFO_NULL, &q);
      MPI_Request_free(&q);
    }
  }
  MPI_Start(&r[0]);
  MPI_Start(&r[3]); /* the other one */
  MPI_Pready(0, r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  int here;
  MPI_Parrived(r[3], 0, &here);
  CHECK(!here);
  MPI_Start(&r[1]);
  MPI_Pready(0, r[1]);
  MPI_Start(&r[2]);
  MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  MPI_Waitall(2, &r[2], MPI_STATUSES_IGNORE);
  CHECK(b[0] == 1 && b[1] == 2);
  for (int k = 0; k < 4; k++) MPI_Request_free(&r[k]);
}

static void wrong_arguments(void)
{
  int a[4] = {0}, here, one = 1, list[2] = {0, 9};
  MPI_Request r;
  MPI_Comm w = MPI_COMM_WORLD;
  CHECK_CLASS(MPI_Psend_init(a, 0, 1, MPI_INT, 0, 0, w, MPI_INFO_NULL, &r), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Precv_init(a, -3, 1, MPI_INT, 0, 0, w, MPI_INFO_NULL, &r), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Precv_init(a, 1, -1, MPI_INT, 0, 0, w, MPI_INFO_NULL, &r), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Precv_init(a, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, w, MPI_INFO_NULL, &r), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Precv_init(a, 1, 1, MPI_INT, 0, MPI_ANY_TAG, w, MPI_INFO_NULL, &r), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Psend_init(a, 1, 1, MPI_INT, 2, 0, w, MPI_INFO_NULL, &r), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Psend_init(NULL, 1, 1, MPI_INT, 0, 0, w, MPI_INFO_NULL, &r), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
  MPI_Recv_init(a, 1, MPI_INT, 0, 0, w, &r);
  CHECK_CLASS(MPI_Pready(0, r), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Parrived(r, 0, &here), MPI_ERR_REQUEST);
  MPI_Request_free(&r);

  MPI_Request s;
  MPI_Psend_init(a, 4, 1, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_INFO_NULL, &s);
  MPI_Precv_init(a, 2, 2, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_INFO_NULL, &r);
  CHECK_CLASS(MPI_Pready(0, s), MPI_ERR_REQUEST);
  MPI_Start(&s);
  MPI_Start(&r);
  CHECK_CLASS(MPI_Start(&s), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Pready(4, s), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready(-1, s), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_range(2, 1, s), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_range(3, 4, s), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_list(-1, list, s), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_list(1, NULL, s), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready_list(2, list, s), MPI_ERR_ARG); /* 0 is ready now */
  CHECK_CLASS(MPI_Pready(0, s), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pready(0, r), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Parrived(r, 2, &here), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Parrived(s, 0, &here), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&s), MPI_ERR_REQUEST);
  MPI_Pready_list(1, &one, s);
  MPI_Pready_range(2, 3, s);
  MPI_Wait(&s, MPI_STATUS_IGNORE);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Request_free(&s);
  MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  to_nobody();
  inactive();
  after_a_freed_one();
  to_itself();
  many_sends();
  wrong_arguments();
  MPI_Finalize();
  return check_status();
}
