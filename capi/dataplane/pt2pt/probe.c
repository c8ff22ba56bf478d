/* probe.c - probing, and receives of matched messages. MPI-5.0 3.8.
 *
 * A probe looks into the unexpected messages; a matching probe takes the message out, so that only
 * its handle can receive it.
 */
#include "dp.h"
#include "other_way.h"
#include "sleeper.h"

static spx_unex *find(int src, int tag, uint64_t ctx)
{
  spx_unex *e = spx_match_unexpected(ctx, src, tag);
  if (e) return e;
  spx_happened(spx_rx_poll_all(true));
  return spx_match_unexpected(ctx, src, tag);
}

static int failure(int src, const spx_comm *c, uint32_t ctx_kind)
{
  uint32_t peer = src >= 0 ? c->peer[src] : SPX_NO_PEER;
  int err = spx_comm_error(c, ctx_kind, peer);
  if (err == MPI_SUCCESS && src == MPI_ANY_SOURCE && spx_wild_blocked(c))
    err = MPIX_ERR_PROC_FAILED;
  if (err == MPIX_ERR_PROC_FAILED)
    spx_detail(
        "a process that could send the message has failed; MPIX_Comm_get_failed tells which");
  else if (err != MPI_SUCCESS)
    spx_detail("the communicator has been revoked (MPIX_Comm_revoke): shrink or repair it");
  return err;
}

static void report(spx_unex *e, MPI_Status *st, void **matched)
{
  if (SPX_UNLIKELY(spx_is_origin(e->src))) spx_other->numbered(e->seq);
  if (st != MPI_STATUS_IGNORE || SPX_UNLIKELY(spx_is_origin(e->src)))
    spx_status_set(st, e->src, e->tag, SPX_KEEP_ERROR, (int64_t)e->bytes, 0);
  if (!matched) return;
  spx_unex_remove(e);
  e->held = true;
  *matched = e;
}

static bool is_null(int src, MPI_Status *st, void **matched)
{
  if (src != MPI_PROC_NULL) return false;
  spx_status_set(st, MPI_PROC_NULL, MPI_ANY_TAG, SPX_KEEP_ERROR, 0, 0);
  if (matched) *matched = NULL;
  return true;
}

static void missed(uint64_t ctx, int src)
{
  spx_lock();
  spx_other->missed(ctx, src);
  spx_unlock();
}

int spx_iprobe(int src, int tag, spx_comm *c, uint32_t ctx_kind, int *flag, MPI_Status *st,
               void **matched)
{
  *flag = 1;
  if (is_null(src, st, matched)) return MPI_SUCCESS;
  spx_lock();
  int rc = c->revoked && ctx_kind != SPX_CTX_FT ? failure(src, c, ctx_kind) : MPI_SUCCESS;
  spx_unex *e = rc == MPI_SUCCESS ? find(src, tag, c->ctx + ctx_kind) : NULL;
  if (e) report(e, st, matched);
  spx_unlock();
  if (!e) {
    *flag = 0;
    if (SPX_UNLIKELY(spx_harm)) missed(c->ctx + ctx_kind, src);
    /* a peer may wait for our messages; without the lock, which spx_progress may pass to another
     * thread */
    spx_progress();
    spx_lock();
    if (rc == MPI_SUCCESS) rc = failure(src, c, ctx_kind);
    spx_unlock();
  }
  return rc;
}

int spx_probe(int src, int tag, spx_comm *c, uint32_t ctx_kind, MPI_Status *st, void **matched)
{
  for (;;) {
    uint32_t ticket = spx_ticket();
    int flag, rc = spx_iprobe(src, tag, c, ctx_kind, &flag, st, matched);
    if (rc != MPI_SUCCESS || flag) return rc;
    spx_diag_now.fn = spx_fn;
    spx_diag_now.probe.src = src;
    spx_diag_now.probe.tag = tag;
    spx_diag_now.probe.comm = c;
    spx_wait_event(ticket, 0);
    spx_diag_now.probe.comm = NULL;
  }
}

int spx_imrecv(void *buf, int64_t count, spx_type *t, void *matched, spx_comm *c, uint32_t flags,
               spx_request **out)
{
  spx_unex *e = matched;
  int rc = spx_persistent(SPX_R_RECV, buf, count, t, e->src, e->tag, c, (uint32_t)(e->ctx - c->ctx),
                          SPX_M_STANDARD, out);
  if (rc != MPI_SUCCESS) return rc;
  spx_lock();
  (*out)->flags =
      ((*out)->flags & ~(uint32_t)SPX_RF_PERSISTENT) | SPX_RF_ACTIVE | SPX_RF_MATCHED | flags;
  spx_take(*out, e);
  spx_unlock();
  return MPI_SUCCESS;
}
