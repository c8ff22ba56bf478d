/* plan_request.c - plans behind requests: nonblocking and persistent collectives, driven by a
 * poller. MPI-5.0 6.12, 6.13. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plan_run.h"
#include "sleeper.h"

/* The arguments of a collective's request: r->priv. */
typedef struct bound {
  spx_plan *plan;
  spx_coll c;
  int32_t tag;
  char text[200];  /* the error's text */
  uint32_t ntypes; /* w forms: number of the datatypes in both directions */
  /* w forms: those for sends, then those for receives; NULL: none. Behind them: the caller's
   * arrays */
  spx_type *types[];
} bound;

static const spx_coll *coll_of(const spx_request *r, int32_t *tag)
{
  const bound *b = r->priv;
  *tag = b->tag;
  return &b->c;
}

static void hold(const spx_coll *c, int on)
{
  struct {
    spx_kind k;
    spx_obj *o;
  } held[] = {{SPX_K_COMM, &c->comm->o},
              {SPX_K_TYPE, (spx_obj *)c->stype},
              {SPX_K_TYPE, (spx_obj *)c->rtype},
              {SPX_K_OP, (spx_obj *)c->op}};
  for (unsigned i = 0; i < sizeof held / sizeof *held; i++) {
    if (!held[i].o) continue;
    if (on)
      spx_ref(held[i].o);
    else
      spx_unref(held[i].k, held[i].o);
  }
}

static void release(spx_request *r)
{
  bound *b = r->priv;
  if (!b) return;
  r->priv = NULL;
  hold(&b->c, 0);
  for (uint32_t i = 0; i < b->ntypes; i++)
    if (b->types[i]) spx_unref(SPX_K_TYPE, &b->types[i]->o);
  spx_plan_unref(b->plan);
  free(b);
}

/* MPI_Wait and its like: the text of the error goes to the thread that collects it. */
static int collect(spx_request *r, MPI_Status *st)
{
  const bound *b = r->priv;
  (void)st; /* stays empty */
  if (r->error != MPI_SUCCESS && b) spx_detail("%s", b->text);
  return r->error;
}

static void finish(spx_run *run)
{
  spx_request *user = run->user;
  bound *b = user->priv;
  int err = run->error;
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) snprintf(b->text, sizeof b->text, "%s", spx_detail_text());
  spx_run_end(run);
  spx_complete(user, err);
}

/* runs that may call the user's function now, out of the lock; under the lock */
static spx_run *with_user;

/* Continues a run that no other thread drives now; false: it has ended. The lock is held, or not:
 * see run_with_user. */
static int go_on(spx_run *run)
{
  if (SPX_UNLIKELY(run->asks)) spx_share_awake(run);
  return !spx_run_advance(run);
}

/* What a run waits for may be there. */
static bool is_due(spx_run *run)
{
  return run->blocked ? spx_is_done(&run->blocked->r) : spx_share_look(run);
}

/* User functions are never called with the lock held: with several threads such runs are left to
 * spx_plan_due. */
static int poll_run(spx_poller *p)
{
  spx_run *run = (spx_run *)((char *)p - offsetof(spx_run, poller));
  if (run->busy || !is_due(run)) return 0;
  run->busy = 1;
  if (SPX_UNLIKELY(spx_mt && run->c->op && !run->c->op->predef)) {
    run->next = with_user;
    with_user = run;
    spx_due |= SPX_DUE_PLAN;
    return 1;
  }
  int more = go_on(run);
  run->busy = 0;
  if (more) return 1;
  spx_poller_del(p);
  finish(run);
  return 1;
}

/* spx_plan_due: transfers that completed while the run was busy have not been polled by other
 * threads. */
static void run_with_user(void)
{
  for (;;) {
    spx_lock();
    spx_run *run = with_user;
    if (run) with_user = run->next;
    spx_unlock();
    if (!run) return;
    int more, again;
    do {
      more = go_on(run);
      spx_lock();
      again = more && is_due(run);
      if (!again) run->busy = 0;
      if (!more) spx_poller_del(&run->poller);
      spx_unlock();
    } while (again);
    if (!more) finish(run);
  }
}

