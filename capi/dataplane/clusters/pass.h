/* pass.h - what pass.c, which hands long messages on while they come, shares with those that move
 * their data. The lock is held.
 *
 * Both halves of it, a receive and a send, are requests with SPX_RF_PASS: their data lie in no
 * buffer of theirs, but in a room that is used over and over. */
#ifndef SPX_PASS_H
#define SPX_PASS_H
#include "spx.h"
#include "record.h"

typedef struct spx_pass spx_pass;
struct spx_unex;

/* The receiver of the send half has died, and another process takes its place: all of the message
 * is requested again. */
SPX_HIDDEN void spx_pass_again(spx_request *out);
/* The message that r is receiving was never sent: r waits for another message, or fails if it was
 * meant for this one alone. */
SPX_HIDDEN void spx_receive_aborted(spx_request *r);

/* Hands message e, which was matched on `from`, on to rank dest of `to`, through at most so many
 * bytes if it was announced. *request is complete when that rank has it all. An error: nothing was
 * done, and e is as it was. */
SPX_HIDDEN int spx_pass_start(struct spx_unex *e, spx_comm *from, int dest, spx_comm *to,
                              uint64_t most, spx_request **request);
#endif
