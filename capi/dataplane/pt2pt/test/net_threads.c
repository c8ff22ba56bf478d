/* As threads.c, between processes that are connected by sockets and share no channels. */
// sanitize: address,undefined thread
// timeout: 240
#define JOB_SOCKETS 1
#include "threads.c"
