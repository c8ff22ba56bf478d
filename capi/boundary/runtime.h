/* runtime.h - what the parts of the boundary (runtime.c, signals.c, fork.c, error*.c, abort.c) and
 * Go share. spx.h has what all layers call. */
#ifndef SPX_RUNTIME_H
#define SPX_RUNTIME_H
#include <signal.h>
#include <stdbool.h>
#include "spx.h"

/* ---- signals.c ---- */
typedef struct spx_sigstate {
  sigset_t mask;
  stack_t stack;
  int swapped;
} spx_sigstate;
/* Around an entry into Go: blocks asynchronous signals and gives the thread a signal stack of the
 * library; leave undoes both. */
SPX_HIDDEN void spx_signals_enter(spx_sigstate *s);
SPX_HIDDEN void spx_signals_leave(const spx_sigstate *s);
/* > 0 while this thread is in Go, or in C called from there. */
SPX_HIDDEN extern SPX_TLS int spx_in_go;
/* From MPI_Init: faults in Go make a panic; others end the process as without a handler, after a
 * line if they are in MPI. */
SPX_HIDDEN void spx_guard_faults(void);

/* ---- stack.c ---- */
/* Threads of the application that have entered Go and live. */
SPX_HIDDEN extern _Atomic int spx_go_threads;
/* Makes the library's stack for this thread, on which Go runs, if there is none yet; false: no
 * memory. */
SPX_HIDDEN bool spx_stack_ready(void);
/* That for signals while the thread is in Go; ss_sp is NULL when spx_stack_ready has not made
 * one. */
SPX_HIDDEN stack_t spx_stack_for_signals(void);
/* Calls fn(arg) on the library's stack, which is ready. */
SPX_HIDDEN void spx_on_own_stack(void (*fn)(void *), void *arg);

/* ---- runtime.c ---- */
/* The runner that this thread is in (capi/runner.go); 0: none. */
SPX_HIDDEN uint32_t spx_runner_now(void);
/* In spx_frame.cont: what goes on is a runner, which can do so only in the thread that it has begun
 * in. */
#define SPX_CONT_RUNNER 0x80000000u
/* A thread that has entered Go ends: call-outs that it has left by that never come back. */
SPX_HIDDEN void spx_runtime_thread_ends(void);

/* ---- error.c ---- */
/* After spx_raise: the code as a user's error handler, which gets its address, has left it. */
SPX_HIDDEN int spx_code_left(void);
/* Sets this thread's detail text from bytes that need no NUL. */
SPX_HIDDEN void spx_detail_bytes(const char *text, size_t len);

/* ---- init.c ---- */
/* Calls over the network that this process has refused, by why: tcp.Refusals, which the engine
 * counts here. */
typedef struct {
  uint64_t strangers, version, old, keyless, slow;
} spx_refusals;
SPX_HIDDEN extern spx_refusals spx_refused;

/* ---- abort.c ---- */
/* A panic of the engine: prints job, rank, MPI call and text, if this process is the job's first to
 * fail; ends the job. */
SPX_HIDDEN _Noreturn void spx_crash(uint32_t fn, const char *text, size_t len);
/* Ends the job with this exit code (0 becomes 1). text is printed, on one line with host and rank,
 * by the first to claim. */
SPX_HIDDEN _Noreturn void spx_end_job(int code, const char *text);
/* As spx_end_job, for the processes of a communicator alone, if it has not all processes of the
 * job; c may be NULL. */
SPX_HIDDEN _Noreturn void spx_end_comm(spx_comm *c, int code, const char *text);
/* "rank 3 on host (job 4f..)" of this process. */
SPX_HIDDEN const char *spx_whoami(void);
/* Another launcher than spxrun has started the job. */
extern SPX_HIDDEN bool spx_under_launcher;
#endif
