/* request_more.c - freeing, cancelling and looking at requests (MPI-5.0 3.7.3, 3.7.6, 3.8.4),
 * generalized requests (13.2), and MPI_Get_count (3.2.5). */
#include <stdlib.h>
#include "request.h"

#define SELF 0, NULL
#define FN   spx_fn_name[spx_fn]

/* An active request is completed behind the user's back. Its handle is gone at once, but for a
 * generalized request's: it is what MPI_Grequest_complete will be called with. */
int spx_c_Request_free(MPI_Request *request)
{
  spx_request *r = spx_request_of(*request);
  *request = MPI_REQUEST_NULL;
  spx_lock();
  bool active = spx_request_active(r), done = spx_request_done(r);
  if (active && !done) {
    r->flags |= SPX_RF_FREED;
    if (r->kind != SPX_R_GREQ) {
      spx_ref(&r->o);
      spx_retire(SPX_K_REQ, &r->o);
    }
  }
  spx_unlock();
  if (active && !done) return MPI_SUCCESS;
  bool frees = active && r->kind == SPX_R_GREQ; /* by itself */
  if (active && r->finish) {
    MPI_Status ignored;
    r->flags |= SPX_RF_FREED;
    r->finish(r, &ignored);
  }
  if (!frees) spx_request_free(r);
  return MPI_SUCCESS;
}

int spx_c_Cancel(MPI_Request *request)
{
  spx_request *r = spx_request_of(*request);
  if (!spx_request_active(r))
    return spx_raise(SELF, MPI_ERR_REQUEST, FN,
                     "the request is not active: there is nothing to cancel");
  if (r->kind != SPX_R_SEND && r->kind != SPX_R_RECV && !r->cancel)
    return spx_raise(SELF, MPI_ERR_REQUEST, FN,
                     "requests of this operation can not be cancelled: only sends, receives and "
                     "generalized requests");
  int rc = spx_cancel(r);
  return rc == MPI_SUCCESS ? rc : spx_raise(SELF, rc, FN, "%s", spx_detail_text());
}

/* ---- looking without completing ---- */

static int generalized_query(spx_request *r, MPI_Status *st);

static int peek(MPI_Request h, MPI_Status *st)
{
  spx_request *r = spx_request_of(h);
  if (!spx_request_active(r)) {
    spx_status_empty(st);
    return 1;
  }
  if (!spx_request_done(r)) return 0;
  if (st == MPI_STATUS_IGNORE) return 1;
  int keep = st->MPI_ERROR;
  if (r->kind == SPX_R_GREQ)
    generalized_query(r, st);
  else if (r->kind == SPX_R_COLL || r->kind == SPX_R_IDUP)
    spx_status_empty(st);
  else
    spx_status_set(st, r->src, r->tag, SPX_KEEP_ERROR, r->bytes,
                   (r->flags & SPX_RF_CANCELLED) != 0);
  st->MPI_ERROR = keep;
  return 1;
}

int spx_c_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
  *flag = peek(request, status);
  if (!*flag) {
    spx_progress();
    *flag = peek(request, status);
  }
  return MPI_SUCCESS;
}

int spx_c_Request_get_status_any(int count, const MPI_Request array_of_requests[], int *indx,
                                 int *flag, MPI_Status *status)
{
  int active = 0;
  spx_progress();
  *indx = MPI_UNDEFINED;
  for (int i = 0; i < count; i++) {
    if (!spx_request_active(spx_request_of(array_of_requests[i]))) continue;
    active++;
    if (!peek(array_of_requests[i], status)) continue;
    *indx = i;
    *flag = 1;
    return MPI_SUCCESS;
  }
  *flag = active == 0;
  if (*flag) spx_status_empty(status);
  return MPI_SUCCESS;
}

int spx_c_Request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag,
                                 MPI_Status *array_of_statuses)
{
  spx_progress();
  *flag = 1;
  for (int i = 0; i < count; i++)
    if (!peek(array_of_requests[i], MPI_STATUS_IGNORE)) *flag = 0;
  for (int i = 0; i < count && *flag && array_of_statuses != MPI_STATUSES_IGNORE; i++)
    peek(array_of_requests[i], &array_of_statuses[i]);
  return MPI_SUCCESS;
}

