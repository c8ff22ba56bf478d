/* Completing requests (MPI-5.0, 3.7.3, 3.7.5, 3.9): statuses of null and inactive requests, error fields, which error class is
 * raised where, and requests that are freed, cancelled or started wrongly. */
// run: n=2 timeout=40
#include "../check.h"
#include <stdlib.h>
#include <string.h>

static int rank, other;

static int is_empty(const MPI_Status *st)
{
  int n = -1, cancelled = 1;
  MPI_Get_count(st, MPI_INT, &n);
  MPI_Test_cancelled(st, &cancelled);
  return st->MPI_SOURCE == MPI_ANY_SOURCE && st->MPI_TAG == MPI_ANY_TAG && n == 0 && !cancelled;
}

static void nothing_to_wait_for(void)
{
  MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status st[3];
  int flag = 0, index = 7, n = 7, indices[3], value;
  MPI_Recv_init(&value, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &r[1]); /* inactive */
  MPI_Request keep = r[1];
  CHECK(MPI_Wait(&r[1], &st[0]) == MPI_SUCCESS && is_empty(&st[0]) && r[1] == keep);
  CHECK(MPI_Test(&r[0], &flag, &st[0]) == MPI_SUCCESS && flag && is_empty(&st[0]));
  CHECK(MPI_Waitall(3, r, st) == MPI_SUCCESS && is_empty(&st[0]) && is_empty(&st[1]) && is_empty(&st[2]));
  CHECK(MPI_Waitany(3, r, &index, &st[0]) == MPI_SUCCESS && index == MPI_UNDEFINED && is_empty(&st[0]));
  flag = 0;
  CHECK(MPI_Testany(3, r, &index, &flag, &st[0]) == MPI_SUCCESS && flag && index == MPI_UNDEFINED && is_empty(&st[0]));
  CHECK(MPI_Waitsome(3, r, &n, indices, st) == MPI_SUCCESS && n == MPI_UNDEFINED);
  CHECK(MPI_Testsome(3, r, &n, indices, st) == MPI_SUCCESS && n == MPI_UNDEFINED);
  flag = 0;
  CHECK(MPI_Testall(3, r, &flag, st) == MPI_SUCCESS && flag);
  CHECK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_Request_free(&r[1]) == MPI_SUCCESS && r[1] == MPI_REQUEST_NULL);
  CHECK_CLASS(MPI_Wait(&keep, &st[0]), MPI_ERR_REQUEST); /* its handle is known to be old */
}

