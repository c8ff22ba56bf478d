/* mcast_op.h - a multicast at its master: what the files of the master share. */
#ifndef SPX_MCAST_OP_H
#define SPX_MCAST_OP_H
#include "dp.h"

/* The request of a multicast has this behind priv. */
typedef struct {
  spx_rankset *set;
  /* the data are in the staging buffer, for members of this host: so many bytes so far */
  spx_block *block;
  uint64_t there;
  bool whole;        /* all of them, before any member is notified */
  spx_request *self; /* the message to ourselves, not complete yet */
  spx_poller poller; /* waits for that */
  bool waits,
      /* for room: records of this process to a member, the lead or (direct) to any, which no other
       * process sends */
      direct;
  uint32_t lead;
  spx_poller room; /* waits for that */
  spx_request *request;
  uint32_t left;    /* members that have not fetched it */
  uint32_t streams; /* to members that can not read our memory */
  bool over, failed;
  /* members' acknowledgements may be lost: they are queried directly */
  bool lossy;
  spx_poller gone;  /* then: looks for those that have left */
  uint8_t *fetched; /* a byte for each member of the set: NOT_YET ... */
  /* A message that goes from host to host: its caller need not wait for all of them. The caller's
   * request has the op `inner` do all that has to be done until all have it; that one has the data
   * in the staging buffer. */
  spx_request *inner, *outer; /* outer: the caller still waits for this one */
  spx_source source;          /* inner: of the first host, and of all requesters of the data */
  spx_poller pump;            /* puts more data down, and sends them */
  uint32_t head;              /* of the first host */
} spx_mcast_op;

/* Completes the multicast if nothing is left to be done for it. */
SPX_HIDDEN void spx_mcast_settle(spx_request *r);
/* Nothing is to be done for this member any more. False: it was not waited for. */
SPX_HIDDEN bool spx_mcast_strike(spx_mcast_op *o, uint32_t peer);
/* Looks for members that leave from now on: they have received it. */
SPX_HIDDEN void spx_mcast_await_gone(spx_request *r);

/* Has a member fetched it? ITSELF: not yet, and no relay does it for it, since it may have had the
 * message from here. */
enum { NOT_YET, FETCHED, ITSELF };

/* Where proc is in the set; UINT32_MAX: nowhere. */
static inline uint32_t spx_mcast_at(const spx_rankset *set, uint32_t proc)
{
  uint32_t lo = 0, hi = set->n;
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2;
    if (set->procs[mid] < proc)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < set->n && set->procs[lo] == proc ? lo : UINT32_MAX;
}

/* Its members are to acknowledge it. */
static inline bool spx_mcast_wants_acks(const spx_request *r) { return r->mode == SPX_M_SYNC; }

/* ---- mcast_kept.c ---- */
/* What this process has sent to another one as a master. */
typedef struct {
  uint32_t life;   /* the member's incarnation that all this is about */
  uint32_t number; /* of the last message */
  uint32_t acked;  /* the member has had all up to this one */
  /* all up to this one went through the member's own channel: nothing that follows there overtakes
   * them */
  uint32_t direct;
  uint64_t sent, matched; /* bytes that it may have to keep */
} spx_mcast_to;

/* A message whose members have not all acknowledged it. */
typedef struct spx_mcast_entry {
  struct spx_mcast_entry *next;
  spx_request *r; /* announced: it is not complete */
  uint32_t len;
  bool tree;      /* it has gone along the tree */
  bool split;     /* and to some members directly: these may leave before they have handed it on */
  bool all;       /* to all members directly that had not acknowledged it */
  uint8_t data[]; /* head, set, data */
} spx_mcast_entry;

SPX_HIDDEN extern spx_mcast_to *spx_mcast_out; /* by process; NULL: nothing was sent yet */
SPX_HIDDEN extern spx_mcast_entry *spx_mcast_kept, **spx_mcast_kept_end;
SPX_HIDDEN extern uint64_t spx_mcast_kept_bytes;
SPX_HIDDEN extern spx_member *spx_mcast_members; /* of the message that is being looked at */
/* Releases what all members have. Each call looks at few of them: the first that lacks a message
 * ends it. */
SPX_HIDDEN void spx_mcast_release_kept(void);
/* The number proc belongs to another process now: messages to the previous one are obsolete. */
SPX_HIDDEN void spx_mcast_renew(uint32_t proc);
/* In order with all else that this process sends to the members: each gets the message directly,
 * behind what it may lack. */
SPX_HIDDEN void spx_mcast_in_order(spx_mcast_op *o, spx_mcast_entry *e);
/* What members have said of having received it may be lost. */
SPX_HIDDEN void spx_mcast_ask_all(spx_request *r);

/* ---- mcast_hand.c ---- */
SPX_HIDDEN bool spx_mcast_hand_prepare(uint32_t n); /* for n processes; false: no memory */
SPX_HIDDEN void spx_mcast_hand_detach(void);
/* Sends a record for `to`, which forwards it to the n members of the set. */
SPX_HIDDEN void spx_mcast_put(uint32_t to, spx_mcast_head h, const spx_member *set, uint32_t n,
                              const void *data, uint32_t len);
/* Drops members that take no more messages, and so would forward none. Returns how many of the n
 * are left, and are the first ones now. */
SPX_HIDDEN uint32_t spx_mcast_living(spx_member *m, uint32_t n);
/* NULL: nothing is known of them. */
SPX_HIDDEN spx_mcast_place *spx_mcast_known_switches(void);
/* Whether r, which so many members of this host read from the staging buffer, is put there before
 * they are notified, by this process and each by itself. */
SPX_HIDDEN bool spx_mcast_whole(const spx_request *r, uint32_t readers);
/* Hands it to one member, which serves the rest; before, if it is in the staging buffer already, to
 * its readers. */
SPX_HIDDEN void spx_mcast_hand_over(spx_mcast_op *o, spx_mcast_head h, spx_member *m, uint32_t n,
                                    const void *data, uint32_t len);

/* ---- mcast_chain.c ---- */
/* This is an inner one. */
static inline bool spx_chain_is(const spx_mcast_op *o) { return o->source.data != NULL; }
/* The multicast r to n members is worth a chain of hosts. */
SPX_HIDDEN bool spx_chain_pays(const spx_request *r, const spx_member *members, uint32_t n);
/* The inner one of r, with its first bytes in the staging buffer; NULL: there is no room. */
SPX_HIDDEN spx_request *spx_chain_begin(spx_request *r, const spx_member *members, uint32_t n,
                                        void (*release)(spx_request *), spx_mcast_rts *where);
/* How the inner one s goes on to the hosts of n members, in the flags of h; switched: their
 * switches are known. Behind the announcement, of len bytes, which has room for a set of them, come
 * those that get parts. Returns the bytes of all of it. */
SPX_HIDDEN uint32_t spx_chain_way(spx_request *s, spx_mcast_head *h, const spx_member *m,
                                  uint32_t n, bool switched, uint8_t *announcement, uint32_t len);
/* The inner one s is over. */
SPX_HIDDEN void spx_chain_end(spx_request *s);
#endif
