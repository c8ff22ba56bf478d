/* plan_run.h - a plan on its way: what the files of the executor share.
 *
 *   plan.c          binding, steps, blocking runs      plan_request.c  nonblocking and persistent
 * runs plan_share.c    steps in shared memory              plan_temp.c     temporary memory
 *   plan_apart.c    calls that do not match
 */
#ifndef SPX_PLAN_RUN_H
#define SPX_PLAN_RUN_H
#include "basic.h"
#include "dp.h"
#include "plan.h"
#include "share.h"

enum {
  /* set in the tags of messages within the local group of an intercommunicator */
  SPX_PLAN_LOCAL_TAG = 1 << 30,
  SPX_PLAN_LONG_TAG = 1 << 29 /* in those of blocks that go from end to end while other blocks of
                                 the operation are forwarded */
};

typedef struct spx_transfer {
  spx_request r;
  int64_t expect; /* bytes according to the plan */
  int seen;       /* its outcome has been processed */
  bool most;      /* of a receive: at most `expect` bytes come, and some */
  /* of a receive: the sender's amount, as published in shared memory, when that is not `expect`;
   * else -1 */
  int64_t sent;
} spx_transfer;

struct spx_run {
  spx_poller poller;
  spx_plan *plan;
  /* stays until the run has ended: on the stack of a blocking call, or with the request */
  const spx_coll *c;
  spx_request *user;     /* nonblocking: the caller's request */
  struct spx_run *next;  /* in with_user */
  spx_transfer *blocked; /* the transfer that the run waits for; NULL: something in shared memory */
  /* of this one the peer was found to take part by messages, too, or not yet at all */
  spx_transfer *asked;
  uint32_t pc, settled; /* next step; transfers below settled are over */
  int32_t error, tag;
  /* bytes of another rank, where all ranks must give as many as this one: the ranks that are sent
   * to are notified. -1: none */
  int64_t differs;
  int poisoned; /* a peer has failed or the communicator is revoked: no more data */
  int busy;     /* a thread drives it now */
  /* shared memory */
  uint32_t tick; /* the operation's first */
  /* AWAIT under way: ranks that have posted; what all of these are through with */
  uint32_t seen, low;
  uint8_t ended;   /* the ticks of the operation are over */
  uint8_t waited;  /* the AWAIT under way was not complete at once */
  uint8_t noticed; /* the condition that the run sleeps for holds */
  uint8_t asks;    /* it sleeps until there is room, and has published that */
  int64_t *prefix; /* running sums of the receive counts */
  void *temp;
  size_t temp_bytes;
  char *base[SPX_PB_TEMP + SPX_PLAN_REGIONS];
  spx_transfer xfer[];
};

/* The next operation's tag on c: it separates its messages from those of other operations on the
 * communicator. Tags wrap around. */
static inline int32_t spx_plan_tag(spx_comm *c)
{
  return (int32_t)(c->coll_seq++ & (SPX_PLAN_LONG_TAG - 1));
}

/* The number that those of a communicator begin at. */
static inline uint32_t spx_plan_first(void) { return (uint32_t)spx_count_from(29, 5); }
_Static_assert(SPX_PLAN_LONG_TAG == 1 << 29, "spx_plan_first");
/* A run of p, ready to advance. */
SPX_HIDDEN int spx_run_new(spx_plan *p, const spx_coll *c, int32_t tag, spx_run **out);
/* Goes on as far as possible: true at the end; else run->blocked is what has to complete first. */
SPX_HIDDEN bool spx_run_advance(spx_run *run);
/* Starts a send or receive. A transfer of no data by the caller's counts is not sent: both sides
 * skip it. */
SPX_HIDDEN void spx_run_start(spx_run *run, const spx_step *s);
/* The run fails: rank `from` sends another number of bytes than this one expects. */
SPX_HIDDEN void spx_run_disagrees(spx_run *run, int from, int64_t sent, int64_t expected);
/* The run fails: so many bytes are in the place of a block from rank `from`, or would be if they
 * were not too many for it, where this one expects another number. What only one of the two ends
 * takes for a message is ended. */
