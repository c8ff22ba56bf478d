/* copies.h - the copies of logs that processes of a cluster keep for each other (copies_core.h):
 * the keeper of this process's copy, the copies that this process keeps, and how the process that
 * takes a rank over gets the copy. The members are all processes of the cluster, standbys included,
 * by their numbers in its communicator of all. docs/systems.md. */
#ifndef SPX_COPIES_H
#define SPX_COPIES_H
#include "copies_core.h"
#include "spx.h"

/* This process belongs to a cluster with copies. */
SPX_HIDDEN extern bool spx_copies_on;
/* Outgoing messages wait until the copy has what precedes them. */
SPX_HIDDEN extern bool spx_copies_gate;

typedef struct spx_copies_setup {
  /* all members, in a context of their own */
  spx_comm *wire;
  /* the last so many are started later, if at all */
  int cold;
  spx_msglog *(*make)(void *arg, uint64_t area_bytes, void **memory); /* as in spx_copies */
  bool (*room)(void *arg, void *memory, uint64_t at, uint64_t bytes);
  void (*drop)(void *arg, spx_msglog *v, void *memory);
} spx_copies_setup;
SPX_HIDDEN void spx_copies_start(const spx_copies_setup *s);
SPX_HIDDEN void spx_copies_stop(void);

/* This process has the rank, and the log, whose changes spx_replay_core.version counts: from now on
 * it is copied, under terms above this one. */
SPX_HIDDEN void spx_copies_of(const spx_msglog *v, uint32_t rank, uint64_t term);
/* No copies are kept of it any more: nothing waits. */
SPX_HIDDEN void spx_copies_close(void);
/* The keeper has died, or members have joined: spx_copies_keep is due. */
SPX_HIDDEN bool spx_copies_want(void);
/* Ranks have been taken over: it is chosen anew. */
SPX_HIDDEN void spx_copies_look(void);
/* That member becomes the keeper, if it is not yet; -1: none can. */
SPX_HIDDEN void spx_copies_keep(int member);
SPX_HIDDEN int spx_copies_keeper(void); /* -1: none */
/* Of a member: it lives, as far as is known, and would keep a copy. */
SPX_HIDDEN bool spx_copies_can(int member);
/* The copy has that version of the log; it has been sent. */
SPX_HIDDEN bool spx_copies_have(uint64_t version);
SPX_HIDDEN bool spx_copies_sent(uint64_t version);
/* Sends what can be sent now. */
SPX_HIDDEN void spx_copies_go(void);

/* Fetches the valid copy of the rank's log, and waits for the members meanwhile. An MPI error code,
 * with a detail text. */
SPX_HIDDEN int spx_copies_fetch(uint32_t rank);
/* The copy that it has got is the caller's from now on, with its memory. *term: of no copy of that
 * rank is it higher. NULL: there is none. */
SPX_HIDDEN spx_msglog *spx_copies_adopt(uint32_t rank, void **memory, uint64_t *term);
#endif
