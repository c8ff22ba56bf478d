/* ft.h - what the engine's failure handling (capi/ft*.go) needs from C: the hook by which the data plane tells of deaths
 * and control messages, and requests that the engine completes. */
#ifndef SPX_FT_H
#define SPX_FT_H
#include "spx.h"

/* Lets the data plane call the engine (SPX_IN_FT) when deaths have been noticed or control messages have arrived. */
SPX_HIDDEN void spx_ft_start(void);
/* A request that the engine completes with spx_complete (SPX_R_GO). With a handle for the user if comm is given: errors are raised
 * on comm then. NULL when memory is out. */
SPX_HIDDEN spx_request *spx_ft_request(spx_comm *comm);
/* Call-out: waits for the request a[0] (no Go frame below), and returns its error code. */
SPX_HIDDEN int64_t spx_ft_wait(spx_word *a);
#endif
