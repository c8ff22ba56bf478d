/* dataplane.c - brings the data plane up and down: the only file that names all of its layers.
 *
 * Lower layers come first, and go last. Where a lower layer has to call a higher one, it declares a hook, and the hook is
 * filled in here, once, before anything can call it: docs/layers.md, "Families".
 */
#include "diag.h"
#include "dp.h"

static void detach(void)
{
  spx_ring_detach();
  spx_peers_detach();
  spx_places_detach();
  spx_diag_detach();
  spx_seg_detach();
}

int spx_dp_attach(int memfd, uint32_t me)
{
  int err = spx_seg_attach(memfd, me);
  if (err != 0) return err;
  spx_match_reset();
  spx_get_attach();
  spx_idle_attach();
  spx_sleeper = &spx_diag_sleep;
  err = spx_diag_attach();
  if (err == 0) err = spx_places_attach();
  if (err == 0) err = spx_peers_attach();
  if (err == 0) err = spx_ring_attach();
  if (err == 0) err = spx_net_attach();
  if (err != 0) detach();
  return err;
}

void spx_dp_detach(void)
{
  if (!spx_segment) return;
  spx_mcast_detach();
  spx_net_detach();
  detach();
}
