/* As positions.c, over a connection. */
// sanitize: address,undefined
// timeout: 120
#define JOB_SOCKETS 1
#include "positions.c"
