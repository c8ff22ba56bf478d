/* request.c - completing one request, or some of several. MPI-5.0 3.7.3, 3.7.5.  All of several:
 * request_all.c. */
#include "error.h"
#include "request.h"
#include "sleeper.h"

void spx_status_empty(MPI_Status *st)
{
  if (st == MPI_STATUS_IGNORE) return;
  spx_status_set(st, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_SUCCESS, 0, 0);
}

spx_request_on spx_request_raised_on(const spx_request *r)
{
  if (!r->comm) return (spx_request_on){.handle = (void *)MPI_COMM_SELF};
  void *handle = spx_comm_handle(r->comm);
  if (SPX_LIKELY(handle != NULL)) return (spx_request_on){.handle = handle};
  spx_ref(&r->comm->o); /* the request may have had the last reference to it */
  return (spx_request_on){.freed = r->comm};
}

void spx_request_on_drop(spx_request_on on)
{
  if (on.freed) spx_unref(SPX_K_COMM, &on.freed->o);
}

int spx_request_fail(spx_request_on on, int code)
{
  const char *function = spx_fn_name[spx_fn];
  if (SPX_LIKELY(!on.freed))
    return spx_raise(SPX_K_COMM, on.handle, code, function, "%s", spx_detail_text());
  code = spx_raise_on_comm(on.freed, code, function);
  spx_request_on_drop(on);
  return code;
}

bool spx_request_held_up(const spx_request *r)
{
  return SPX_UNLIKELY(spx_ndead) && spx_wait_blocked(r);
}

int spx_request_fail_pending(const spx_request *r)
{
  spx_detail("a process that could send the message has failed; acknowledge the failure to go on, "
             "or cancel the receive");
  return spx_request_fail(spx_request_raised_on(r), MPIX_ERR_PROC_FAILED_PENDING);
}

/* Ends the life of a collected request's operation. */
static void release(MPI_Request *h, spx_request *r)
{
  if (r->flags & SPX_RF_PERSISTENT)
    r->flags &= ~(uint32_t)SPX_RF_ACTIVE;
  else {
    *h = MPI_REQUEST_NULL;
    spx_request_free(r);
  }
}

int spx_request_collect(MPI_Request *h, spx_request *r, MPI_Status *st, spx_request_on *on)
{
  int err = r->error;
  if (SPX_UNLIKELY(r->finish != NULL)) {
    MPI_Status own;
    spx_status_empty(&own);
    if (st != MPI_STATUS_IGNORE) own.MPI_ERROR = st->MPI_ERROR;
    err = r->finish(r, &own);
    if (st != MPI_STATUS_IGNORE) *st = own;
  } else if (st != MPI_STATUS_IGNORE || SPX_UNLIKELY(spx_is_origin(r->src))) {
    if (r->kind == SPX_R_COLL || r->kind == SPX_R_IDUP) {
      int keep = st->MPI_ERROR;
      spx_status_empty(st);
      st->MPI_ERROR = keep;
    } else
      spx_status_set(st, r->src, r->tag, SPX_KEEP_ERROR, r->bytes,
                     (r->flags & SPX_RF_CANCELLED) != 0);
  }
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) {
    spx_request_detail(r);
    *on = spx_request_raised_on(r);
  }
  release(h, r);
  return err;
}

static int finish_one(MPI_Request *h, spx_request *r, MPI_Status *st)
{
  spx_request_on on;
  int err = spx_request_collect(h, r, st, &on);
  return SPX_LIKELY(err == MPI_SUCCESS) ? MPI_SUCCESS : spx_request_fail(on, err);
}

int spx_c_Wait(MPI_Request *request, MPI_Status *status)
{
  spx_request *r = spx_request_of(*request);
  if (SPX_UNLIKELY(!spx_request_active(r))) {
    spx_status_empty(status);
    return MPI_SUCCESS;
  }
  spx_turn_begin();
  int err = spx_wait(r);
  spx_turn_end(SPX_TURN_WAIT);
  if (SPX_UNLIKELY(err == MPIX_ERR_PROC_FAILED_PENDING) && !spx_request_done(r))
    return spx_request_fail_pending(r);
  return finish_one(request, r, status);
}

int spx_c_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
  spx_request *r = spx_request_of(*request);
  *flag = 1;
  if (!spx_request_active(r)) {
    spx_status_empty(status);
    return MPI_SUCCESS;
  }
  if (!spx_request_done(r)) {
    spx_progress();
    if (!spx_request_done(r)) {
      *flag = 0;
      return spx_request_held_up(r) ? spx_request_fail_pending(r) : MPI_SUCCESS;
    }
  }
  return finish_one(request, r, status);
}

/* ---- any ---- */

