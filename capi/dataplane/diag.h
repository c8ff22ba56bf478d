/* diag.h - what this process says of its waiting to those who ask from outside (docs/diagnosis.md). */
#ifndef SPX_DIAG_H
#define SPX_DIAG_H
#include "plan_run.h"

/* What a call waits for that spx_wait and spx_wait_event are not told; the caller of these sets it and takes it back. A user function
 * that leaves the call by longjmp may leave it set: it counts in the call fn alone. */
typedef struct {
  uint32_t fn;
  const spx_run *run; /* blocking collective */
  struct {
    const spx_comm *comm;
    int src, tag;
  } probe;                 /* comm: NULL: none */
  const MPI_Request *list; /* several requests, of which one is enough */
  int list_n;
} spx_diag_waits;
SPX_HIDDEN extern SPX_TLS spx_diag_waits spx_diag_now;

/* In a system of clusters: the processes of other clusters' side whose messages a receive on this communicator may take (shim/system.c). */
SPX_HIDDEN extern void (*spx_diag_sources)(const spx_comm *, void (*each)(uint32_t proc, void *), void *arg);

/* What a request of a collective is bound to, and the operation's number; set by plan_request.c. */
SPX_HIDDEN extern const spx_coll *(*spx_diag_coll_of)(const spx_request *, int32_t *tag);

/* Prepares this process's row of the memory file. Returns an errno. */
SPX_HIDDEN int spx_diag_attach(void);
SPX_HIDDEN void spx_diag_detach(void);

/* This thread has slept in vain, and goes to sleep again: r is what it waits for, NULL: any event; since: ns of CLOCK_MONOTONIC;
 * registers: of the function that sleeps (spx_diag_registers); parked: others wake it. Returns what spx_diag_end needs. The lock is held. */
SPX_HIDDEN int spx_diag_begin(const spx_request *r, uint64_t since, const uint64_t *registers, bool parked);
SPX_HIDDEN void spx_diag_end(int slot);

/* The registers that are needed to follow the stack from here: call it in the function that stays until spx_diag_end. */
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
