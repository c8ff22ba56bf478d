/* request_attach.c - what a layer above MPI wants done when an operation starts, when it ends, and
 * when its request goes (MPIX_Request_attach). The Fortran library copies array sections that no
 * datatype describes with it (MPI-5.0, 20.1.12). */
#include <stdlib.h>
#include "request.h"
#define FN "MPIX_Request_attach"

typedef struct action {
  struct action *next;
  MPIX_Request_function *start, *complete, *free;
  void *state;
} action;

typedef struct spx_attached {
  int (*start)(spx_request *); /* the request's own */
  int (*finish)(spx_request *, MPI_Status *);
  void (*release)(spx_request *);
  action *actions; /* the last that was attached is the first */
} attached;

static int attached_start(spx_request *r)
{
  attached *h = r->attached;
  for (action *a = h->actions; a; a = a->next)
    if (a->start) a->start(a->state);
  return h->start ? h->start(r) : MPI_SUCCESS;
}

/* Does what spx_request_collect does for requests that have no such function. */
static int attached_finish(spx_request *r, MPI_Status *st)
{
  attached *h = r->attached;
  /* that frees r, and h */
  if (r->kind == SPX_R_GREQ && r->flags & SPX_RF_FREED) return h->finish(r, st);
  int err = r->error;
  if (h->finish)
    err = h->finish(r, st);
  else if (r->kind != SPX_R_COLL && r->kind != SPX_R_IDUP)
    spx_status_set(st, r->src, r->tag, SPX_KEEP_ERROR, r->bytes,
                   (r->flags & SPX_RF_CANCELLED) != 0);
  for (action *a = h->actions; a && err == MPI_SUCCESS; a = a->next)
    if (a->complete) a->complete(a->state);
  return err;
}

static void attached_release(spx_request *r)
{
  attached *h = r->attached;
  while (h->actions) {
    action *a = h->actions;
    h->actions = a->next;
    if (a->free) a->free(a->state);
    free(a);
  }
  if (h->release) h->release(r);
  free(h);
}

/* Puts an empty list between r and its own functions. NULL: no memory. */
static attached *attach_first(spx_request *r)
{
  attached *h = malloc(sizeof *h);
  if (!h) return NULL;
  *h = (attached){r->start, r->finish, r->release, NULL};
  spx_lock(); /* the thread that completes the request reads these under it */
  r->attached = h;
  r->start = attached_start;
  r->finish = attached_finish;
  r->release = attached_release;
  spx_unlock();
  return h;
}

int spx_c_X_Request_attach(MPI_Request request, MPIX_Request_function *start_fn,
                           MPIX_Request_function *complete_fn, MPIX_Request_function *free_fn,
                           void *extra_state)
{
  spx_request *r = spx_request_of(request);
  action *a = malloc(sizeof *a);
  attached *h = r->release == attached_release ? r->attached : attach_first(r);
  if (!a || !h) {
    free(a);
    return spx_raise(0, NULL, MPI_ERR_NO_MEM, FN, "no memory for an action");
  }
  *a = (action){h->actions, start_fn, complete_fn, free_fn, extra_state};
  h->actions = a;
  return MPI_SUCCESS;
}
