/* plan_apart.c - calls of a collective that do not match.
 *
 * Each process chooses from its arguments whether an operation uses messages or shared memory.
 * Where these do not match, some ranks may wait for messages of ranks that use shared memory, and
 * those for posts of the former. Each process notes its way, then checks whether the ranks that it
 * waits for have taken the other way, then waits; a fence is between note and check, so that of two
 * ranks at least one sees the other. */
#include "plan_run.h"

void spx_share_outside(spx_run *run)
{
  spx_comm *c = run->c->comm;
  run->asked = NULL;
  if (!c->share && (!spx_share_offered(c) || spx_share_attach(c) != MPI_SUCCESS)) return;
  uint32_t *list = c->share->lines[c->share->me].outside;
  __atomic_store_n(&list[(uint32_t)run->tag % SPX_SHARE_OUTSIDE], (uint32_t)run->tag + 1,
                   __ATOMIC_RELEASE);
}

static bool is_inside(const spx_share_line *l, uint32_t tag)
{
  return __atomic_load_n(&l->inside[tag % SPX_SHARE_INSIDE], __ATOMIC_ACQUIRE) == tag + 1;
}

bool spx_share_parted(spx_run *run, uint32_t peer)
{
  spx_comm *c = run->c->comm;
  spx_share *sh = c->share;
  uint32_t tag = (uint32_t)run->tag;
  /* with ticks: both ways belong to the plan */
  if (!sh || peer >= sh->n || run->plan->ticks) return false;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  const spx_share_line *l = &sh->lines[peer];
  uint32_t after = spx_share_load(&l->after[tag % SPX_SHARE_INSIDE]);
  if (SPX_LIKELY(!is_inside(l, tag))) {
    for (uint32_t i = 0; SPX_UNLIKELY(spx_share_load(&sh->head->asleep)) && i < sh->n; i++)
      if (is_inside(&sh->lines[i], tag)) spx_ring_bell(c->peer[i]);
    return false;
  }
  if (spx_share_is_before(sh->next, after)) {
    sh->next = after;
    spx_share_passed(run, after - 1);
    atomic_store_explicit(&sh->finished, after - 1, memory_order_release);
  }
  spx_detail("rank %u takes part with another size of data than this process: the calls of the "
             "processes do not match",
             peer);
  spx_run_fail(run, MPI_ERR_TRUNCATE);
  return true;
}

/* An empty message of an operation, to a rank that waits for another one. Nothing is done when
 * there is no memory. */
static void note(spx_comm *c, uint32_t rank, uint32_t tag)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  if (!r) return;
  r->kind = SPX_R_SEND;
  r->mode = SPX_M_STANDARD;
  r->flags = SPX_RF_INTERNAL | SPX_RF_FREED |
             SPX_RF_HOLDS; /* it may wait for room longer than the communicator is the user's */
  r->src = r->want_src = (int32_t)rank;
  r->tag = r->want_tag = (int32_t)tag;
  r->type = spx_byte_type();
  r->comm = c;
  r->ctx = c->ctx + SPX_CTX_COLL;
  r->ctx_kind = SPX_CTX_COLL;
  r->peer = c->peer[rank];
  spx_ref(&c->o);
  spx_ref(&r->type->o);
  spx_lock();
  spx_send_start(r);
  spx_unlock();
}

/* An operation with this number + 1, one of this process's last: was it published with those up to
 * `noted`? Numbers wrap. */
static bool is_noted(uint64_t noted, uint32_t number)
{
  return noted != SPX_SHARE_NONE &&
         (((uint32_t)noted - number) & (SPX_PLAN_LONG_TAG - 1)) <= SPX_SHARE_INSIDE;
}

void spx_share_look_back(spx_comm *c)
{
  spx_share *sh = c->share;
  if (!sh || !sh->behind) return;
  sh->behind = false;
  uint64_t noted = sh->noted;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < sh->n; i++)
    for (uint32_t k = 0; k < SPX_SHARE_OUTSIDE && i != sh->me; k++) {
      uint32_t number = spx_share_load(&sh->lines[i].outside[k]);
      if (SPX_LIKELY(number == 0 || !is_inside(&sh->lines[sh->me], number - 1) ||
                     is_noted(noted, number)))
        continue;
      note(c, i, number - 1);
      if (!is_noted(sh->noted, number)) sh->noted = number;
    }
}