int spx_c_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int *outcount,
                                  int array_of_indices[], MPI_Status *array_of_statuses)
{
  int active = 0, n = 0;
  spx_progress();
  for (int i = 0; i < incount; i++) {
    if (!spx_request_active(spx_request_of(array_of_requests[i]))) continue;
    active++;
    if (peek(array_of_requests[i],
             array_of_statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &array_of_statuses[n]))
      array_of_indices[n++] = i;
  }
  *outcount = active ? n : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

/* ---- generalized requests ---- */

typedef struct {
  MPI_Grequest_query_function *query;
  MPI_Grequest_free_function *free;
  MPI_Grequest_cancel_function *cancel;
  void *extra;
} generalized;

static int generalized_query(spx_request *r, MPI_Status *st)
{
  generalized *g = r->priv;
  spx_status_empty(st);
  return g->query ? g->query(g->extra, st) : MPI_SUCCESS;
}

/* Runs user code: no lock is held, and it may not come back (longjmp). */
static int generalized_finish(spx_request *r, MPI_Status *st)
{
  generalized g = *(generalized *)r->priv;
  bool freed = r->flags & SPX_RF_FREED;
  if (freed) spx_request_free(r); /* before its function, which may not come back */
  int err = freed ? MPI_SUCCESS : generalized_query(r, st);
  int rc = g.free ? g.free(g.extra) : MPI_SUCCESS;
  if (err == MPI_SUCCESS) err = rc;
  if (err != MPI_SUCCESS)
    spx_detail("the query or free function of the generalized request returned %d", err);
  return err;
}

static int generalized_cancel(spx_request *r)
{
  generalized *g = r->priv;
  int rc = g->cancel ? g->cancel(g->extra, (int)spx_request_done(r)) : MPI_SUCCESS;
  if (rc != MPI_SUCCESS)
    spx_detail("the cancel function of the generalized request returned %d", rc);
  return rc;
}

static void generalized_release(spx_request *r) { free(r->priv); }

int spx_c_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                         MPI_Grequest_cancel_function *cancel_fn, void *extra_state,
                         MPI_Request *request)
{
  generalized *g = malloc(sizeof *g);
  spx_request *r = g ? (spx_request *)spx_new(SPX_K_REQ) : NULL;
  if (!r) {
    free(g);
    return spx_raise(SELF, MPI_ERR_NO_MEM, FN, "no memory for a request");
  }
  *g = (generalized){query_fn, free_fn, cancel_fn, extra_state};
  r->kind = SPX_R_GREQ;
  r->flags = SPX_RF_ACTIVE;
  r->src = MPI_ANY_SOURCE;
  r->tag = MPI_ANY_TAG;
  r->priv = g;
  r->finish = generalized_finish;
  r->cancel = generalized_cancel;
  r->release = generalized_release;
  *request = spx_request_handle(r);
  return MPI_SUCCESS;
}

int spx_c_Grequest_complete(MPI_Request request)
{
  spx_request *r = spx_request_of(request);
  if (r->kind != SPX_R_GREQ)
    return spx_raise(SELF, MPI_ERR_REQUEST, FN, "the request is not a generalized one");
  if (spx_request_done(r))
    return spx_raise(SELF, MPI_ERR_REQUEST, FN, "the request is complete already");
  spx_complete(r, MPI_SUCCESS);
  spx_ring_self();
  spx_progress(); /* if it was freed before, its free function is due now */
  return MPI_SUCCESS;
}

/* ---- counts ---- */

int spx_c_Get_count(const MPI_Status *status, spx_type *datatype, spx_count_out count)
{
  int64_t n = spx_status_bytes(status), size = datatype->size;
  if (size == 0)
    spx_count_store(count, n == 0 ? 0 : MPI_UNDEFINED);
  else
    spx_count_store(count, n % size == 0 ? n / size : MPI_UNDEFINED);
  return MPI_SUCCESS;
}
