/* attach.c - see attach.h. Lower layers come first, and go last. */
#include "attach.h"
#include <string.h>
#include "net_conn.h"
#include "progress.h"

static const spx_peer_observer *const peer_observers[] = {&spx_ring_peers, &spx_pair_peers,
                                                          &spx_relay_peers, &spx_net_peers, NULL};

static const spx_transport *const transports[] = {&spx_shm, &spx_tcp, NULL};

static spx_record_handler *all_handlers[SPX_REC_LAST + 1];

static void detach(void)
{
  spx_ring_detach();
  spx_pairs_detach();
  spx_peers_detach();
  spx_places_detach();
  spx_seg_detach();
}

static void fill_in(const spx_failure_observer *const *failures,
                    spx_record_handler *const *handlers)
{
  spx_on_deaths = spx_notice_deaths;
  spx_fail_attach(failures);
  spx_arrived = spx_deliver;
  memcpy(all_handlers, handlers, sizeof all_handlers);
  all_handlers[SPX_REC_VIA] = spx_net_via;
  all_handlers[SPX_REC_CLOSE] = spx_net_closes;
  spx_handlers = all_handlers;
  spx_handed_ends = spx_zero_keeps;
  spx_sources = spx_message_source;
  spx_on_sockets = &spx_net_sleeping;
  spx_detours = &spx_relay_detour;
}

int spx_messages_attach(int memfd, uint32_t me, const spx_failure_observer *const *failures,
                        spx_record_handler *const *handlers)
{
  int err = spx_seg_attach(memfd, me);
  if (err != 0) return err;
  fill_in(failures, handlers);
  spx_match_reset();
  spx_get_attach();
  spx_idle_attach();
  err = spx_places_attach();
  if (err == 0) err = spx_peers_attach(peer_observers);
  if (err == 0) err = spx_pairs_attach(transports, &spx_messages);
  if (err == 0) err = spx_ring_attach();
  if (err == 0) err = spx_net_attach();
  if (err == 0 && (err = spx_relay_attach()) != 0) spx_net_detach();
  if (err != 0) detach();
  return err;
}

void spx_messages_detach(void)
{
  spx_net_detach();
  spx_relay_detach();
  detach();
}
