/* takeover.h - clusters with standbys: the process that takes a rank over, and the communicators
 * that go with it (docs/systems.md). */
#ifndef SPX_TAKEOVER_H
#define SPX_TAKEOVER_H
#include <stdbool.h>
#include "error.h"
#include "spx.h"

/* This process belongs to a cluster with standbys: capi/takeover_meet.go. */
SPX_HIDDEN extern bool spx_takeover_on;

/* With transparent takeover (replay.c): the context of the next communicator, which this process
 * distributes: fresh, or the one that its predecessor with this rank has taken, and which peers may
 * have by now. It is in the message log before any other process can have it. A successor makes its
 * communicators again, by the same messages, as it goes through collectives again. */
SPX_HIDDEN uint64_t spx_replay_context(uint64_t fresh);
/* 1: MPISP_Commit was called: it is too late for communicators. */
SPX_HIDDEN int spx_msglog_closed(void);

/* The user has made c of old. */
static inline void spx_takeover_born(spx_comm *old, spx_comm *c)
{
  if (!spx_takeover_on || spx_mute || !(old->parent || old->flags & SPX_C_WORLD)) return;
  uint32_t birth = old->births++;
  if (!c) return;
  c->parent = old->o.handle;
  c->birth = birth;
  c->flags |= old->flags & SPX_C_REPLAY;
}

/* The next communicator that the user makes of old is there already: the process that had this rank
 * before has made it. */
static inline bool spx_takeover_inherits(const spx_comm *old)
{
  return SPX_UNLIKELY(old->births < old->inherited) && !spx_mute;
}

#endif
