/* stack.c - the stack on which Go runs, one for each thread that enters it.
 *
 * The stack of an MPI call is the application's: a thread's of 64 KiB, or that of a user-level
 * thread (makecontext), whose size and remaining room are unknown. Go needs more than such a stack
 * may have left, assumes 32 KiB where the bounds are unknown, and queries the thread's bounds again
 * at each entry from elsewhere. So all of Go, and the C functions that it calls, run on a stack of
 * the library, whatever the application's is. No wait is on it: waits are call-outs, on the
 * application's stack, with its signals let through.
 *
 *   guard page | stack for signals while in Go | guard page | stack of Go */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include "runtime.h"

#define GUARD        ((size_t)64 << 10) /* the largest page there is */
#define SIGNAL_BYTES ((size_t)64 << 10)
#define GO_BYTES     ((size_t)512 << 10)
#define ALL_BYTES    (GUARD + SIGNAL_BYTES + GUARD + GO_BYTES)

typedef struct {
  char *memory; /* all of it; NULL: none yet */
  char *lo, *hi;
} own_stack;
static SPX_TLS own_stack own;
static pthread_key_t key;
_Atomic int spx_go_threads;

/* Calls fn(arg) on the stack that ends at sp. */
void spx_change_stack(void *sp, void (*fn)(void *), void *arg)
    __attribute__((visibility("hidden")));
#if defined __x86_64__
__asm__(".text\n"
        ".hidden spx_change_stack\n"
        ".globl spx_change_stack\n"
        ".type spx_change_stack, @function\n"
        "spx_change_stack:\n"
        ".cfi_startproc\n"
        "  pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "  movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "  movq %rdi, %rsp\n"
        "  movq %rdx, %rdi\n"
        "  callq *%rsi\n"
        "  movq %rbp, %rsp\n"
        "  popq %rbp\n"
        ".cfi_def_cfa %rsp, 8\n"
        "  ret\n"
        ".cfi_endproc\n"
        ".size spx_change_stack, .-spx_change_stack\n");
#elif defined __aarch64__
__asm__(".text\n"
        ".hidden spx_change_stack\n"
        ".globl spx_change_stack\n"
        ".type spx_change_stack, %function\n"
        "spx_change_stack:\n"
        ".cfi_startproc\n"
        "  stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset x29, -16\n"
        ".cfi_offset x30, -8\n"
        "  mov x29, sp\n"
        ".cfi_def_cfa_register x29\n"
        "  mov sp, x0\n"
        "  mov x0, x2\n"
        "  blr x1\n"
        "  mov sp, x29\n"
        ".cfi_def_cfa_register sp\n"
        "  ldp x29, x30, [sp], #16\n"
        ".cfi_def_cfa_offset 0\n"
        "  ret\n"
        ".cfi_endproc\n"
        ".size spx_change_stack, .-spx_change_stack\n");
#else
#error "how does a function change to another stack?"
#endif

static void free_own(void *memory) /* at the thread's end */
{
  spx_runtime_thread_ends();
  own = (own_stack){0};
  spx_go_threads--;
  munmap(memory, ALL_BYTES);
}

__attribute__((constructor(101))) static void make_key(void) { pthread_key_create(&key, free_own); }

static bool make_own(void)
{
  char *m = mmap(NULL, ALL_BYTES, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (m == MAP_FAILED) return false;
  char *lo = m + ALL_BYTES - GO_BYTES;
  if (mprotect(m + GUARD, SIGNAL_BYTES, PROT_READ | PROT_WRITE) ||
      mprotect(lo, GO_BYTES, PROT_READ | PROT_WRITE) || pthread_setspecific(key, m)) {
    munmap(m, ALL_BYTES);
    return false;
  }
  own = (own_stack){.memory = m, .lo = lo, .hi = m + ALL_BYTES};
  spx_go_threads++;
  return true;
}

bool spx_stack_ready(void) { return SPX_LIKELY(own.memory != NULL) || make_own(); }

stack_t spx_stack_for_signals(void)
{
  return (stack_t){.ss_sp = own.memory ? own.memory + GUARD : NULL, .ss_size = SIGNAL_BYTES};
}

/* Whether the caller runs on the thread's library stack. */
static inline bool on_own(const char *sp) { return sp >= own.lo && sp < own.hi; }

void spx_on_own_stack(void (*fn)(void *), void *arg)
{
  if (on_own(__builtin_frame_address(0))) {
    fn(arg);
    return;
  }
  spx_change_stack(own.hi, fn, arg);
}

/* Go queries the bounds of the stack that it is called on, and gets those of the thread's otherwise
 * (-Wl,--wrap). */
extern int __real_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr);
SPX_HIDDEN int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr);
int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
  if (!on_own(__builtin_frame_address(0))) return __real_pthread_getattr_np(thread, attr);
  int err = pthread_attr_init(attr);
  return err ? err : pthread_attr_setstack(attr, own.lo, (size_t)(own.hi - own.lo));
}
