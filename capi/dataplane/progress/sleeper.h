/* sleeper.h - what a thread waits for, and the hooks around its long sleep.
 *
 * Layer progress. Owns spx_diag_now, which callers of spx_wait and spx_wait_event write: what their
 * thread waits for. wait.c calls the hooks; they lead to diag.c (introspect), which reads it. */
#ifndef SPX_SLEEPER_H
#define SPX_SLEEPER_H
#include "spx.h"

struct spx_run;
struct spx_coll;

/* The object that a call waits for, where spx_wait and spx_wait_event have none to show; the
 * callers of these set it and reset it. A user function that leaves the call by longjmp may leave
 * it set: it counts in the call fn alone. */
typedef struct {
  uint32_t fn;
  const struct spx_run *run; /* blocking collective */
  struct {
    const spx_comm *comm;
    int src, tag;
  } probe;                 /* comm: NULL: none */
  const MPI_Request *list; /* several requests, of which one is enough */
  int list_n;
} spx_diag_waits;
SPX_HIDDEN extern SPX_TLS spx_diag_waits spx_diag_now;

/* The operation and its number behind the request of a collective; plan_request.c sets it. */
SPX_HIDDEN extern const struct spx_coll *(*spx_diag_coll_of)(const spx_request *, int32_t *tag);

/* Called with the lock held around the sleep of a thread that has slept in vain for a while. */
typedef struct {
  /* r: the request waited for, NULL: any event; since: ns of CLOCK_MONOTONIC; registers: of the
   * function that sleeps (spx_diag_registers); parked: it must be woken. Returns the argument for
   * end; -1: nothing. */
  int (*begin)(const spx_request *r, uint64_t since, const uint64_t *registers, bool parked);
  void (*end)(int slot); /* -1: nothing was begun */
} spx_sleep_hooks;
SPX_HIDDEN extern const spx_sleep_hooks *spx_sleeper; /* set at attach */

/* The registers that are needed to follow the stack from here: call it in the function that stays
 * until the hook end. */
static inline __attribute__((always_inline)) void spx_diag_registers(uint64_t r[SPX_DIAG_REGISTERS])
{
#ifdef __x86_64__
  __asm__ volatile("leaq 0(%%rip), %%rax\n\t"
                   "movq %%rax, 0(%0)\n\t"
                   "movq %%rsp, 8(%0)\n\t"
                   "movq %%rbp, 16(%0)\n\t"
                   "movq %%rbx, 24(%0)\n\t"
                   "movq %%r12, 32(%0)\n\t"
                   "movq %%r13, 40(%0)\n\t"
                   "movq %%r14, 48(%0)\n\t"
                   "movq %%r15, 56(%0)"
                   :
                   : "r"(r)
                   : "rax", "memory");
#else
  r[0] = 0;
#endif
}
#endif
