/* dataplane.c - brings the data plane up and down: the only file that names all of its layers.
 *
 * Lower layers come first, and go last. Where a lower layer has to call a higher one, it declares a
 * hook, which is filled in here, once, before anything can call it: docs/layers.md, "Families".
 */
#include "attach.h"
#include "diag.h"
#include "dp.h"
#include "other_way.h"

static const spx_failure_observer *const failure_observers[] = {&spx_clusters_failures,
                                                                &spx_mcast_failures, NULL};

static spx_record_handler *const handlers[SPX_REC_LAST + 1] = {
    [SPX_REC_MCAST] = spx_mcast_on_record,     [SPX_REC_MCAST_ACK] = spx_mcast_on_record,
    [SPX_REC_MCAST_ASK] = spx_mcast_on_record, [SPX_REC_MCAST_HAVE] = spx_mcast_on_record,
    [SPX_REC_ABORTED] = spx_pass_on_aborted,
};

int spx_dp_attach(int memfd, uint32_t me)
{
  spx_kinds[SPX_R_MCAST] = &spx_mcast_kind;
  spx_casts = &spx_mcast_unexpected;
  spx_other = &spx_clusters_way;
  spx_sleeper = &spx_diag_sleep;
  int err = spx_messages_attach(memfd, me, failure_observers, handlers);
  if (err == 0 && (err = spx_diag_attach()) != 0) spx_messages_detach();
  return err;
}

void spx_dp_detach(void)
{
  if (!spx_segment) return;
  spx_mcast_detach();
  spx_diag_detach();
  spx_messages_detach();
}