/* One message is too long: the others of the batch succeed, and the call says which failed. */
static void one_fails(int some)
{
  int in[4] = {0}, out[4] = {1, 2, 3, 4};
  if (rank == 1) {
    for (int i = 0; i < 3; i++) MPI_Send(out, i == 1 ? 4 : 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return;
  }
  MPI_Request r[4] = {MPI_REQUEST_NULL};
  MPI_Status st[4];
  for (int i = 0; i < 3; i++) MPI_Irecv(&in[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &r[i + 1]);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 4; i++) st[i].MPI_ERROR = -77;
  if (some) {
    int got = 0, failed = 0, n, indices[4];
    while (got < 3) {
      int rc = MPI_Waitsome(4, r, &n, indices, st);
      CHECK(rc == MPI_SUCCESS || rc == MPI_ERR_IN_STATUS);
      for (int i = 0; i < n; i++) {
        if (rc == MPI_SUCCESS) continue;
        CHECK_CLASS(st[i].MPI_ERROR, indices[i] == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        failed += indices[i] == 2;
      }
      got += n;
    }
    CHECK(got == 3 && failed == 1);
  } else {
    CHECK_CLASS(MPI_Waitall(4, r, st), MPI_ERR_IN_STATUS);
    CHECK(st[0].MPI_ERROR == MPI_SUCCESS && st[1].MPI_ERROR == MPI_SUCCESS);
    CHECK_CLASS(st[2].MPI_ERROR, MPI_ERR_TRUNCATE);
    CHECK(st[3].MPI_ERROR == MPI_SUCCESS || st[3].MPI_ERROR == MPI_ERR_PENDING);
    if (st[3].MPI_ERROR == MPI_ERR_PENDING) CHECK(MPI_Wait(&r[3], &st[3]) == MPI_SUCCESS);
  }
  CHECK(in[0] == 1 && in[2] == 1);
  for (int i = 0; i < 4; i++) CHECK(r[i] == MPI_REQUEST_NULL);
}

/* MPI_ERROR is not touched by calls that complete one request, nor by the others when nothing failed. */
static void error_field(void)
{
  int in, out = rank;
  MPI_Request r[2];
  MPI_Status st[2];
  st[0].MPI_ERROR = st[1].MPI_ERROR = 1234;
  MPI_Irecv(&in, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(&out, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &r[1]);
  CHECK(MPI_Waitall(2, r, st) == MPI_SUCCESS && st[0].MPI_ERROR == 1234 && st[1].MPI_ERROR == 1234);
  MPI_Sendrecv(&out, 1, MPI_INT, other, 6, &in, 1, MPI_INT, other, 6, MPI_COMM_WORLD, &st[0]);
  CHECK(st[0].MPI_ERROR == 1234 && st[0].MPI_SOURCE == other && st[0].MPI_TAG == 6 && in == other);
  MPI_Sendrecv(&out, 1, MPI_INT, MPI_PROC_NULL, 6, &in, 1, MPI_INT, MPI_PROC_NULL, 6, MPI_COMM_WORLD, &st[0]);
  CHECK(st[0].MPI_SOURCE == MPI_PROC_NULL && st[0].MPI_TAG == MPI_ANY_TAG && in == other);
}

/* Requests that are freed while active do their work all the same; what was truncated names both sizes. */
static void freed(void)
{
  static int big[100000];
  int in[2];
  MPI_Request r;
  char text[MPI_MAX_ERROR_STRING];
  int n, rc;
  if (rank == 0) {
    for (int i = 0; i < 100000; i++) big[i] = i;
    MPI_Isend(big, 100000, MPI_INT, 1, 1, MPI_COMM_WORLD, &r);
    MPI_Request_free(&r);
    MPI_Recv(in, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* only then may big be used again */
    MPI_Send(big, 5, MPI_INT, 1, 3, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(big, 100000, MPI_INT, 0, 1, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK(big[99999] == 99999);
    MPI_Send(in, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    rc = MPI_Recv(in, 2, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_CLASS(rc, MPI_ERR_TRUNCATE);
    MPI_Error_string(rc, text, &n);
    CHECK(strstr(text, "20 bytes") && strstr(text, "8") && strstr(text, "rank 0"));
  }
}

static void wrong_use(void)
{
  int value = 0, flag;
  MPI_Request r, s;
  MPI_Status st;
  MPI_Irecv(&value, 1, MPI_INT, other, 99, MPI_COMM_WORLD, &r);
  CHECK_CLASS(MPI_Start(&r), MPI_ERR_REQUEST); /* not persistent */
  CHECK(MPI_Cancel(&r) == MPI_SUCCESS && MPI_Wait(&r, &st) == MPI_SUCCESS);
  MPI_Test_cancelled(&st, &flag);
  CHECK(flag && r == MPI_REQUEST_NULL);
  MPI_Recv_init(&value, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &r);
  MPI_Send_init(&rank, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &s);
  CHECK_CLASS(MPI_Cancel(&r), MPI_ERR_REQUEST); /* not active */
  for (int i = 0; i < 3; i++) {
    CHECK(MPI_Start(&r) == MPI_SUCCESS);
    CHECK_CLASS(MPI_Start(&r), MPI_ERR_REQUEST); /* active already */
    CHECK(MPI_Startall(1, &s) == MPI_SUCCESS);
    CHECK(MPI_Wait(&r, &st) == MPI_SUCCESS && value == other && st.MPI_SOURCE == other);
    CHECK(MPI_Wait(&s, MPI_STATUS_IGNORE) == MPI_SUCCESS && s != MPI_REQUEST_NULL);
  }
  MPI_Request_free(&r);
  MPI_Request_free(&s);
}

/* Waiting for any and for some, until all have come: each index once. */
static void any_and_some(void)
{
  enum { N = 20 };
  int in[N], out[N], seen[N] = {0}, index, n, indices[N], left = N;
  MPI_Request r[N], s[N];
  MPI_Status st, sts[N];
  for (int i = 0; i < N; i++) MPI_Irecv(&in[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &r[i]);
  for (int i = N - 1; i >= 0; i--) {
    out[i] = i * 3;
    MPI_Issend(&out[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &s[i]);
  }
  for (int i = 0; i < N / 2; i++, left--) {
    CHECK(MPI_Waitany(N, r, &index, &st) == MPI_SUCCESS && st.MPI_TAG == index && in[index] == index * 3);
    seen[index]++;
  }
  while (left > 0) {
    CHECK(MPI_Waitsome(N, r, &n, indices, sts) == MPI_SUCCESS && n > 0);
    for (int i = 0; i < n; i++, left--) {
      CHECK(sts[i].MPI_TAG == indices[i] && in[indices[i]] == indices[i] * 3);
      seen[indices[i]]++;
    }
  }
  for (int i = 0; i < N; i++) CHECK(seen[i] == 1);
  CHECK(MPI_Waitall(N, s, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  nothing_to_wait_for();
  one_fails(0);
  one_fails(1);
  error_field();
  freed();
  wrong_use();
  any_and_some();
  MPI_Finalize();
  return check_status();
}
