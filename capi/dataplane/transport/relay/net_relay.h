/* net_relay.h - relayed messages, between net_relay.c (the ends of a pair,
 * and ways) and net_relay_hop.c (frames at one process).
 */
#ifndef SPX_NET_RELAY_H
#define SPX_NET_RELAY_H
#include "net_conn.h"

/* of one neighbour's frames of a class that this process holds, at most */
#define CREDIT    (256u << 10)
#define HELD_MOST (16u * CREDIT) /* of all its frames, those that need no buffer with them */
#define CLASSES   SPX_ROUTE_HOPS

enum {
  VIA_ACK = 1 /* position: up to there the receiver has all */,
  VIA_ASK = 2,
  VIA_AGAIN = 4,
  VIA_CREDIT = 8
};

typedef struct frame {
  struct frame *next;
  uint32_t from, cost; /* SPX_NET_NOBODY: a process that had a number which another one has now */
  spx_rec_words as;
  uint32_t len;
  uint8_t class; /* hops that it could take when it came */
  uint8_t data[];
} frame;

/* What this process has with a neighbour, as a relay and with it as a relay. */
typedef struct {
  uint32_t credit[CLASSES], owed[CLASSES];
  uint64_t held;                         /* of its frames */
  frame *first[CLASSES], *last[CLASSES]; /* that wait for it, by the hops that they need after it */
} spx_relay_hop;

/* The form of a frame's route: whom it is for, how many hops it may take after this one, what it
 * says beside its bytes. */
#define ROUTE_LEFT  24
#define ROUTE_FLAGS 27
#define ROUTE_DST   ((1u << ROUTE_LEFT) - 1)
_Static_assert(CLASSES <= 1 << (ROUTE_FLAGS - ROUTE_LEFT),
               "the hops that are left have their place in a frame's route");

static inline uint32_t spx_via_route(uint32_t dst, uint32_t left, uint32_t flags)
{
  return dst | left << ROUTE_LEFT | flags << ROUTE_FLAGS;
}
static inline uint32_t spx_via_left(uint32_t route)
{
  return route >> ROUTE_LEFT & ((1u << (ROUTE_FLAGS - ROUTE_LEFT)) - 1);
}

/* ---- net_relay.c ---- */
/* Can frames go to this neighbour? now: ns of the clock. */
SPX_HIDDEN bool spx_relay_usable(uint32_t i, uint64_t now);
/* The neighbour, of those that need at most left hops after it, through which dst is reached; -1:
 * none. */
SPX_HIDDEN int spx_relay_way(uint32_t dst, uint32_t left, uint32_t *needs);

/* ---- net_relay_hop.c ---- */
/* By process: what this one has with a neighbour; NULL: nothing is relayed. */
SPX_HIDDEN extern spx_relay_hop *spx_hops;
SPX_HIDDEN extern uint64_t spx_hops_held; /* frames that wait for neighbours */
/* Nothing waits for it, and all its credit is there. */
SPX_HIDDEN void spx_hop_new(spx_relay_hop *h);
/* The number peer belongs to another process from now on. */
SPX_HIDDEN void spx_hop_forget(uint32_t peer);
/* Gives a frame to a neighbour. False: it has to wait. */
SPX_HIDDEN bool spx_hop_give(uint32_t next, spx_rec_words as, const uint8_t *data, uint32_t len);
/* A frame for another process. One that no way is known for is dropped: its sender sends it again,
 * another way. False: no memory. */
SPX_HIDDEN bool spx_hop_forward(uint32_t from, const spx_rec *rec, uint32_t dst, uint32_t left,
                                uint32_t flags);
/* Gives those that wait to neighbours that have room; how many. */
SPX_HIDDEN int spx_hop_send_held(void);
#endif
