/* fork.c - a child that was forked after libspx was loaded may exec, and nothing else. */
#include "runtime.h"
#include "trace.h"
#include <pthread.h>

int spx_forked;

static void in_child(void)
{
  spx_forked = 1;
  spx_aside |= SPX_ASIDE_FORKED;
  spx_state = SPX_BEFORE_INIT; /* the shims' quick check fails, and the slow path reports why */
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }
