/* request_hook.c - what somebody wants done when an operation starts, ends, and when its request goes: the Fortran library copies array sections that
 * no datatype describes (MPI-5.0, 20.1.12). It is called without a lock, by the thread that starts or collects the request. Not a function of MPI: libspxf
 * looks for it and does without it in other libraries. */
#include <stdlib.h>
#include "request.h"

typedef struct action {
  struct action *next;
  void (*start)(void *), (*finish)(void *), (*release)(void *);
  void *state;
} action;

typedef struct hook {
  struct hook *next;
  spx_request *r;
  int (*start)(spx_request *); /* the request's own */
  int (*finish)(spx_request *, MPI_Status *);
  void (*release)(spx_request *);
  action *actions;
} hook;

static hook *hooks; /* under the lock */

static hook *hook_of(spx_request *r, bool take)
{
  spx_lock();
  hook **at = &hooks;
  while (*at && (*at)->r != r) at = &(*at)->next;
  hook *h = *at;
  if (h && take) *at = h->next;
  spx_unlock();
  return h;
}

static int hooked_start(spx_request *r)
{
  hook *h = hook_of(r, false);
  for (action *a = h->actions; a; a = a->next) a->start(a->state);
  return h->start ? h->start(r) : MPI_SUCCESS;
}

/* Does what spx_request_collect does for requests that have no such function. */
static int hooked_finish(spx_request *r, MPI_Status *st)
{
  hook *h = hook_of(r, false);
  int err = r->error;
  if (h->finish)
    err = h->finish(r, st);
  else if (r->kind != SPX_R_COLL && r->kind != SPX_R_IDUP)
    spx_status_set(st, r->src, r->tag, SPX_KEEP_ERROR, r->bytes, (r->flags & SPX_RF_CANCELLED) != 0);
  for (action *a = h->actions; a && err == MPI_SUCCESS; a = a->next) a->finish(a->state);
  return err;
}

static void hooked_release(spx_request *r)
{
  hook *h = hook_of(r, true);
  while (h->actions) {
    action *a = h->actions;
    h->actions = a->next;
    a->release(a->state);
    free(a);
  }
  if (h->release) h->release(r);
  free(h);
}

static hook *new_hook(spx_request *r)
{
  hook *h = malloc(sizeof *h);
  if (!h) return NULL;
  spx_lock();
  *h = (hook){hooks, r, r->start, r->finish, r->release, NULL};
  hooks = h;
  r->start = hooked_start;
  r->finish = hooked_finish;
  r->release = hooked_release;
  spx_unlock();
  return h;
}

/* request: one that has just been made. Returns an error code: MPI_ERR_REQUEST, MPI_ERR_NO_MEM. A request may have several actions. */
__attribute__((visibility("default"))) int spx_request_hook(MPI_Request request, void (*start)(void *),
                                                            void (*finish)(void *), void (*release)(void *),
                                                            void *state)
{
  spx_request *r = spx_request_of(request);
  if (!r) return MPI_ERR_REQUEST;
  action *a = malloc(sizeof *a);
  hook *h = hook_of(r, false);
  if (a && !h) h = new_hook(r);
  if (!a || !h) {
    free(a);
    return MPI_ERR_NO_MEM;
  }
  *a = (action){h->actions, start, finish, release, state};
  h->actions = a;
  return MPI_SUCCESS;
}
