/* freed_comm.c - errors of requests whose communicator was freed meanwhile go to that communicator's error handler (MPI-5.0, 10.3: the communicator on which
 * the request has been initialized; 7.4.3: it lives until its operations are complete). A user's handler gets a handle that it can use. */
// run: n=2
#include <setjmp.h>
#include <string.h>
#include "../check.h"

static int rank, called, code_seen;
static char name_seen[MPI_MAX_OBJECT_NAME];
static jmp_buf out;

static void note(MPI_Comm *comm, int *code, ...)
{
  int n = -1, me = -1;
  called++;
  MPI_Error_class(*code, &code_seen);
  CHECK(MPI_Comm_rank(*comm, &me) == MPI_SUCCESS && me == rank);
  MPI_Comm_get_name(*comm, name_seen, &n);
}

static void leave(MPI_Comm *comm, int *code, ...)
{
  note(comm, code);
  longjmp(out, 1);
}

typedef enum { WAIT, TEST, WAITALL, WAITANY, WAITSOME, TESTALL, TESTANY, TESTSOME, WAYS } way;

static int complete(way w, MPI_Request *r)
{
  int flag = 0, n = 0, index[2], rc = MPI_SUCCESS;
  MPI_Status st[2];
  while (!flag && rc == MPI_SUCCESS) {
    flag = 1;
    switch (w) {
    case WAIT: rc = MPI_Wait(r, st); break;
    case TEST: rc = MPI_Test(r, &flag, st); break;
    case WAITALL: rc = MPI_Waitall(1, r, st); break;
    case WAITANY: rc = MPI_Waitany(1, r, index, st); break;
    case WAITSOME: rc = MPI_Waitsome(1, r, &n, index, st); break;
    case TESTALL: rc = MPI_Testall(1, r, &flag, st); break;
    case TESTANY: rc = MPI_Testany(1, r, index, &flag, st); break;
    default: rc = MPI_Testsome(1, r, &n, index, st), flag = n > 0; break;
    }
  }
  return rc;
}

/* A communicator, freed with a receive of it under way that will be truncated. */
static MPI_Request orphan(MPI_Comm_errhandler_function *fn, int *buf, int persistent)
{
  int data[2] = {1, 2};
  MPI_Comm comm;
  MPI_Request r;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "the freed one");
  if (fn) {
    MPI_Errhandler h;
    MPI_Comm_create_errhandler(fn, &h);
    MPI_Comm_set_errhandler(comm, h);
    MPI_Errhandler_free(&h);
  } else
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (persistent) {
    MPI_Recv_init(buf, 1, MPI_INT, 1 - rank, 0, comm, &r);
    MPI_Start(&r);
  } else
    MPI_Irecv(buf, 1, MPI_INT, 1 - rank, 0, comm, &r);
  MPI_Send(data, 2, MPI_INT, 1 - rank, 0, comm);
  MPI_Comm_free(&comm);
  return r;
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int persistent = 0; persistent < 2; persistent++)
    for (way w = WAIT; w < WAYS; w++) {
      int buf = 0, list = w == WAITALL || w == WAITSOME || w == TESTALL || w == TESTSOME;
      MPI_Request r = orphan(NULL, &buf, persistent);
      CHECK_CLASS(complete(w, &r), list ? MPI_ERR_IN_STATUS : MPI_ERR_TRUNCATE);
      if (persistent) MPI_Request_free(&r);
      CHECK(r == MPI_REQUEST_NULL);
      called = 0;
      name_seen[0] = 0;
      r = orphan(note, &buf, persistent);
      CHECK_CLASS(complete(w, &r), list ? MPI_ERR_IN_STATUS : MPI_ERR_TRUNCATE);
      CHECK(called == 1 && strcmp(name_seen, "the freed one") == 0);
      if (persistent) MPI_Request_free(&r);
      MPI_Request two[2] = {orphan(note, &buf, 0), orphan(note, &buf, 0)};
      called = 0;
      MPI_Status st[2];
      CHECK_CLASS(MPI_Waitall(2, two, st), MPI_ERR_IN_STATUS); /* one error, on the first of two that are freed */
      CHECK(called == 1);
      MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
    }
  int buf;
  volatile int jumps = 0;
  for (volatile int i = 0; i < 10; i++) {
    MPI_Request r = orphan(leave, &buf, 0);
    if (setjmp(out))
      jumps++;
    else
      MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
  CHECK(jumps == 10);
  /* What is wrong with a request of a freed communicator, too. */
  MPI_Request r = orphan(note, &buf, 1);
  called = 0;
  CHECK_CLASS(MPI_Start(&r), MPI_ERR_REQUEST); /* active already */
  CHECK(called == 1 && code_seen == MPI_ERR_REQUEST);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Request_free(&r);
  MPI_Comm comm;
  MPI_Errhandler h;
  char half[8];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(note, &h);
  MPI_Comm_set_errhandler(comm, h);
  MPI_Errhandler_free(&h);
  MPI_Psend_init(half, 2, 4, MPI_CHAR, 1 - rank, 0, comm, MPI_INFO_NULL, &r);
  MPI_Comm_free(&comm);
  called = 0;
  CHECK_CLASS(MPI_Pready(0, r), MPI_ERR_REQUEST); /* not active */
  CHECK(called == 1);
  MPI_Request_free(&r);
  MPI_Finalize();
  return check_status();
}