SPX_HIDDEN void spx_run_block_disagrees(spx_run *run, uint32_t from, int64_t sent,
                                        int64_t expected);
/* Gives a run back that is at its end. */
SPX_HIDDEN void spx_run_end(spx_run *run);
/* An error of the run; some poison it. */
SPX_HIDDEN void spx_run_fail(spx_run *run, int error);

/* A piece of a buffer, bound. */
typedef struct spx_piece {
  char *at;
  int64_t count;
  spx_type *type;
} spx_piece;
SPX_HIDDEN spx_piece spx_run_resolve(const spx_run *run, const spx_operand *f);
/* Copies between datatypes. */
SPX_HIDDEN void spx_piece_copy(spx_piece from, spx_piece to);
static inline spx_type *spx_byte_type(void) { return &spx_basic_types[SPX_B_BYTE]; }
static inline int64_t spx_piece_bytes(spx_piece p) { return p.count * p.type->size; }
/* The word before the place of a block with SPX_PF_SHORT in shared memory: its length in bytes, by
 * the sender's counts. */
static inline int64_t *spx_length_before(char *at) { return (int64_t *)(void *)at - 1; }
static inline bool spx_is_shared(const spx_operand *f) { return f->buf >= SPX_PB_CELL; }

/* ---- plan_share.c ---- */
/* Takes the ticks of a run that begins. An error is the run's. */
SPX_HIDDEN void spx_share_begin(spx_run *run);
/* This process is through with a tick, and with all before it. */
SPX_HIDDEN void spx_share_passed(spx_run *run, uint32_t tick);
static inline uint32_t spx_share_load(const uint32_t *p)
{
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
static inline bool spx_share_is_before(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; }

/* ---- plan_apart.c ---- */
/* A run without ticks begins: its operation goes by messages. */
SPX_HIDDEN void spx_share_outside(spx_run *run);
/* Rank peer, from which the run waits for a message, takes part in shared memory, and so will never
 * send it: an error of the run, whose ticks are counted as there. Notifies the ranks that wait
 * there for this process. */
SPX_HIDDEN bool spx_share_parted(spx_run *run, uint32_t peer);
/* Notifies the ranks that take part by messages in operations of this process in shared memory.
 * Called before it waits, once. */
SPX_HIDDEN void spx_share_look_back(spx_comm *c);
/* The rank with this line does the operation with this number by messages. */
static inline bool spx_share_is_outside(const spx_share_line *l, uint32_t tag)
{
  return __atomic_load_n(&l->outside[tag % SPX_SHARE_OUTSIDE], __ATOMIC_ACQUIRE) == tag + 1;
}

/* ---- plan_share.c: going on ---- */
/* Carries out a step in shared memory; false: not yet. */
SPX_HIDDEN bool spx_share_step(spx_run *run, const spx_step *s);
/* The run has no more steps; false: an earlier operation has to end first. */
SPX_HIDDEN bool spx_share_end(spx_run *run);
/* Whether it is worth while to advance a run that waits for something in shared memory. */
SPX_HIDDEN bool spx_share_ready(spx_run *run);
/* Whether the rank that the run waits for there takes part by messages. */
SPX_HIDDEN bool spx_share_is_parted(const spx_run *run);
/* One step of waiting, blocking, of a run that waits for something in shared memory. */
SPX_HIDDEN void spx_share_idle(spx_run *run, spx_idle *w);
/* This process publishes that it sleeps, before it does, with its `sleeping` set; true: the
 * condition that the run waits for holds by now. */
SPX_HIDDEN bool spx_share_asleep(spx_run *run);
/* It does not sleep any more. */
SPX_HIDDEN void spx_share_awake(spx_run *run);
/* spx_share_ready, for a poller: this process may be going to sleep. */
static inline bool spx_share_look(spx_run *run)
{
  if (spx_share_ready(run) || spx_share_is_parted(run)) return true;
  return __atomic_load_n(&spx_proc_of(spx_me)->sleeping, __ATOMIC_RELAXED) && spx_share_asleep(run);
}
#endif
