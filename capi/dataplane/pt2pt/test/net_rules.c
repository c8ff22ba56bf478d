/* As rules.c, between processes that are connected by sockets and share no channels. */
// sanitize: address,undefined
#define JOB_SOCKETS 1
#include "rules.c"
