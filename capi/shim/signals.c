/* signals.c - the application's signals and the Go runtime.
 *
 * A handler that was installed without SA_ONSTACK would run on a goroutine's stack, a few KB, if its signal arrived while the
 * thread is in Go: so asynchronous signals are blocked around an entry. Signals that a fault raises stay open.
 */
#include "runtime.h"
#include <pthread.h>

SPX_TLS spx_sigstate *spx_outer_signals;

void spx_signals_enter(spx_sigstate *s)
{
  static const int sync_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  sigset_t block;
  sigfillset(&block);
  for (unsigned i = 0; i < sizeof sync_signals / sizeof *sync_signals; i++) sigdelset(&block, sync_signals[i]);
  s->swapped = 0;
  pthread_sigmask(SIG_BLOCK, &block, &s->mask);
}

void spx_signals_leave(const spx_sigstate *s)
{
  pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
}
