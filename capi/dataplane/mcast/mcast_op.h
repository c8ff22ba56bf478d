/* mcast_op.h - a multicast at its master: what mcast.c and mcast_chain.c share. */
#ifndef SPX_MCAST_OP_H
#define SPX_MCAST_OP_H
#include "dp.h"

/* The request of a multicast has this behind priv. */
typedef struct {
  spx_rankset *set;
  /* the data are on the staging buffer, for members of this host: so many bytes so far */
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
   * on the staging buffer. */
  spx_request *inner, *outer; /* outer: the caller still waits for this one */
  spx_source source;          /* inner: of the first host, and of all requesters of the data */
  spx_poller pump;            /* puts more data down, and sends them */
  uint32_t head;              /* of the first host */
} spx_mcast_op;

/* Completes the multicast if nothing is left to be done for it. */
SPX_HIDDEN void spx_mcast_settle(spx_request *r);

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
/* The inner one of r, with its first bytes on the staging buffer; NULL: there is no room. */
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
