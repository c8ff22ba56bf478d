/* As flood.c, between processes that are connected by sockets and share no channels. */
// sanitize: address,undefined
// timeout: 120
#define JOB_SOCKETS 1
#include "flood.c"
