/* As traffic.c, between processes that are connected by sockets and share no channels. */
// sanitize: address,undefined
// timeout: 240
#define JOB_SOCKETS 1
#include "traffic.c"
