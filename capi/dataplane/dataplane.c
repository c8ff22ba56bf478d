/* dataplane.c - brings the data plane up and down: the only file that names all of its layers.
 *
 * Lower layers come first, and go last. Where a lower layer has to call a higher one, it declares a
 * hook, which is filled in here, once, before anything can call it: docs/layers.md, "Families".
 */
#include "diag.h"
#include "dp.h"
#include "fail.h"
#include "kinds.h"
#include "net_conn.h"
#include "other_way.h"
#include "progress.h"

static const spx_peer_observer *const peer_observers[] = {&spx_ring_peers, &spx_pair_peers, &spx_relay_peers,
                                                          &spx_net_peers, NULL};

static const spx_transport *const transports[] = {&spx_shm, &spx_tcp, NULL};

static const spx_failure_observer *const failure_observers[] = {&spx_clusters_failures, &spx_mcast_failures, NULL};

static spx_record_handler *const handlers[SPX_REC_LAST + 1] = {
    [SPX_REC_MCAST] = spx_mcast_on_record,     [SPX_REC_MCAST_ACK] = spx_mcast_on_record,
    [SPX_REC_MCAST_ASK] = spx_mcast_on_record, [SPX_REC_MCAST_HAVE] = spx_mcast_on_record,
    [SPX_REC_SPOILT] = spx_pass_on_spoilt,     [SPX_REC_VIA] = spx_net_via,
    [SPX_REC_CLOSE] = spx_net_closes,
};

static void detach(void)
{
  spx_ring_detach();
  spx_pairs_detach();
  spx_peers_detach();
  spx_places_detach();
  spx_diag_detach();
  spx_seg_detach();
}

int spx_dp_attach(int memfd, uint32_t me)
{
  int err = spx_seg_attach(memfd, me);
  if (err != 0) return err;
  spx_on_deaths = spx_notice_deaths;
  spx_fail_attach(failure_observers);
  spx_arrived = spx_deliver;
  spx_handlers = handlers;
  spx_kinds[SPX_R_MCAST] = &spx_mcast_kind;
  spx_casts = &spx_mcast_unexpected;
  spx_other = &spx_clusters_way;
  spx_lent_ends = spx_zero_keeps;
  spx_sources = spx_message_source;
  spx_on_sockets = &spx_net_sleeping;
  spx_detours = &spx_relay_detour;
  spx_match_reset();
  spx_get_attach();
  spx_idle_attach();
  spx_sleeper = &spx_diag_sleep;
  err = spx_diag_attach();
  if (err == 0) err = spx_places_attach();
  if (err == 0) err = spx_peers_attach(peer_observers);
  if (err == 0) err = spx_pairs_attach(transports, &spx_messages);
  if (err == 0) err = spx_ring_attach();
  if (err == 0) err = spx_net_attach();
  if (err == 0 && (err = spx_relay_attach()) != 0) spx_net_detach();
  if (err != 0) detach();
  return err;
}

void spx_dp_detach(void)
{
  if (!spx_segment) return;
  spx_mcast_detach();
  spx_net_detach();
  spx_relay_detach();
  detach();
}
