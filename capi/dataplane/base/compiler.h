/* compiler.h - what the C part asks of the compiler, and SPX_ASSERT. */
#ifndef SPX_COMPILER_H
#define SPX_COMPILER_H

#ifdef SPX_CGO /* the preambles of Go files: test programs of package capi are linked without the  \
                  C part */
#define SPX_HIDDEN
#else
#define SPX_HIDDEN __attribute__((visibility("hidden")))
#endif
#define SPX_TLS         __thread __attribute__((tls_model("initial-exec")))
#define SPX_LIKELY(x)   __builtin_expect(!!(x), 1)
#define SPX_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* What the code takes for granted of its arguments and of its own state, and what it leaves behind.
 * Always on: where it does not hold, the process ends and says so. Never of what a peer, a user or
 * the system gives. Cheap conditions alone; on the short paths only what costs nothing
 * (tests/boundary, TestInstructions). */
#define SPX_ASSERT(x) (SPX_LIKELY(x) ? (void)0 : spx_broken(__FILE__, __LINE__, #x))
SPX_HIDDEN _Noreturn void spx_broken(const char *file, int line, const char *expression)
    __attribute__((cold));
#endif
