/* peers.h - processes that come and go, and the layers that keep something for each of them.
 *
 * Layer transport. Owns which peers this process holds (peers.c). Each transport keeps something
 * for each peer, and registers an observer; dataplane.c has the list, in the order of the calls.
 * Called with spx_lock held, but for attach and detach. */
#ifndef SPX_PEERS_H
#define SPX_PEERS_H
#include "spx.h"

/* NULL: of no concern to that layer. */
typedef struct {
  void (*stale)(uint32_t peer);  /* received data are of an earlier process: forget them */
  void (*forget)(uint32_t peer); /* data to be sent, and all other state, are for an earlier one */
  void (*met)(uint32_t peer);    /* communicators lead to the process that has the number now */
  void (*released)(uint32_t peer); /* none leads there any more */
  void (*unmapped)(uint32_t peer); /* the file in which its channels lie goes */
} spx_peer_observer;
SPX_HIDDEN extern const spx_peer_observer spx_ring_peers, spx_pair_peers, spx_relay_peers,
    spx_net_peers;

/* observers: NULL at the end. An errno. */
SPX_HIDDEN int spx_peers_attach(const spx_peer_observer *const *observers);
SPX_HIDDEN void spx_peers_detach(void); /* before spx_places_detach */
/* Sets up both directions for the process that has this number now. */
SPX_HIDDEN void spx_peer_meet(uint32_t i);
/* Does a communicator lead to it, or do its last answers wait? */
SPX_HIDDEN bool spx_peer_is_held(uint32_t i);
/* Nothing waits for the peer any more; it may be abandoned. */
SPX_HIDDEN void spx_peer_idle(uint32_t peer);
#endif
