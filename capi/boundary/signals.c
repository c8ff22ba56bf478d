/* signals.c - the application's signals and the Go runtime, which must not notice each other.
 *
 * A handler that was installed without SA_ONSTACK runs on the stack that the thread is on. A
 * goroutine's stack is a few KB, so:
 * - while the library is loaded all signals are blocked, so that the runtime's own threads never
 * take the application's (spx_sigpatch at build time removes the exceptions that the runtime makes:
 * SIGCHLD, SIGPROF, signal 34);
 * - around an entry into Go the thread blocks asynchronous signals, and has a signal stack of ours
 * in place of the application's: Go would otherwise leave its own small one installed, for the
 * application's SA_ONSTACK handlers to run on;
 * - the handlers that the runtime installs at load (SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGURG) are
 * removed again, and so is the SA_ONSTACK that it adds to every handler that the application has
 * installed before, those of the C library included. MPI_Init installs a guard for the first three
 * where the application has none: a fault in Go goes to Go, which makes a panic of it; any other
 * ends the process as if there were no handler.
 */
#define _GNU_SOURCE
#include "rlimits.h"
#include "once.h"
#include "runtime.h"
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

SPX_TLS int spx_in_go;

/* ---- leak checkers ----
 * In a program with the address sanitizer, the leak checker does not look into Go's heap, and would
 * take C memory that only Go knows for lost. What is allocated in Go, by its threads too (they are
 * made through this wrapper: -Wl,--wrap), is not looked at. */

extern void __lsan_disable(void) __attribute__((weak));
extern void __lsan_enable(void) __attribute__((weak));
extern int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                                 void *(*run)(void *), void *arg);
SPX_HIDDEN int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                                     void *(*run)(void *), void *arg);

typedef struct start {
  void *(*run)(void *);
  void *arg;
} start;

static void *run_unseen(void *arg)
{
  start s = *(start *)arg;
  free(arg);
  __lsan_disable();
  return s.run(s.arg);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
  start *s = __lsan_disable ? malloc(sizeof *s) : NULL;
  if (!s) return __real_pthread_create(thread, attr, run, arg);
  *s = (start){run, arg};
  int err = __real_pthread_create(thread, attr, run_unseen, s);
  if (err) free(s);
  return err;
}

/* ---- entries into Go ---- */

static sigset_t async_signals; /* all but those that a fault of the thread itself raises */

void spx_signals_enter(spx_sigstate *s)
{
  pthread_sigmask(SIG_BLOCK, &async_signals, &s->mask);
  const stack_t ours = spx_stack_for_signals();
  /* Fails when the thread is in a handler on its own signal stack; then that stays. */
  s->swapped = !spx_in_go && ours.ss_sp && sigaltstack(&ours, &s->stack) == 0;
  spx_in_go++;
  if (SPX_UNLIKELY(__lsan_disable != NULL)) __lsan_disable();
}

void spx_signals_leave(const spx_sigstate *s)
{
  if (SPX_UNLIKELY(__lsan_disable != NULL)) __lsan_enable();
  spx_in_go--;
  if (s->swapped) sigaltstack(&s->stack, NULL);
  pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
}

static uintptr_t text_from, text_to; /* this library's code */

static int find_text(struct dl_phdr_info *info, size_t size, void *arg)
{
  (void)size;
  (void)arg;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t from = info->dlpi_addr + p->p_vaddr, here = (uintptr_t)find_text;
    if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && here >= from && here < from + p->p_memsz) {
      text_from = from;
      text_to = from + p->p_memsz;
      return 1;
    }
  }
  return 0;
}

static bool in_library(uintptr_t pc) { return pc >= text_from && pc < text_to; }

/* ---- loading ----
 * Order: before_go (its priority puts it in front), the Go runtime's own entry of .init_array (an
 * object of the Go linker, which comes first on the link line), after_go.
 * tests/c/boundary_signals.c holds it. */

