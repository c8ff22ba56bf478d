/* plan_run.h - a plan on its way: what the files of the executor share.
 *
 *   plan.c          binding, steps, blocking runs      plan_request.c  nonblocking and persistent runs
 *   plan_temp.c     temporary memory
 */
#ifndef SPX_PLAN_RUN_H
#define SPX_PLAN_RUN_H
#include "dp.h"
#include "plan.h"

enum { SPX_PLAN_LOCAL_TAG = 1 << 30 /* set in the tags of messages within the local group of an intercommunicator */ };

typedef struct spx_transfer {
  spx_request r;
  int64_t expect; /* bytes that the plan says */
  int seen;       /* its outcome has been taken in */
} spx_transfer;

struct spx_run {
  spx_poller poller;
  spx_plan *plan;
  const spx_coll *c;     /* stays until the run has ended: on the stack of a blocking call, or with the request */
  spx_request *user;     /* nonblocking: the caller's request */
  struct spx_run *next;  /* in with_user */
  spx_transfer *blocked; /* what the run waits for */
  uint32_t pc, settled;  /* next step; transfers below settled are over */
  int32_t error, tag;
  int poisoned;    /* a peer has failed or the communicator is revoked: no more data */
  int busy;        /* somebody drives it now */
  int64_t *prefix; /* running sums of the receive counts */
  void *temp;
  size_t temp_bytes;
  char *base[SPX_PB_TEMP + SPX_PLAN_REGIONS];
  spx_transfer xfer[];
};

/* The next operation's tag on c: it tells its messages from those of other operations on the communicator. */
static inline int32_t spx_plan_tag(spx_comm *c) { return (int32_t)(c->coll_seq++ & (SPX_PLAN_LOCAL_TAG - 1)); }

/* A run of p, ready to advance. */
SPX_HIDDEN int spx_run_new(spx_plan *p, const spx_coll *c, int32_t tag, spx_run **out);
/* Goes on as far as possible: NULL at the end, else what has to complete first. */
SPX_HIDDEN spx_transfer *spx_run_advance(spx_run *run);
/* Gives a run back that is at its end. */
SPX_HIDDEN void spx_run_end(spx_run *run);
#endif
