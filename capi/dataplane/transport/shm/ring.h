/* ring.h - the transport of processes that share memory: channels and rings (ring.c).
 *
 * Layer shm. Called with spx_lock held. */
#ifndef SPX_RING_H
#define SPX_RING_H
#include "transport.h"

SPX_HIDDEN int spx_ring_attach(void); /* behind spx_pairs_attach; an errno */
SPX_HIDDEN void spx_ring_detach(void);
/* Sets up the receiving side for the incarnation life of a process, although another one may have
 * its number by now. */
SPX_HIDDEN void spx_rx_init_as(uint32_t peer, uint16_t life);
/* Polls one sender: returns the number of records consumed. */
SPX_HIDDEN int spx_rx_poll(uint32_t peer);
/* Drains all records of a dead sender, incarnation life of that process. */
SPX_HIDDEN void spx_rx_drain(uint32_t peer, uint16_t life);
/* Polls the senders that have written: recent writers each time; the rest when all is set, else now
 * and then. */
SPX_HIDDEN int spx_rx_poll_all(bool all);
/* Publishes tails and credit that were held back. */
SPX_HIDDEN void spx_rx_settle(void);
SPX_HIDDEN void spx_rx_owe(uint32_t peer);
/* Publishes to a sender that shares memory how much of its data has been matched. */
static inline void spx_rx_publish_matched(spx_rx *rx)
{
  rx->matched_published = rx->matched;
  __atomic_store_n(&rx->chan->matched, spx_position_word(rx->epoch, rx->matched), __ATOMIC_RELAXED);
}
#endif
