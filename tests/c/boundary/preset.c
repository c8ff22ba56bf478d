/* Handlers that a program has installed before the library is loaded are as they were afterwards, to the last flag: those of all
 * signals, with and without SA_ONSTACK, and one that the C library keeps for itself. .preinit_array runs before any library's
 * constructors, so this is what a program sees that installs handlers and then calls dlopen. */
// run: n=1,2
#define _GNU_SOURCE
#include "boundary.h"
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

enum { SIGNALS = 64, SETXID = 33 /* glibc installs its own handler with the first thread */ };

typedef struct {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)(void);
  uint64_t mask;
} action;

static action before[SIGNALS + 1];

static void handler(int sig) { (void)sig; }
static void other(int sig) { (void)sig; }

static int raw(int sig, const action *set, action *get)
{
  return (int)syscall(SYS_rt_sigaction, sig, set, get, sizeof set->mask);
}

/* Three in four have a handler, with flags and masks of all kinds; of the rest some are ignored. */
static void install(void)
{
  for (int sig = 1; sig <= SIGNALS; sig++) {
    struct sigaction a = {.sa_handler = sig % 3 ? handler : other};
    action get;
    if (sig == SIGKILL || sig == SIGSTOP || sig == SETXID) continue;
    if (sig % 2) a.sa_flags |= SA_RESTART;
    if (sig % 3 == 0) a.sa_flags |= SA_NODEFER;
    if (sig % 7 == 0) a.sa_flags |= SA_ONSTACK;
    if (sig % 4 == 0) a.sa_handler = sig % 8 ? SIG_DFL : SIG_IGN;
    for (int s = sig; s < SIGNALS; s += sig) sigaddset(&a.sa_mask, s);
    if (sigaction(sig, &a, NULL) != 0 && raw(SIGUSR1, NULL, &get) == 0) { /* the C library's own: it has one by now */
      get.flags &= ~(unsigned long)SA_ONSTACK;
      raw(sig, &get, NULL);
    }
    raw(sig, NULL, &before[sig]);
  }
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = install;

static void same(const char *when)
{
  for (int sig = 1; sig <= SIGNALS; sig++) {
    action now;
    if (sig == SIGKILL || sig == SIGSTOP || sig == SETXID || (sig % 4 == 0 && before[sig].handler == SIG_DFL)) continue;
    raw(sig, NULL, &now);
    if (now.handler != before[sig].handler) FAIL("%s: another handler for signal %d", when, sig);
    if (now.flags != before[sig].flags)
      FAIL("%s: signal %d has flags %#lx instead of %#lx", when, sig, now.flags, before[sig].flags);
    if (now.mask != before[sig].mask) FAIL("%s: another mask for signal %d", when, sig);
  }
}

int main(int argc, char **argv)
{
  int handlers = 0;
  for (int sig = 1; sig <= SIGNALS; sig++) handlers += before[sig].handler == handler || before[sig].handler == other;
  CHECK(handlers > 40);
  same("after loading");
  MPI_Init(&argc, &argv);
  same("after MPI_Init");
  for (int i = 0; i < 100; i++) {
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_free(&c);
  }
  same("after entries into Go");
  MPI_Finalize();
  same("after MPI_Finalize");
  return 0;
}
