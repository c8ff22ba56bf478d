/* comm_dup.c - MPI_Comm_dup and MPI_Comm_free where nothing but the context is new: no entry into
 * Go. MPI-5.0, 7.4.2 and 7.4.3.
 *
 * Rank 0 takes a context and broadcasts it over the old communicator. The rest of a duplicate is
 * local: a process with attributes, hints or a topology to copy continues in the engine
 * (capi/comm_create.go), another makes a lightweight duplicate, which the engine sees at the first
 * call that needs it. */
#include "coll.h"
#include "comm.h"
#include "error.h"
#include "share.h"
#include "shim.h"
#include "takeover.h"

enum { DOZENS = 60 };

static struct {
  uint64_t next;
  int left;
} contexts;

void spx_comm_contexts_end(void) { contexts.left = 0; }

static uint64_t take(void)
{
  spx_lock();
  uint64_t got = contexts.left > 0 ? contexts.next : 0;
  if (got) {
    contexts.left--;
    contexts.next += SPX_CTX_STEP;
  }
  spx_unlock();
  return got;
}

/* A new context for one communicator, for this process to broadcast; 0: an error, with a detail
 * text. The engine deals them out by the dozen. */
static uint64_t new_context(void)
{
  uint64_t got = take();
  if (!got) {
    spx_frame f = {.fn = SPX_IN_CONTEXTS};
    f.a[0].i = DOZENS;
    f.a[1].p = &got;
    if (spx_go_internal(&f) != MPI_SUCCESS) return 0;
    spx_lock();
    contexts.next = got + SPX_CTX_STEP;
    contexts.left = DOZENS - 1;
    spx_unlock();
  }
  spx_share_offer(got);
  return got;
}

/* All get the context that rank 0 takes, or its error. */
static int agree(spx_comm *comm, uint64_t *ctx)
{
  uint64_t news[2] = {0, 0}; /* context; error */
  if (comm->rank == 0) {
    news[0] = new_context();
    if (SPX_UNLIKELY(comm->flags & SPX_C_REPLAY) && news[0]) news[0] = spx_replay_context(news[0]);
    news[1] = news[0] ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  }
  int err = spx_inside_bcast(comm, news, sizeof news);
  if (err != MPI_SUCCESS) return err;
  if (news[1] && comm->rank != 0) spx_detail("rank 0 has no context for another communicator");
  *ctx = news[0];
  return (int)news[1];
}

static bool has_more(const spx_comm *c)
{
  return c->flags & (SPX_C_TOPO | SPX_C_HINTS) || spx_comm_has_attrs(c);
}

static int make_lite_dup(spx_comm *old, uint64_t ctx, MPI_Comm *made)
{
  spx_comm *c = (spx_comm *)spx_new(SPX_K_COMM);
  if (!c) {
    spx_detail("there is no room for another communicator (at most %u exist): free those that are "
               "not used any more",
               1u << SPX_H_INDEX_BITS);
    return MPI_ERR_NO_MEM;
  }
  uint32_t *ranks = spx_ranks_share(old->local);
  spx_comm_fill(c, old->rank, old->size, old->size, ctx, ranks, ranks);
  c->flags |= SPX_C_LITE_DUP | (old->flags & SPX_C_FAR);
  c->session = old->session;
  c->errh = old->errh;
  if (c->errh) spx_ref(&c->errh->o);
  spx_takeover_born(old, c);
  *made = (MPI_Comm)(uintptr_t)c->o.handle;
  spx_ctrl_expected();
  return MPI_SUCCESS;
}

int spx_c_Comm_dup(spx_comm *comm, MPI_Comm *newcomm)
{
  uint64_t ctx = 0;
  if (!(comm->flags & (SPX_C_INTER | SPX_C_APART)) && !spx_takeover_inherits(comm) &&
      !spx_msglog_closed()) {
    int err = agree(comm, &ctx);
    bool simple = err == MPI_SUCCESS && !has_more(comm);
    if (simple) err = make_lite_dup(comm, ctx, newcomm);
    if (err != MPI_SUCCESS) return SPX_COLL_FAIL(comm, err, "%s", spx_detail_text());
    if (simple) return MPI_SUCCESS;
  }
  spx_frame frame = {.fn = spx_fn,
                     .a = {{.u = comm->o.handle}, {.u = (uintptr_t)newcomm}, {.u = ctx}}};
  return spx_go(&frame);
}

int spx_c_Comm_free(MPI_Comm *comm)
{
  spx_comm *c = (spx_comm *)spx_get(SPX_K_COMM, *comm);
  if (c->flags & SPX_C_LITE_DUP && !c->o.go && !c->parent) {
    spx_retire(SPX_K_COMM, &c->o);
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
  }
  spx_frame frame = {.fn = spx_fn, .a = {{.u = (uintptr_t)comm}}};
  return spx_go(&frame);
}
