/* progress.h - what a round of progress polls, and how a process sleeps where it has sockets.
 *
 * Layer progress. Waiting (wait.c) does not depend on the layers that have something to poll: these
 * register here, at attach (dataplane.c, net.c). All but wake are called with spx_lock held, sleep
 * without it. */
#ifndef SPX_PROGRESS_H
#define SPX_PROGRESS_H
#include "spx.h"

typedef struct {
  /* One poll of all that may have arrived or may continue; all: of every sender. Returns the number
   * of things that moved. */
  int (*poll)(bool all);
  /* Nothing has come for a moment: what was held back is published. */
  void (*settle)(void);
  /* Nothing has come for long: memory that was kept for messages goes back. */
  void (*rest)(void);
  /* This process is about to sleep: it does what no other one wakes it for. As of poll. */
  int (*before_sleep)(void);
  /* Something waits for room: receivers that make some are to wake this process. */
  bool (*wants_room)(void);
} spx_progress_source;
SPX_HIDDEN extern spx_progress_source spx_sources;
SPX_HIDDEN extern const spx_progress_source spx_message_source; /* poll.c */
/* Further sources, of runs and tools, each polled in each round (spx_poller_add); not within
 * themselves. */
SPX_HIDDEN extern spx_poller *spx_pollers;
SPX_HIDDEN int spx_run_pollers(void);
/* Polled after all others, in each round: admits messages that have arrived (systems of clusters).
 * NULL: none. */
SPX_HIDDEN extern int (*spx_late_source)(void);
/* System calls that a look makes when there is nothing to be read. */
SPX_HIDDEN extern uint32_t spx_poll_calls;

/* A send with SPX_RF_HANDED is over. True: the kernel may still read its buffer, and it is complete
 * as soon as that does not. */
SPX_HIDDEN extern bool (*spx_handed_ends)(spx_request *r, int error);

typedef struct {
  /* Writes what waits for a process. False: it is not reached over sockets, and has a bell. */
  bool (*flush)(uint32_t peer);
  /* Wakes process i of the job whose memory file this is out of sleep. Any thread, no lock. */
  void (*wake)(const spx_seg *file, uint32_t i);
  /* Takes: this thread sleeps on the sockets from now on; false: another one does. Or it does not
   * any more. */
  bool (*reserve)(bool takes);
  /* Sleeps until a socket is ready or the bell rings, for at most ns; not at all if the bell has
   * another value. True: the time is over. */
  bool (*sleep)(uint32_t value, uint64_t ns);
} spx_socket_sleep;
SPX_HIDDEN extern const spx_socket_sleep *spx_on_sockets;  /* use it while spx_beyond_host() */
SPX_HIDDEN extern const spx_socket_sleep spx_net_sleeping; /* net.c */
#endif
