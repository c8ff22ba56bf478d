/* request.c - what requests of all kinds have in common: completion, release, texts of errors.
 *
 * A request that was freed before it was complete is dropped when it completes: at once, or, where
 * its finish may call user code, later with no lock held (SPX_DUE_REAP).
 */
#include "dp.h"
#include "other_way.h"
#include "progress.h"

const spx_other_way *spx_other;
bool (*spx_handed_ends)(spx_request *r, int error);
static spx_request *reap; /* freed before they were complete, and now complete */

static void drop_held(spx_request *r)
{
  if (!(r->flags & SPX_RF_HOLDS)) return;
  r->flags &= ~(uint32_t)SPX_RF_HOLDS;
  spx_unref(SPX_K_COMM, &r->comm->o);
  spx_unref(SPX_K_TYPE, &r->type->o);
}

void spx_request_free(spx_request *r)
{
  drop_held(r);
  if (r->release) r->release(r);
  spx_retire(SPX_K_REQ, &r->o);
}

void spx_drop_freed(spx_request *r)
{
  /* by itself, before it calls the program's function, which may not come back */
  bool frees = r->kind == SPX_R_GREQ;
  if (r->finish) {
    MPI_Status ignored = {0};
    r->finish(r, &ignored);
  }
  if (!frees) spx_request_free(r);
}

spx_request *spx_take_freed(void)
{
  spx_request *r = reap;
  if (r && (reap = r->next) != NULL) spx_due |= SPX_DUE_REAP;
  return r;
}

void spx_complete(spx_request *r, int error)
{
  spx_lock();
  if (SPX_UNLIKELY(r->flags & (SPX_RF_WORD | SPX_RF_HANDED))) {
    bool again = r->flags & SPX_RF_WORD && spx_other->ends(r, error);
    if (again || (r->flags & SPX_RF_HANDED && spx_handed_ends(r, error))) {
      spx_unlock();
      return;
    }
  }
  r->error = error;
  spx_happened(1);
  if (SPX_UNLIKELY(r->flags & SPX_RF_FREED)) {
    if (r->finish) {
      r->next = reap;
      reap = r;
      spx_due |= SPX_DUE_REAP;
    } else
      spx_drop_freed(r);
  } else {
    uint32_t awaited = r->flags & SPX_RF_AWAITED;
    atomic_store_explicit(&r->done, 1, memory_order_release);
    if (SPX_UNLIKELY(awaited)) spx_ring_self();
  }
  spx_unlock();
}

static int shown(int src) { return SPX_UNLIKELY(spx_is_origin(src)) ? spx_other->shown(src) : src; }

void spx_request_detail(const spx_request *r)
{
  const char *what = r->kind == SPX_R_RECV ? "receive from" : "send to";
  int rank = shown(r->want_src);
  switch (r->error) {
  case MPI_ERR_TRUNCATE:
    if (r->kind != SPX_R_RECV) break;
    spx_detail("the message from rank %d (tag %d) has %llu bytes, the receive buffer %llu",
               shown(r->src), r->tag, (unsigned long long)r->full,
               (unsigned long long)spx_capacity(r));
    break;
  case MPIX_ERR_PROC_FAILED:
    if (r->kind == SPX_R_SEND || r->kind == SPX_R_RECV) {
      if (rank == MPI_ANY_SOURCE)
        spx_detail("a process that could have sent the message has failed; MPIX_Comm_get_failed "
                   "tells which");
      else
        spx_detail("%s rank %d, which has failed", what, rank);
    }
    break;
  case MPIX_ERR_REVOKED:
    spx_detail("the communicator has been revoked (MPIX_Comm_revoke): shrink or repair it");
    break;
  case MPI_ERR_BUFFER:
    if (r->full)
      spx_detail("no room for %llu bytes in the buffer of MPI_Buffer_attach (each message also "
                 "needs MPI_BSEND_OVERHEAD)",
                 (unsigned long long)r->full);
    else
      spx_detail(
          "no buffer is attached: call MPI_Buffer_attach first, or the message does not fit");
    break;
  case MPI_ERR_NO_MEM:
    if (r->kind == SPX_R_SEND || r->kind == SPX_R_RECV)
      spx_detail("no memory for a %s rank %d", what, rank);
    break;
  default: break;
  }
}

void spx_status_set(MPI_Status *st, int src, int tag, int error, int64_t bytes, int cancelled)
{
  if (SPX_UNLIKELY(spx_is_origin(src))) src = spx_other->noted(st, src);
  if (st == MPI_STATUS_IGNORE) return;
  st->MPI_SOURCE = src;
  st->MPI_TAG = tag;
  if (error != SPX_KEEP_ERROR) st->MPI_ERROR = error;
  st->MPI_internal[0] = (int)(uint32_t)(uint64_t)bytes;
  st->MPI_internal[1] = (int)(uint32_t)((uint64_t)bytes >> 32);
  st->MPI_internal[2] = cancelled & 1;
}
