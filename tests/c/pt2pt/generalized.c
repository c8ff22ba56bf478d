/* Generalized requests (MPI-5.0, 13.2): when their functions are called, from any completing call, by another thread, after the
 * request was freed, and with a longjmp out of them. */
// run: n=1 timeout=40
#include "../check.h"
#include <pthread.h>
#include <setjmp.h>
#include <string.h>

typedef struct {
  int queried, freed, cancelled, answer, jump;
} life;
static jmp_buf out;

static int query(void *extra, MPI_Status *st)
{
  life *l = extra;
  l->queried++;
  CHECK(l->freed == 0);
  MPI_Status_set_elements(st, MPI_INT, 3);
  MPI_Status_set_cancelled(st, l->cancelled);
  st->MPI_SOURCE = 17;
  st->MPI_TAG = 18;
  if (l->jump) longjmp(out, 1);
  return l->answer;
}
static int release(void *extra)
{
  ((life *)extra)->freed++;
  return MPI_SUCCESS;
}
static int cancel(void *extra, int complete)
{
  ((life *)extra)->cancelled = complete ? 2 : 1;
  return MPI_SUCCESS;
}

static MPI_Request begin(life *l)
{
  MPI_Request r;
  memset(l, 0, sizeof *l);
  CHECK(MPI_Grequest_start(query, release, cancel, l, &r) == MPI_SUCCESS);
  return r;
}

static void *complete_later(void *request)
{
  MPI_Barrier(MPI_COMM_SELF);
  MPI_Grequest_complete(*(MPI_Request *)request);
  return NULL;
}

static void waited_for(int how)
{
  life l;
  MPI_Request r = begin(&l), same = r;
  MPI_Status st;
  pthread_t t;
  int n = 0, index = -1, indices[1];
  pthread_create(&t, NULL, complete_later, &same);
  if (how == 0) CHECK(MPI_Wait(&r, &st) == MPI_SUCCESS);
  if (how == 1) CHECK(MPI_Waitall(1, &r, &st) == MPI_SUCCESS);
  if (how == 2) CHECK(MPI_Waitany(1, &r, &index, &st) == MPI_SUCCESS && index == 0);
  if (how == 3) CHECK(MPI_Waitsome(1, &r, &n, indices, &st) == MPI_SUCCESS && n == 1);
  if (how == 4)
    for (int flag = 0; !flag;) CHECK(MPI_Test(&r, &flag, &st) == MPI_SUCCESS);
  pthread_join(t, NULL);
  CHECK(r == MPI_REQUEST_NULL && l.queried == 1 && l.freed == 1);
  MPI_Get_count(&st, MPI_INT, &n);
  CHECK(n == 3 && st.MPI_SOURCE == 17 && st.MPI_TAG == 18);
}

static void looked_at(void)
{
  life l;
  MPI_Request r = begin(&l);
  MPI_Status st;
  int flag = 1, cancelled = 0;
  CHECK(MPI_Request_get_status(r, &flag, &st) == MPI_SUCCESS && !flag && l.queried == 0);
  CHECK(MPI_Cancel(&r) == MPI_SUCCESS && l.cancelled == 1);
  CHECK(MPI_Grequest_complete(r) == MPI_SUCCESS);
  CHECK(MPI_Request_get_status(r, &flag, &st) == MPI_SUCCESS && flag && l.queried == 1 && l.freed == 0);
  CHECK(MPI_Wait(&r, &st) == MPI_SUCCESS && l.queried == 2 && l.freed == 1);
  MPI_Test_cancelled(&st, &cancelled);
  CHECK(cancelled);
}

static void freed_early(void)
{
  life l;
  MPI_Request r = begin(&l), same = r;
  CHECK(MPI_Request_free(&r) == MPI_SUCCESS && r == MPI_REQUEST_NULL && l.freed == 0);
  CHECK(MPI_Grequest_complete(same) == MPI_SUCCESS);
  CHECK(l.freed == 1 && l.queried == 0);
}

static void failing(void)
{
  life l;
  MPI_Request r = begin(&l);
  l.answer = MPI_ERR_OTHER;
  MPI_Grequest_complete(r);
  CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
  CHECK(r == MPI_REQUEST_NULL && l.freed == 1);
}

static void jumping(void)
{
  life l;
  static volatile int jumps;
  for (int i = 0; i < 1000; i++) {
    MPI_Request r = begin(&l);
    MPI_Grequest_complete(r);
    l.jump = 1;
    if (setjmp(out) == 0)
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    else
      jumps++;
    l.jump = 0;
    CHECK(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS && l.freed == 1); /* it can still be collected */
  }
  CHECK(jumps == 1000);
}

int main(int argc, char **argv)
{
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  CHECK(level == MPI_THREAD_MULTIPLE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int how = 0; how < 5; how++) waited_for(how);
  looked_at();
  freed_early();
  failing();
  jumping();
  MPI_Finalize();
  return check_status();
}
