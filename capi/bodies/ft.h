/* ft.h - the C side of the engine's failure handling (capi/ft*.go): the hook by which the data
 * plane reports deaths and control messages, and requests that the engine completes. */
#ifndef SPX_FT_H
#define SPX_FT_H
#include "spx.h"

/* The state of a member: bits. */
enum {
  SPX_FT_DEAD = 1,
  SPX_FT_LEFT = 2, /* after MPI_Finalize: it answers no more */
  SPX_FT_NEWS = 4, /* with one of those two: since the last time */
  SPX_FT_HELD = 8  /* the machine keeps the way there open */
};
/* Keeps the ways to all processes but member self open, also when the communicator has been freed.
 * As ties they count as parting: they connect no process with one that has freed the communicator,
 * too. */
SPX_HIDDEN void spx_ft_hold(const uint32_t *procs, uint8_t *state, uint32_t n, uint32_t self);
/* Lets those go that have ended, and those that hold us by nothing but such ties: they have left
 * the protocols. all: everybody. Returns how many are still held. */
SPX_HIDDEN uint32_t spx_ft_let_go(const uint32_t *procs, uint8_t *state, uint32_t n, int all);
/* Checks n processes, and marks in state those that have ended since: returns how many have such a
 * mark now. */
SPX_HIDDEN uint32_t spx_ft_look(const uint32_t *procs, uint8_t *state, uint32_t n);
/* Lets the data plane call the engine (SPX_IN_FT) when deaths have been noticed or control messages
 * have arrived. */
SPX_HIDDEN void spx_ft_start(void);
/* A request that the engine completes with spx_complete (SPX_R_GO). With a handle for the user if
 * comm is given: errors are raised on comm then. NULL when memory is out. */
SPX_HIDDEN spx_request *spx_ft_request(spx_comm *comm);
/* Call-out: waits for the request a[0] (no Go frame below), and returns its error code. */
SPX_HIDDEN int64_t spx_ft_wait(spx_word *a);
/* Frees a request of spx_ft_request's, now or as soon as it is complete. */
SPX_HIDDEN void spx_ft_leave(spx_request *r);
#endif
