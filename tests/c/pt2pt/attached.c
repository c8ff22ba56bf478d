/* What is attached to requests (MPIX_Request_attach): called once per operation, in the right order, for every kind of request, by whatever call
 * collects it; not at the end of an operation that failed. */
// run: n=2 timeout=40
#include "../check.h"
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>

/* What was called, a letter each: S start, C complete, F free; small letters: of the second. */
static char called[4096];
static void note(char c)
{
  size_t n = strlen(called);
  called[n] = c;
  called[n + 1] = 0;
}
static void start(void *up) { note(up ? 'S' : 's'); }
static void complete(void *up) { note(up ? 'C' : 'c'); }
static void release(void *up) { note(up ? 'F' : 'f'); }

static void expect(const char *want)
{
  if (strcmp(called, want)) fprintf(stderr, "called: %s, not %s\n", called, want);
  CHECK(!strcmp(called, want));
  called[0] = 0;
}

static void both(MPI_Request r)
{
  CHECK(MPIX_Request_attach(r, start, complete, release, called) == MPI_SUCCESS);
  CHECK(MPIX_Request_attach(r, start, complete, release, NULL) == MPI_SUCCESS);
}

static void messages(int rank)
{
  int out = 40 + rank, in = 0, flag = 0, index, n, indices[2];
  MPI_Request r[2];
  MPI_Status st[2];
  for (int how = 0; how < 4; how++) {
    MPI_Irecv(&in, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, &r[0]);
    both(r[0]);
    MPI_Isend(&out, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, &r[1]);
    if (how == 0) MPI_Wait(&r[0], &st[0]);
    for (flag = 0; how == 1 && !flag;) MPI_Test(&r[0], &flag, &st[0]);
    if (how == 2) MPI_Waitany(1, r, &index, st);
    if (how == 3) MPI_Waitsome(1, r, &n, indices, st);
    expect("cCfF");
    CHECK(r[0] == MPI_REQUEST_NULL && in == 41 - rank && st[0].MPI_SOURCE == 1 - rank && st[0].MPI_TAG == 5);
    MPI_Get_count(&st[0], MPI_INT, &n);
    CHECK(n == 1);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  }
}

static void persistent(int rank)
{
  int out = rank, in = -1;
  MPI_Request r[2];
  MPI_Recv_init(&in, 1, MPI_INT, 1 - rank, 6, MPI_COMM_WORLD, &r[0]);
  MPI_Send_init(&out, 1, MPI_INT, 1 - rank, 6, MPI_COMM_WORLD, &r[1]);
  both(r[0]);
  for (int i = 0; i < 3; i++) {
    MPI_Startall(2, r);
    expect("sS");
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    expect("cC");
    CHECK(in == 1 - rank);
  }
  MPI_Request_free(&r[0]);
  expect("fF");
  MPI_Request_free(&r[1]);
}

static int query(void *extra, MPI_Status *st)
{
  return (void)extra, MPI_Status_set_elements(st, MPI_INT, 2), MPI_SUCCESS;
}
static int freed(void *extra) { return (void)extra, note('g'), MPI_SUCCESS; }
static int cancel(void *extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

static void other_kinds(void)
{
  int in = 1, sum = 0;
  MPI_Request r;
  MPI_Iallreduce(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
  both(r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  expect("cCfF");
  CHECK(sum == 2);
  MPI_Grequest_start(query, freed, cancel, NULL, &r);
  both(r);
  MPI_Grequest_complete(r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  expect("gcCfF");
  MPI_Ibarrier(MPI_COMM_WORLD, &r); /* none of the functions has to be there */
  CHECK(MPIX_Request_attach(r, NULL, NULL, NULL, NULL) == MPI_SUCCESS);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  expect("");
}

/* An operation that is cut short, and one that is cancelled. */
static void failing(int rank)
{
  int two[2] = {1, 2}, one = 0;
  MPI_Request r;
  if (rank == 0) {
    MPI_Irecv(&one, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &r);
    both(r);
    CHECK(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE);
    expect("fF");
  } else {
    MPI_Send(two, 2, MPI_INT, 0, 7, MPI_COMM_WORLD);
  }
  MPI_Irecv(&one, 1, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD, &r);
  both(r);
  MPI_Cancel(&r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  expect("cCfF");
  CHECK(MPIX_Request_attach(MPI_REQUEST_NULL, start, complete, release, NULL) == MPI_ERR_REQUEST);
}

/* 4,000 pending requests with something attached cost no more each than a few. */
static void many(int rank)
{
  enum { MANY = 4000 };
  static int in[MANY];
  static MPI_Request r[MANY];
  int out = 3;
  for (int i = 0; i < MANY; i++) {
    MPI_Irecv(&in[i], 1, MPI_INT, 1 - rank, 9, MPI_COMM_WORLD, &r[i]);
    CHECK(MPIX_Request_attach(r[i], NULL, complete, NULL, NULL) == MPI_SUCCESS);
  }
  for (int i = 0; i < MANY; i++) MPI_Send(&out, 1, MPI_INT, 1 - rank, 9, MPI_COMM_WORLD);
  for (int i = 0; i < MANY; i++) MPI_Wait(&r[MANY - 1 - i], MPI_STATUS_IGNORE);
  CHECK(strlen(called) == MANY && in[MANY - 1] == 3);
  called[0] = 0;
}

int main(int argc, char **argv)
{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  messages(rank);
  persistent(rank);
  other_kinds();
  failing(rank);
  many(rank);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return check_status();
}
