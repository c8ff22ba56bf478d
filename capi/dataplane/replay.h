/* replay.h - transparent takeover in the data plane: messages between the parties of a system travel as frames (replay_core.h), from process to process in a context
 * of their own, and enter matching as if their sender had sent them here, at moments that can be repeated. docs/systems.md. */
#ifndef SPX_REPLAY_H
#define SPX_REPLAY_H
#include "replay_core.h"
#include "spx.h"

/* This process takes part: what is sent on communicators with SPX_C_REPLAY goes this way. */
SPX_HIDDEN extern bool spx_replay_on;
SPX_HIDDEN extern spx_core spx_replay_core;

/* A function tells what has come without waiting for it; it asks for a message; it has nothing to do with messages, and does not count as a call. */
enum { SPX_REPLAY_OBSERVES = 1, SPX_REPLAY_ASKS = 2, SPX_REPLAY_LOCAL = 4 };

typedef struct spx_replay_setup {
  uint32_t parties, iops; /* from which number on they are I/O processes */
  uint32_t me;            /* this process's */
  const uint32_t *procs;  /* by party: its process */
  const bool *heals;      /* by party: who dies there is replaced */
  uint64_t ctx;
  spx_comm *wire;                            /* all parties, by number, in that context */
  uint32_t (*origin)(int cluster, int rank); /* the party of a rank of a cluster */
  int (*kind)(uint32_t fn);                  /* of a function: SPX_REPLAY_* */
  int (*choose)(int tag);                    /* the number of an I/O process for a message; -1: there is none */
  uint32_t (*lane)(int iop, int tag);        /* messages that are to keep their order have the same one */
  spx_vault *vault;                          /* NULL: what this process receives need not outlive it */
  bool (*room)(void *arg, uint64_t at, uint64_t bytes); /* of the vault */
} spx_replay_setup;
/* An MPI error code: memory. */
SPX_HIDDEN int spx_replay_begin(const spx_replay_setup *s);
SPX_HIDDEN void spx_replay_end(void);

/* A process is a party from now on; it gets what is kept for that. */
SPX_HIDDEN void spx_replay_place(uint32_t party, uint32_t proc);
/* The party that a process is; UINT32_MAX: none. */
SPX_HIDDEN uint32_t spx_replay_party(uint32_t proc);
/* I/O processes that have died since: what was sent to them goes by others. */
SPX_HIDDEN void spx_replay_reroute(void);

/* The send r of a communicator with SPX_C_REPLAY: takes it over, and completes it; false: it is to be sent as any other. */
SPX_HIDDEN bool spx_replay_send(spx_request *r);
/* A round of progress: the number of things that moved. */
SPX_HIDDEN int spx_replay_poll(void);
/* The program has called a function of MPI. */
SPX_HIDDEN void spx_replay_enter(uint32_t fn);
/* A process that is dead, and whose place another one takes. */
SPX_HIDDEN bool spx_replay_awaited(uint32_t proc);
/* All that this process has sent has been accepted. */
SPX_HIDDEN bool spx_replay_idle(void);
/* While it is more than 0 nothing is delivered: the library is at work for itself. */
SPX_HIDDEN extern int spx_replay_hold;
/* What carry out takes to another process, or drops (shim/replay.c). Called with no lock held. */
SPX_HIDDEN extern void (*spx_replay_due)(void);

/* deliver.c: a message enters matching. number: what spx_origin_number is when it is received. false: no memory. */
SPX_HIDDEN bool spx_deliver_frame(uint32_t peer, const spx_frame_head *h, const uint8_t *data);

/* This kind of message travels so. */
static inline bool spx_replayed(const spx_comm *c, uint32_t ctx_kind)
{
  return c->flags & SPX_C_REPLAY && (ctx_kind == SPX_CTX_P2P || ctx_kind == SPX_CTX_COLL);
}
#endif
