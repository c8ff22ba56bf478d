/* replay_shim.h - transparent takeover beside the messages (dataplane/clusters/replay.h): the
 * message log of a rank, what MPISP_Register and MPISP_Commit put into it, and how a standby gets
 * it. docs/systems.md. */
#ifndef SPX_REPLAY_SHIM_H
#define SPX_REPLAY_SHIM_H
#include "replay.h"

/* Starts replay with the system as capi/replay.go has it; no message log. The tables of s are
 * allocated, and belong to this file from now on. own: this process's cluster has transparent
 * takeover. standby: it has no rank yet, and begins when it has. first: participant of rank 0 of
 * the cluster. fd: the file of the message log, if the agent has given it to this process, or -1.
 * An MPI error code. */
SPX_HIDDEN int spx_msglog_begin(const spx_replay_setup *s, bool own, bool standby, uint32_t first,
                                int fd);
/* The descriptor of the message log; -1: there is none. */
SPX_HIDDEN int spx_msglog_file(void);
/* There are more participants: these are all of them, in allocated tables. An MPI error code. */
SPX_HIDDEN int spx_msglog_grow(uint32_t participants, const uint32_t *procs, const bool *heals,
                               const uint32_t *iop);
/* A process is that participant now. */
SPX_HIDDEN void spx_msglog_moved(uint32_t participant, uint32_t proc);
/* Call-outs of a runner (capi/takeover_meet.go); the first two return an MPI error code, with a
 * detail text. */
/* This process, a standby, has taken the rank a0 over, whose message log is the file a1, if it is
 * on this host. */
SPX_HIDDEN int64_t spx_msglog_take(spx_word *a);
/* The standby is about to take the rank a0 over: gets it the valid copy of that rank's log
 * (dataplane/clusters/copies.h). */
SPX_HIDDEN int64_t spx_msglog_fetch(spx_word *a);
/* Ends this process, a standby that is not needed any more. */
SPX_HIDDEN int64_t spx_msglog_exit(spx_word *a);
/* Member a0 keeps the copy from now on (spx_copies_keep). 0. */
SPX_HIDDEN int64_t spx_msglog_keeper(spx_word *a);
/* In MPI_Finalize: the last calls of the program are over in all ranks of the cluster. Not 0: these
 * can be taken over transparently. */
SPX_HIDDEN int64_t spx_msglog_last(spx_word *a);
/* Waits until all that this process has sent was accepted. 0. */
SPX_HIDDEN int64_t spx_msglog_settle(spx_word *a);
/* No process needs anything more of this one. Returns 0. */
SPX_HIDDEN int64_t spx_msglog_end(spx_word *a);
/* This process belongs to a cluster whose message logs have copies on other hosts, and keeps copies
 * for its peers (dataplane/clusters/copies.h). */
SPX_HIDDEN void spx_keep_copies(spx_comm *wire, int cold);

/* The message log of this process, NULL: it has none, or not yet; and bytes of each of its areas.
 */
SPX_HIDDEN spx_msglog *spx_msglog_here(void);
SPX_HIDDEN uint64_t spx_msglog_bytes(void);
SPX_HIDDEN extern bool spx_msglog_committed; /* MPISP_Commit has been called */

/* ---- replay_commit.c, which knows replay.c, and is not known there ---- */
/* A call-out after spx_msglog_end: nothing is registered any more. 0. */
SPX_HIDDEN int64_t spx_commit_end(spx_word *a);
#endif
