/* get.h - what get.c and stream.c share of announced messages. */
#ifndef SPX_GET_H
#define SPX_GET_H
#include "spx.h"
#include "ways.h"

/* ---- get.c ---- */
/* Sender that is about to stream, receiver that has got the message itself: the first ends the
 * reading, and it alone may go on. */
SPX_HIDDEN bool spx_get_first_to_end(uint32_t proc, uint32_t index, uint32_t gen);
/* For which later messages does it say something what a copy of a message of so many bytes
 * takes? NULL: for none. */
SPX_HIDDEN spx_ways *spx_get_timed(const spx_request *r, uint64_t bytes);
#endif
