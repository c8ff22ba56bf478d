/* comm_idup.c - the background part of MPI_Comm_idup (MPI-5.0, 7.4.2): the context of the new
 * communicator comes down a tree that the engine has laid out (core/comm, DupTree), and goes on to
 * the children. All else has been done at the call. */
#include <stdlib.h>
#include "comm.h"

/* The message: core/comm.EncodeContext. */
typedef struct message {
  uint32_t error; /* class of what went wrong, or 0 */
  uint32_t zero;
  uint64_t ctx;
} message;

typedef struct idup {
  spx_poller poller;
  spx_request *user;    /* the request that the application waits for */
  spx_request *recv;    /* from the parent, or NULL */
  spx_request **sends;  /* to the children; NULL where one could not be started */
  spx_comm *old, *made; /* referenced */
  message msg;
  int sent; /* the children have been notified */
  int tag, n, error;
  spx_edge children[];
} idup;

static spx_type *byte_type(void) { return (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE); }

static int done(const spx_request *r)
{
  return atomic_load_explicit(&((spx_request *)r)->done, memory_order_acquire) != 0;
}

/* Takes the result of a part that is complete. The first error counts. */
static void collect(idup *d, spx_request *r)
{
  if (r->error && !d->error) d->error = r->error;
  spx_request_free(r);
}

static void tell_children(idup *d)
{
  if (d->error) d->msg = (message){.error = (uint32_t)d->error};
  for (int i = 0; i < d->n; i++) {
    int err = spx_isend(&d->msg, sizeof d->msg, byte_type(), d->children[i].rank, d->tag,
                        d->children[i].comm, SPX_CTX_ENGINE, SPX_M_STANDARD, SPX_RF_INTERNAL,
                        &d->sends[i]);
    if (err) {
      d->sends[i] = NULL;
      if (!d->error) d->error = err;
    }
  }
  d->sent = 1;
}

static void end(idup *d)
{
  spx_request *user = d->user;
  int err = d->error;
  if (!err) {
    spx_comm_set_ctx(d->made, d->msg.ctx);
    spx_ctrl_expected();
  }
  spx_unref(SPX_K_COMM, &d->old->o);
  spx_unref(SPX_K_COMM, &d->made->o);
  free(d->sends);
  free(d);
  spx_complete(user, err);
}

/* One step: 1 when d has ended and is gone. */
static int step(idup *d)
{
  if (d->recv) {
    if (!done(d->recv)) return 0;
    if (!d->recv->error && (d->recv->bytes != sizeof d->msg || d->msg.error))
      d->error = d->msg.error ? (int)d->msg.error : MPI_ERR_INTERN;
    collect(d, d->recv);
    d->recv = NULL;
  }
  if (!d->sent) tell_children(d);
  for (int i = 0; i < d->n; i++) {
    if (!d->sends[i]) continue;
    if (!done(d->sends[i])) return 0;
    collect(d, d->sends[i]);
    d->sends[i] = NULL;
  }
  end(d);
  return 1;
}

/* Called under spx_lock. */
static int poll(spx_poller *p)
{
  idup *d = (idup *)p;
  if (d->recv && !done(d->recv)) return 0;
  spx_poller_del(p);
  int ended = step(d);
  if (!ended) spx_poller_add(p);
  return ended;
}

static void release(spx_request *user) { spx_unref(SPX_K_COMM, &user->comm->o); }

static idup *new_idup(spx_comm *old, spx_comm *made, const spx_edge *children, int n, int tag)
{
  idup *d = calloc(1, sizeof *d + (size_t)n * sizeof d->children[0]);
  spx_request **sends = calloc((size_t)n + 1, sizeof *sends);
  spx_request *user = (spx_request *)spx_new(SPX_K_REQ);
  if (!d || !sends || !user) {
    free(d);
    free(sends);
    if (user) spx_retire(SPX_K_REQ, &user->o);
    spx_detail("no memory for a request");
    return NULL;
  }
  user->kind = SPX_R_IDUP;
  user->flags = SPX_RF_ACTIVE;
  user->comm = old;
  user->release = release;
  spx_ref(&old->o);
  user->src = user->want_src = MPI_ANY_SOURCE;
  user->tag = user->want_tag = MPI_ANY_TAG;
  d->user = user;
  d->sends = sends;
  d->old = old;
  d->made = made;
  d->tag = tag;
  d->n = n;
  for (int i = 0; i < n; i++) d->children[i] = children[i];
  spx_ref(&old->o);
  spx_ref(&made->o);
  d->poller.poll = poll;
  return d;
}

int spx_idup_start(spx_comm *old, spx_comm *made, uint64_t ctx, const spx_edge *parent,
                   const spx_edge *children, int n, int tag, spx_request **request)
{
  idup *d = new_idup(old, made, children, n, tag);
  if (!d) return MPI_ERR_NO_MEM;
  *request = d->user;
  d->msg.ctx = ctx;
  if (parent) {
    int err = spx_irecv(&d->msg, sizeof d->msg, byte_type(), parent->rank, tag, parent->comm,
                        SPX_CTX_ENGINE, SPX_RF_INTERNAL, &d->recv);
    if (err) {
      d->recv = NULL;
      d->error = err;
    }
  }
  spx_lock();
  if (!step(d)) spx_poller_add(&d->poller);
  spx_unlock();
  return MPI_SUCCESS;
}
