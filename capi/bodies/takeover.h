/* takeover.h - clusters with standbys: who takes a rank over, and the communicators that go with it (docs/systems.md). */
#ifndef SPX_TAKEOVER_H
#define SPX_TAKEOVER_H
#include "error.h"
#include "spx.h"

/* This process belongs to a cluster with standbys. base: a communicator of all of its processes, of which the first ranks are those of
 * MPI_COMM_WORLD, and the last cold are started when some have died. Called once, by the engine, in MPI_Init. */
SPX_HIDDEN void spx_takeover_begin(spx_comm *base, int ranks, int cold);
/* a0: MPI_Comm of those that are to have ranks: what they do before it counts. Returns an MPI error code, with a detail text. */
SPX_HIDDEN int64_t spx_takeover_together(spx_word *a);
SPX_HIDDEN void spx_takeover_end(void);
SPX_HIDDEN extern bool spx_takeover_on;
/* A standby waits here, in MPI_Init, until it has a rank. Returns an MPI error code, with a detail text. */
SPX_HIDDEN int spx_takeover_stand_by(void);
/* MPI_COMM_WORLD has been revoked: so are those that were made of it. Called from the engine: it raises nothing. */
SPX_HIDDEN void spx_takeover_revoked(const spx_comm *c);

/* Transparent takeover: processes of the cluster have died, or others have begun to meet: all meet, if need be. */
SPX_HIDDEN void spx_takeover_now(void);
/* Transparent takeover, MPI_Finalize: the ranks of the cluster leave together. As long as one of them has something to do, the others may be needed for it. Who dies from then on is not replaced. */
SPX_HIDDEN void spx_takeover_leave(void);

/* With transparent takeover (replay.c): the context of the next communicator, which others get from this process: fresh, or the one that the process before it with this rank has taken, and which others may have
 * by now. It is in the message log before any other process can know it. Who takes a rank over makes its communicators again, by the same messages, as it goes through collectives again. */
SPX_HIDDEN uint64_t spx_replay_context(uint64_t fresh);
/* 1: MPISP_Commit was called: it is too late for communicators. */
SPX_HIDDEN int spx_vault_closed(void);

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

/* The next communicator that the user makes of old is there already: the process that had this rank before has made it. */
static inline bool spx_takeover_inherits(const spx_comm *old)
{
  return SPX_UNLIKELY(old->births < old->heirs) && !spx_mute;
}

/* SPX_IN_TAKEOVER_LIST: a0: spx_comm * of those that will work; a1: gets a block (free) with what this process has; a2: gets its bytes.
 * SPX_IN_TAKEOVER_APPLY: a0: the same; a1: the blocks of all; a2: const int * of their bytes, by rank; a3: gets the number of ranks that were taken over.
 * SPX_IN_REPAIR: a0: one of these (capi/repair.go, package ft/repair), which */
enum {
  SPX_REPAIR_DECIDE, /* lets all living processes meet; a1: this one needs the others no more; a2: gets their MPI_Comm, a3: all leave */
  SPX_REPAIR_FORM, /* gives ranks to standbys; a1: the MPI_Comm of DECIDE, a2: gets that of those that have ranks, which stays the repair's, or MPI_COMM_NULL */
  SPX_REPAIR_JOIN, /* is what a process does that was started late: it meets the others; a2: as FORM's */
  SPX_REPAIR_AWAIT, /* waits until others meet, or no process with a rank lives and one of these has died */
  SPX_REPAIR_EMPTY  /* waits until no process has a rank */
};
#endif
