/* clusters.c - what the layers below call of systems of clusters: other_way.h, fail.h. */
#include "copies.h"
#include "dp.h"
#include "fail.h"
#include "other_way.h"
#include "replay.h"

static bool sends(spx_request *r)
{
  return spx_replay_on && r->peer != spx_me && spx_replayed(r->comm, r->ctx_kind) &&
         spx_replay_send(r);
}

static bool replaced(const spx_comm *c, uint32_t ctx_kind) { return spx_replayed(c, ctx_kind); }

static bool outlives(const spx_request *r)
{
  return SPX_UNLIKELY(spx_replay_on) && r->kind == SPX_R_RECV && spx_replayed(r->comm, r->ctx_kind);
}

static void lost(spx_request *r, int error)
{
  if (r->flags & SPX_RF_KEPT)
    spx_replay_detach(r);
  else if (!spx_replay_broken(r))
    spx_complete(r, error);
}

static void numbered(uint32_t number) { spx_origin_number = number; }

static void collected(void)
{
  if (SPX_UNLIKELY(spx_copies_gate)) spx_replay_all_out();
}

const spx_other_way spx_clusters_way = {.sends = sends,
                                        .replaced = replaced,
                                        .outlives = outlives,
                                        .lost = lost,
                                        .fetched = spx_replay_fetched,
                                        .asked = spx_replay_asked,
                                        .numbered = numbered,
                                        .missed = spx_replay_missed,
                                        .taken = spx_replay_taken,
                                        .dropped = spx_replay_dropped,
                                        .ends = spx_replay_ends,
                                        .shown = spx_origin_shown,
                                        .noted = spx_origin_note,
                                        .collected = collected};

bool spx_replay_drops(void)
{
  if (!spx_replay_on || !spx_replay_core.msglog) return false;
  spx_lock();
  spx_replay_core.lost++;
  spx_replay_lost++;
  spx_due |= SPX_DUE_TAKEOVER; /* that is reported */
  spx_unlock();
  return true;
}

static void look_for_takeover(void)
{
  if (SPX_UNLIKELY(spx_replay_on)) spx_due |= SPX_DUE_TAKEOVER;
}

static void revoked(const spx_comm *c)
{
  spx_replay_revoked(c);
  look_for_takeover(); /* other members have begun one */
}

const spx_failure_observer spx_clusters_failures = {.revoked = revoked,
                                                    .changed = look_for_takeover};
