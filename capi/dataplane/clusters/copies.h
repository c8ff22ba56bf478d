/* copies.h - the copies of logs that processes of a cluster keep for each other (copies_core.h):
 * who keeps that of this one, what this one keeps for others, and how who takes a rank over gets
 * it. The members are all processes of the cluster, standbys included, by their numbers in its
 * communicator of all. docs/systems.md. */
#ifndef SPX_COPIES_H
#define SPX_COPIES_H
#include "copies_core.h"
#include "spx.h"

/* This process belongs to a cluster with copies. */
SPX_HIDDEN extern bool spx_copies_on;
/* What leaves this process waits until the copy has what came before it. */
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
/* Others keep nothing more of it: nothing waits. */
SPX_HIDDEN void spx_copies_close(void);
/* Who keeps it has died, or others have come: spx_copies_keep is due. */
SPX_HIDDEN bool spx_copies_want(void);
/* Ranks have been taken over: it is chosen anew. */
SPX_HIDDEN void spx_copies_look(void);
/* That member keeps it, if it does not yet; -1: none can. */
SPX_HIDDEN void spx_copies_keep(int member);
SPX_HIDDEN int spx_copies_keeper(void); /* -1: none */
/* Of a member: it lives, as far as is known, and would keep a copy. */
SPX_HIDDEN bool spx_copies_can(int member);
/* The copy has that version of the log; it has been sent. */
SPX_HIDDEN bool spx_copies_have(uint64_t version);
SPX_HIDDEN bool spx_copies_sent(uint64_t version);
/* Sends what can be sent now. */
SPX_HIDDEN void spx_copies_go(void);

/* Gets this process the copy of what the rank has had that counts, in waiting for others. An MPI
 * error code, with a detail text. */
SPX_HIDDEN int spx_copies_fetch(uint32_t rank);
/* The copy that it has got is the caller's from now on, with its memory. *term: of no copy of that
 * rank is it higher. NULL: there is none. */
SPX_HIDDEN spx_msglog *spx_copies_adopt(uint32_t rank, void **memory, uint64_t *term);
#endif
