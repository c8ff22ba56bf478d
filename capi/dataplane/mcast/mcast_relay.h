/* mcast_relay.h - a message that is relayed here, between the files of the relay: mcast_relay.c
 * (from beginning to end), mcast_relay_ask.c (requests for its data), mcast_relay_have.c (members
 * that have them).
 */
#ifndef SPX_MCAST_RELAY_H
#define SPX_MCAST_RELAY_H
#include "mcast.h"

/* Of the data, what comes from one process. */
typedef struct {
  spx_request *r; /* from byte base on; NULL: there is nothing to come */
  uint64_t base;
  /* the process; which of the leads it is, NO_LEAD: the master, or the only one before this one */
  uint32_t from, lead;
} share;
#define NO_LEAD UINT32_MAX

typedef struct spx_mcast_relayed {
  struct spx_mcast_relayed *next;
  spx_poller poller;
  share *shares;  /* one for each part */
  spx_span *span; /* and where it is in the data */
  spx_block *block;
  spx_source source; /* of the next hosts */
  spx_mcast_head h;
  spx_mcast_rts where;
  uint32_t up; /* the process that sent the announcement, to which is reported */
  /* the successors that have yet to report which members have the message; SPX_NO_PEER: none, or it
   * has reported */
  uint32_t behind[2], successors;    /* how many there were */
  bool chain, whole, again, revoked; /* again: the message has come again */
  bool direct;                       /* the data go straight into a receive: mcast_relay_direct.c */
  bool partly;                       /* and are kept only as far as they were requested */
  spx_request *into;                 /* that receive, until it is complete */
  bool watches;                      /* counted in spx_restless: it looks at the clock */
  /* ns: when it did, and when something of the data has come last */
  uint64_t began, moved;
  uint32_t lead, leads; /* in parts: which of so many this one is */
  spx_member *lead_of;
  uint8_t *word; /* of each: HERE, NOTIFIED */
  uint32_t n, mine,
      /* members that have the data, or can get them here; the first `mine` are those of this
       * host */
      room;
  spx_member members[];
} relay;
/* it has said that this one gets data from it; this one has notified it of that */
enum { HERE = 1, NOTIFIED = 2 };

static inline uint32_t parts_of(const relay *x) { return x->source.parts; }
static inline bool is_doubling(const relay *x) { return x->h.flags & SPX_MCAST_DOUBLING; }

/* ---- mcast_relay.c ---- */
/* The message with this name of this master; NULL: it is not relayed here now. */
SPX_HIDDEN relay *spx_mcast_relay_find(uint32_t master, uint32_t index, uint32_t gen);
/* Nothing is to come for it any more. */
SPX_HIDDEN void spx_mcast_relay_cancel(const share *s, int error);

/* ---- mcast_relay_direct.c ---- */
/* Where the data go. */
SPX_HIDDEN char *spx_mcast_relay_room(const relay *x);
/* All data have come, or none will: completes the receive that they go into, if there is one, after
 * what has still to be sent has been copied. */
SPX_HIDDEN void spx_mcast_relay_received(relay *x, int error);

/* ---- mcast_relay_ask.c ---- */
/* Which of the leads a process is; NO_LEAD: none. */
SPX_HIDDEN uint32_t spx_mcast_relay_lead(const relay *x, uint32_t proc);
/* A word about the data of a message to one that has asked for them, or will: SPX_ASK_*. */
SPX_HIDDEN void spx_mcast_relay_answer(uint32_t peer, int32_t what, uint32_t master,
                                       const spx_mcast_rts *where);
SPX_HIDDEN void spx_mcast_relay_forget_early(void);

/* ---- mcast_relay_have.c ---- */
/* Notifies the one before, or the master, of the members that have the message. */
SPX_HIDDEN void spx_mcast_relay_notify(relay *x);
#endif