static int start_request(spx_request *r)
{
  bound *b = r->priv;
  spx_run *run;
  atomic_store_explicit(&r->done, 0, memory_order_relaxed);
  r->flags |= SPX_RF_ACTIVE;
  r->error = MPI_SUCCESS;
  int err = spx_run_new(b->plan, &b->c, b->tag, &run);
  if (err != MPI_SUCCESS) {
    spx_complete(r, err);
    return err;
  }
  run->user = r;
  run->poller.poll = poll_run;
  spx_plan_due = run_with_user;
  if (go_on(run)) {
    spx_poller_add(&run->poller);
    /* no sleeping thread has published yet that this one waits, too */
    if (spx_mt) spx_ring_self();
  } else
    finish(run);
  return MPI_SUCCESS;
}

/* Takes references on the datatypes of one direction of a w form. */
static void hold_types(spx_type **to, const MPI_Datatype *types, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    to[i] = (spx_type *)spx_get(SPX_K_TYPE, types[i]);
    if (to[i]) spx_ref(&to[i]->o);
  }
}

/* The number of blocks in one direction: of entries in the caller's arrays. */
static uint32_t count_blocks(const spx_coll *c, int sends)
{
  const spx_comm *comm = c->comm;
  if (c->key.kind >= SPX_COLL_NEIGHBOR_ALLGATHER)
    return (uint32_t)(sends ? comm->outdegree : comm->indegree);
  return (uint32_t)(c->key.kind == SPX_COLL_REDUCE_SCATTER ? comm->size : comm->remote_size);
}

static size_t array_bytes(const spx_array *a, uint32_t n)
{
  return a->p ? ((size_t)n * (a->wide ? sizeof(int64_t) : sizeof(int32_t)) + 7) & ~(size_t)7 : 0;
}

/* Copies an array of the caller, who may change it once the call has returned; returns the room
 * behind the copy. */
static char *keep_array(spx_array *a, uint32_t n, char *at)
{
  size_t bytes = array_bytes(a, n);
  if (!a->p) return at;
  memcpy(at, a->p, (size_t)n * (a->wide ? sizeof(int64_t) : sizeof(int32_t)));
  a->p = at;
  return at + bytes;
}

int spx_plan_init(spx_plan *p, const spx_coll *c, spx_request **out)
{
  uint32_t send_blocks = count_blocks(c, 1), recv_blocks = count_blocks(c, 0);
  uint32_t nsend = c->stypes ? send_blocks : 0, nrecv = c->rtypes ? recv_blocks : 0;
  size_t types = ((size_t)nsend + nrecv) * sizeof(spx_type *);
  size_t arrays = array_bytes(&c->scounts, send_blocks) + array_bytes(&c->sdispls, send_blocks) +
                  array_bytes(&c->rcounts, recv_blocks) + array_bytes(&c->rdispls, recv_blocks);
  bound *b = calloc(1, sizeof *b + types + arrays);
  spx_request *r = b ? (spx_request *)spx_new(SPX_K_REQ) : NULL;
  if (!r) {
    free(b);
    spx_detail("no memory for a request");
    return MPI_ERR_NO_MEM;
  }
  b->plan = p;
  b->c = *c;
  b->tag = spx_plan_tag(c->comm);
  b->ntypes = nsend + nrecv;
  char *at = (char *)b->types + types;
  at = keep_array(&b->c.scounts, send_blocks, at);
  at = keep_array(&b->c.sdispls, send_blocks, at);
  at = keep_array(&b->c.rcounts, recv_blocks, at);
  keep_array(&b->c.rdispls, recv_blocks, at);
  if (c->stypes) {
    hold_types(b->types, c->stypes, nsend);
    b->c.sheld = b->types;
  }
  if (c->rtypes) {
    hold_types(b->types + nsend, c->rtypes, nrecv);
    b->c.rheld = b->types + nsend;
  }
  spx_plan_ref(p);
  hold(c, 1);
  r->kind = SPX_R_COLL;
  r->flags = SPX_RF_PERSISTENT;
  r->comm = c->comm;
  r->src = r->want_src = MPI_ANY_SOURCE;
  r->tag = r->want_tag = MPI_ANY_TAG;
  r->priv = b;
  spx_diag_coll_of = coll_of;
  r->start = start_request;
  r->finish = collect;
  r->release = release;
  *out = r;
  return MPI_SUCCESS;
}

int spx_plan_start(spx_plan *p, const spx_coll *c, spx_request **out)
{
  int err = spx_plan_init(p, c, out);
  if (err != MPI_SUCCESS) return err;
  (*out)->flags = 0;
  return start_request(*out);
}
