/* What positions.c does, over a connection. */
// sources: @job
// sanitize: address,undefined
// timeout: 120
#define JOB_SOCKETS 1
#include "positions.c"
