/* rlimits.h - limits on the memory of the process. */
#ifndef SPX_RLIMITS_H
#define SPX_RLIMITS_H
#include "spx.h"

/* Ends the process with a message when a limit on its memory leaves the library no room. Before the
 * Go runtime begins. */
SPX_HIDDEN void spx_limits_check(void);
#endif
