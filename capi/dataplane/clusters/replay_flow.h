/* replay_flow.h - what the files of replay.h share: replay.c (the program's calls, the beginning
 * and the end), replay_going.c (frames of this process on their way), replay_coming.c (frames of
 * other participants, until they enter matching). Called with spx_lock held. */
#ifndef SPX_REPLAY_FLOW_H
#define SPX_REPLAY_FLOW_H
#include "replay.h"

enum {
  TAG_MESSAGE = 1,
  TAG_ACK = 2,
  TAG_CLAIM = 3,
  TAG_KIND = 3, /* these bits; above them 1 + the participant that it is for */
  /* frames that are accepted at once; others wait where they are, and in the end at their
   * senders */
  COMING_MOST = 64,
  /* of spx_cycles, some 100 us: interval of polls between blocking sends (answer_others) */
  ANSWER_CYCLES = 300000,
  /* messages that the program has not received: with more, one is admitted at a time */
  WAITING_MOST = 64,
  LOOK_EVERY =
      /* polls, between checks for participants that have left: where there was no notification, as
       * of an end on another host */
  64,
  KEPT_MOST =
      64 << 20 /* bytes: with more kept, calls of ranks that are taken over transparently wait */
};

typedef struct flight { /* a frame or acknowledgement of this process, until its memory is free */
  struct flight *next;
  spx_request *r;
  spx_kept *m;
  uint8_t data[];
} flight;
/* one that waits until the copy of this process's message log has what came before it */
typedef struct held {
  struct held *next;
  uint64_t need; /* version of the log */
  /* a message; NULL: so many bytes of acknowledgements, or claims, for participant */
  spx_kept *m;
  uint32_t participant, bytes;
  int tag;
  uint8_t data[];
} held;
typedef struct coming { /* one that comes */
  struct coming *next;
  spx_request *r;
  uint32_t from, proc, life;
  int tag;
  uint64_t bytes;
  uint8_t data[];
} coming;

/* the I/O process that a lane goes by, when that one has died which it has gone by */
typedef struct {
  bool known;
  uint32_t lane, participant;
} detour;

typedef struct {
  spx_comm *wire; /* rank: participant */
  spx_type *byte;
  uint32_t iops;    /* so many I/O processes */
  uint32_t *iop;    /* by participant: 1 + its number among them; 0: it is a rank */
  uint32_t *at_iop; /* by that number: the participant */
  int (*kind)(uint32_t fn);
  int (*choose)(int tag);
  uint32_t (*lane)(int iop, int tag);
  bool *heals;
  bool *apart;      /* by participant: a rank to which nothing goes that this process sends */
  bool *away;       /* by participant: an I/O process that has died, and was seen to */
  bool asks;        /* the program has looked for a message since one was let in, and may find it */
  bool leaves;      /* in MPI_Finalize: arrived messages are admitted, though the program does not
                       receive them */
  uint64_t left_at; /* ns: when that began */
  bool busy;        /* in spx_replay_poll: what it calls polls as well */
  bool own;         /* this process's rank is taken over transparently */
  bool whole;       /* nothing is announced: some rank is taken over transparently */
  bool closed;      /* spx_replay_close */
  /* the program's call reports what has arrived without waiting for it: nothing may arrive
   * meanwhile */
  bool observes;
  detour *detours; /* by lane modulo the number of I/O processes */
  flight *flights;
  held *held, **held_last; /* in their order */
  coming *first, **last;
  uint32_t ncoming, polls;
  uint64_t looked; /* when answer_others did last, by spx_cycles */
  /* of this process, at the last look for participants that have left: deaths ring it */
  uint32_t bell;
  bool changed;                  /* the participants, or their processes, have changed since */
  uint32_t nprocs, *participant; /* by process: its participant + 1 */
  uint32_t *life, *past; /* of serial_of: by participant, its process's; by process, that of the
                            last one that has a successor elsewhere */
  uint32_t *past_of;     /* by process: 1 + the participant that past is of */
  /* by process: that of one which has died while a message was on its way here */
  uint32_t *broken;
} spx_replay_flow;
SPX_HIDDEN extern spx_replay_flow spx_flow;

SPX_HIDDEN uint32_t spx_flow_serial_of(uint32_t proc);
SPX_HIDDEN int spx_flow_addressed(int kind, uint32_t participant);
SPX_HIDDEN void spx_flow_hold(spx_kept *m, uint32_t participant, int tag, const void *data,
                              size_t n);
SPX_HIDDEN void spx_flow_transmit(void *arg, spx_kept *m);
SPX_HIDDEN void spx_flow_acknowledge(void *arg, uint32_t participant, const spx_frame_ack *acks,
                                     uint32_t n);
SPX_HIDDEN void spx_flow_claim(void *arg, uint32_t participant, const spx_frame_claim *claims,
                               uint32_t n);
SPX_HIDDEN int spx_flow_land(void);
SPX_HIDDEN void spx_flow_settled(void *arg, void *waits, bool accepted);
SPX_HIDDEN void spx_flow_answer_others(void);
SPX_HIDDEN void spx_flow_place(uint32_t participant, uint32_t proc);
SPX_HIDDEN bool spx_flow_deliver(void *arg, const spx_frame_head *head, uint32_t number,
                                 uint32_t token, const uint8_t *data);
SPX_HIDDEN void spx_flow_again(void *arg, const spx_frame_head *head, uint32_t token,
                               const uint8_t *data);
SPX_HIDDEN int spx_flow_let_in(bool inside);
SPX_HIDDEN int spx_flow_look_for_left(void);
SPX_HIDDEN bool spx_flow_is_only_awaited(void);
typedef enum { RUNS, LEFT, DEAD } spx_flow_end;
SPX_HIDDEN spx_flow_end spx_flow_end_of(uint32_t proc);
#endif