typedef struct {
  int ready;   /* index of a complete request, or -1 */
  int held_up; /* index of one that a failure holds up, or -1 */
  int active;  /* number of active ones */
} scan;

static scan look(int count, MPI_Request const *requests)
{
  scan s = {-1, -1, 0};
  for (int i = 0; i < count; i++) {
    spx_request *r = spx_request_of(requests[i]);
    if (!spx_request_active(r)) continue;
    s.active++;
    if (spx_request_done(r)) {
      s.ready = i;
      return s;
    }
    if (s.held_up < 0 && spx_request_held_up(r)) s.held_up = i;
  }
  return s;
}

/* Waits until look has a result. */
static scan await(int count, MPI_Request const *requests)
{
  for (;;) {
    uint32_t ticket = spx_ticket();
    scan s = look(count, requests);
    if (s.ready >= 0 || s.held_up >= 0 || s.active == 0) return s;
    spx_diag_now.fn = spx_fn;
    spx_diag_now.list = requests;
    spx_diag_now.list_n = count;
    spx_wait_event(ticket, 0);
    spx_diag_now.list = NULL;
  }
}

int spx_c_Waitany(int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status)
{
  scan s = await(count, array_of_requests);
  *indx = MPI_UNDEFINED;
  if (s.ready < 0 && s.held_up >= 0) {
    *indx = s.held_up;
    return spx_request_fail_pending(spx_request_of(array_of_requests[s.held_up]));
  }
  if (s.ready < 0) {
    spx_status_empty(status);
    return MPI_SUCCESS;
  }
  *indx = s.ready;
  return finish_one(&array_of_requests[s.ready], spx_request_of(array_of_requests[s.ready]),
                    status);
}

int spx_c_Testany(int count, MPI_Request array_of_requests[], int *indx, int *flag,
                  MPI_Status *status)
{
  scan s = look(count, array_of_requests);
  if (s.ready < 0 && s.active > 0) {
    spx_progress();
    s = look(count, array_of_requests);
  }
  *indx = MPI_UNDEFINED;
  *flag = s.ready >= 0 || s.active == 0;
  if (s.active == 0) spx_status_empty(status);
  if (s.ready < 0 && s.held_up >= 0) {
    *indx = s.held_up;
    return spx_request_fail_pending(spx_request_of(array_of_requests[s.held_up]));
  }
  if (s.ready < 0) return MPI_SUCCESS;
  *indx = s.ready;
  return finish_one(&array_of_requests[s.ready], spx_request_of(array_of_requests[s.ready]),
                    status);
}

/* ---- some ---- */

/* Collects what is complete. One that failed: MPI_ERR_IN_STATUS, and the error fields of all that
 * are given back. */
static int collect_some(int count, MPI_Request requests[], int *outcount, int indices[],
                        MPI_Status statuses[])
{
  int n = 0, failed = 0;
  spx_request_on on = {NULL, NULL};
  for (int i = 0; i < count; i++) {
    spx_request *r = spx_request_of(requests[i]);
    if (!spx_request_active(r) || !spx_request_done(r)) continue;
    MPI_Status *st = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[n];
    spx_request_on where;
    int err = spx_request_collect(&requests[i], r, st, &where);
    if (err != MPI_SUCCESS && failed) spx_request_on_drop(where);
    if (err != MPI_SUCCESS && !failed) {
      failed = 1;
      on = where;
      for (int k = 0; k < n && st; k++) statuses[k].MPI_ERROR = MPI_SUCCESS;
    }
    if (failed && st) st->MPI_ERROR = err;
    indices[n++] = i;
  }
  *outcount = n;
  return failed ? spx_request_fail(on, MPI_ERR_IN_STATUS) : MPI_SUCCESS;
}

int spx_c_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount,
                   int array_of_indices[], MPI_Status *array_of_statuses)
{
  scan s = await(incount, array_of_requests);
  *outcount = s.ready < 0 ? (s.active == 0 ? MPI_UNDEFINED : 0) : 0;
  if (s.ready < 0 && s.held_up >= 0)
    return spx_request_fail_pending(spx_request_of(array_of_requests[s.held_up]));
  if (s.ready < 0) return MPI_SUCCESS;
  return collect_some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

int spx_c_Testsome(int incount, MPI_Request array_of_requests[], int *outcount,
                   int array_of_indices[], MPI_Status *array_of_statuses)
{
  spx_progress();
  scan s = look(incount, array_of_requests);
  *outcount = s.active == 0 ? MPI_UNDEFINED : 0;
  if (s.ready < 0 && s.held_up >= 0)
    return spx_request_fail_pending(spx_request_of(array_of_requests[s.held_up]));
  if (s.ready < 0) return MPI_SUCCESS;
  return collect_some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
}