static const int guarded[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { GUARDED = sizeof guarded / sizeof *guarded, SIGNALS = 64 };

/* What the kernel keeps of a signal, and the C library changes on its way: sigaction() refuses the
 * two signals of its own, and adds flags. */
typedef struct {
  void (*handler)(int, siginfo_t *, void *);
  unsigned long flags;
  void (*restorer)(void);
  uint64_t mask;
} kernel_action;
static kernel_action found[SIGNALS + 1], go_action[GUARDED];
static sigset_t mask_at_load;

static long kernel_sigaction(int sig, const kernel_action *now, kernel_action *before)
{
  return syscall(SYS_rt_sigaction, sig, now, before, sizeof now->mask);
}

/* The runtime's watching thread sleeps 20 us fifty times after each entry into Go, until it has
 * taken back what the entry left behind. With the system's slack of 50 us that is fifty turns at a
 * processor, which cost a recovery of 256 ranks on 2 processors a quarter of its time. With this
 * slack it wakes when the processor wakes anyhow. Threads inherit it from the thread that makes
 * them. */
#define GO_SLACK_NS 2000000
static int slack_at_load;

__attribute__((constructor(101))) static void before_go(void)
{
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  sigset_t all;
  spx_limits_check();
  sigfillset(&all);
  async_signals = all;
  for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++)
    sigdelset(&async_signals, faults[i]);
  dl_iterate_phdr(find_text, NULL);
  for (int sig = 1; sig <= SIGNALS; sig++) kernel_sigaction(sig, NULL, &found[sig]);
  pthread_sigmask(SIG_SETMASK, &all, &mask_at_load);
  slack_at_load = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  if (slack_at_load > 0) prctl(PR_SET_TIMERSLACK, GO_SLACK_NS, 0, 0, 0);
}

__attribute__((constructor)) static void after_go(void)
{
  for (int i = 0; i < GUARDED; i++) kernel_sigaction(guarded[i], NULL, &go_action[i]);
  for (int sig = 1; sig <= SIGNALS; sig++) {
    kernel_action now;
    if (kernel_sigaction(sig, NULL, &now) != 0) continue;
    /* Any other change is one that another thread of the application has made meanwhile. */
    bool gos = in_library((uintptr_t)now.handler),
         flag = now.handler == found[sig].handler && now.flags != found[sig].flags;
    if (gos || flag) kernel_sigaction(sig, &found[sig], NULL);
  }
  pthread_sigmask(SIG_SETMASK, &mask_at_load, NULL);
  if (slack_at_load > 0) prctl(PR_SET_TIMERSLACK, (unsigned long)slack_at_load, 0, 0, 0);
}

/* ---- faults ---- */

static uintptr_t fault_pc(const void *context)
{
  const ucontext_t *u = context;
#if defined __x86_64__
  return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
  return (uintptr_t)u->uc_mcontext.pc;
#else
#error "which word of the context is the program counter?"
#endif
}

static int in_our_code(const void *context) { return in_library(fault_pc(context)); }

/* In a function such as memcpy, which keeps no frame, and called by us. */
static int called_by_us(const void *context)
{
  const ucontext_t *u = context;
#if defined __x86_64__
  uintptr_t back = *(const uintptr_t *)u->uc_mcontext.gregs[REG_RSP];
#else
  uintptr_t back = (uintptr_t)u->uc_mcontext.regs[30];
#endif
  return in_library(back);
}

/* One of Go's own threads: in our code, and with everything blocked, as they all are. */
static int on_go_thread(const void *context)
{
  const sigset_t *mask = &((const ucontext_t *)context)->uc_sigmask;
  return in_our_code(context) && sigismember(mask, SIGTERM) && sigismember(mask, SIGUSR1) &&
         sigismember(mask, SIGCHLD);
}

static void guard(int sig, siginfo_t *info, void *context)
{
  if (spx_in_go || on_go_thread(context)) {
    for (int i = 0; i < GUARDED; i++)
      if (guarded[i] == sig) go_action[i].handler(sig, info, context);
    return;
  }
  if (info->si_code > 0 && spx_fn && spx_state == SPX_INITIALIZED &&
      (in_our_code(context) || called_by_us(context))) {
    char cause[128], line[256]; /* no heap and no stdio here: the fault may have come from there */
    snprintf(cause, sizeof cause, "%s: %s", spx_fn_name[spx_fn],
             sig == SIGSEGV  ? "SIGSEGV"
             : sig == SIGBUS ? "SIGBUS"
                             : "SIGFPE");
    int n = snprintf(line, sizeof line,
                     "libspx: %s at address %p; is a buffer too short, or not the application's?\n "
                     " on world rank %u (pid %d)\n",
                     cause, info->si_addr, spx_proc_of(spx_me)->world_rank, (int)getpid());
    int turn;
    if (spx_may_say(cause, cause, &turn)) {
      if (write(2, line, (size_t)n) < 0) { /* nothing to be done */
      }
      spx_said(turn);
    }
  }
  signal(sig, SIG_DFL);
  if (info->si_code <= 0)
    /* sent by someone: again, when this handler has returned; a fault happens again by itself */
    raise(sig);
}

void spx_guard_faults(void)
{
  struct sigaction now, ours = {.sa_sigaction = guard, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  ours.sa_mask = async_signals;
  for (int i = 0; i < GUARDED; i++)
    if (sigaction(guarded[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
        now.sa_handler == SIG_DFL)
      sigaction(guarded[i], &ours, NULL);
}
