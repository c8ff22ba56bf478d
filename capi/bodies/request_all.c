/* request_all.c - completing all of several requests. MPI-5.0 3.7.5.
 *
 * When one has failed, the others are not waited for any more: complete ones are collected, the
 * rest is MPI_ERR_PENDING in its status and stays active. So the program can act on a failure when
 * it is reported. */
#include "request.h"

typedef struct {
  MPI_Request *requests;
  MPI_Status *statuses;
  int failed;
  spx_request_on on; /* where the first error is raised */
} batch;

static MPI_Status *status_at(const batch *b, int i)
{
  return b->statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &b->statuses[i];
}

static void set_error(const batch *b, int i, int error)
{
  if (b->statuses != MPI_STATUSES_IGNORE) b->statuses[i].MPI_ERROR = error;
}

static void note_failure(batch *b, int i, spx_request_on on)
{
  if (b->failed) {
    spx_request_on_drop(on);
    return;
  }
  b->failed = 1;
  b->on = on;
  for (int k = 0; k < i; k++) set_error(b, k, MPI_SUCCESS);
}

static void collect(batch *b, int i, spx_request *r)
{
  spx_request_on on;
  int err = spx_request_collect(&b->requests[i], r, status_at(b, i), &on);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) note_failure(b, i, on);
  if (SPX_UNLIKELY(b->failed)) set_error(b, i, err);
}

/* Request i, which is not complete, and will not be waited for. */
static void leave(batch *b, int i, const spx_request *r)
{
  MPI_Status *st = status_at(b, i);
  if (spx_request_held_up(r)) {
    note_failure(b, i, spx_request_raised_on(r));
    set_error(b, i, MPIX_ERR_PROC_FAILED_PENDING);
  } else if (st)
    st->MPI_ERROR = MPI_ERR_PENDING;
}

int spx_c_Waitall(int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses)
{
  batch b = {array_of_requests, array_of_statuses, 0, {NULL, NULL}};
  spx_turn_begin();
  for (int i = 0; i < count; i++) {
    spx_request *r = spx_request_of(array_of_requests[i]);
    if (!spx_request_active(r)) {
      spx_status_empty(status_at(&b, i));
      continue;
    }
    if (SPX_LIKELY(!b.failed)) spx_wait(r);
    if (SPX_LIKELY(spx_request_done(r)))
      collect(&b, i, r);
    else
      leave(&b, i, r);
  }
  spx_turn_end(SPX_TURN_WAITALL);
  return SPX_LIKELY(!b.failed) ? MPI_SUCCESS : spx_request_fail(b.on, MPI_ERR_IN_STATUS);
}

/* 1: all are complete, or one has failed so that the call has to end; else 0. */
static int ready(int count, MPI_Request const *requests)
{
  int all = 1;
  for (int i = 0; i < count; i++) {
    spx_request *r = spx_request_of(requests[i]);
    if (!spx_request_active(r)) continue;
    if (!spx_request_done(r)) {
      if (spx_request_held_up(r)) return 1;
      all = 0;
    } else if (r->error == MPIX_ERR_PROC_FAILED || r->error == MPIX_ERR_REVOKED)
      return 1;
  }
  return all;
}

int spx_c_Testall(int count, MPI_Request array_of_requests[], int *flag,
                  MPI_Status *array_of_statuses)
{
  *flag = ready(count, array_of_requests);
  if (!*flag) {
    spx_progress();
    *flag = ready(count, array_of_requests);
    if (!*flag) return MPI_SUCCESS;
  }
  batch b = {array_of_requests, array_of_statuses, 0, {NULL, NULL}};
  for (int i = 0; i < count; i++) {
    spx_request *r = spx_request_of(array_of_requests[i]);
    if (!spx_request_active(r))
      spx_status_empty(status_at(&b, i));
    else if (spx_request_done(r))
      collect(&b, i, r);
    else
      leave(&b, i, r);
  }
  return b.failed ? spx_request_fail(b.on, MPI_ERR_IN_STATUS) : MPI_SUCCESS;
}
