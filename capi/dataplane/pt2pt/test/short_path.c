/* The short path of warm sends and receives makes no system call, allocates nothing and takes no
 * lock: system calls are trapped by the kernel (user dispatch), the others by the linker. */
// sanitize: undefined
/* clang-format off */
// flags: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock
/* clang-format on */
#include "job.h"
#include <pthread.h>
#include <sys/prctl.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON           1
#endif
enum { ALLOW = 0, BLOCK = 1, MESSAGES = 100 };

static char selector = ALLOW; /* BLOCK: a system call is a failure */
static _Atomic int *stage;    /* shared by both processes */

static void fail(const char *what)
{
  selector = ALLOW;
  fprintf(stderr, "process %u: %s on the short path\n", spx_me, what);
  _exit(1);
}
static void on_call(int sig)
{
  (void)sig;
  fail("a system call");
}

#define WRAPPED(type, name, params, args)                                                          \
  type __real_##name params;                                                                       \
  type __wrap_##name params;                                                                       \
  type __wrap_##name params                                                                        \
  {                                                                                                \
    if (selector == BLOCK) fail(#name);                                                            \
    return __real_##name args;                                                                     \
  }
WRAPPED(void *, malloc, (size_t n), (n))
WRAPPED(void *, calloc, (size_t n, size_t m), (n, m))
WRAPPED(void *, realloc, (void *p, size_t n), (p, n))
WRAPPED(int, pthread_mutex_lock, (pthread_mutex_t * m), (m))
WRAPPED(int, pthread_mutex_trylock, (pthread_mutex_t * m), (m))

static void await(int value)
{
  while (*stage < value) sched_yield();
}

static void send_all(spx_comm *c, char *buf)
{
  for (int i = 0; i < MESSAGES; i++) {
    spx_request *r;
    CHECK(spx_send(buf, 8, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    CHECK(spx_isend(buf, 90, job_bytes, 1, 2, c, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r) == 0 &&
          spx_wait(r) == 0);
    spx_request_free(r);
  }
}

/* The second of each pair is received first: unexpected messages are on the short path too. */
static void receive_all(spx_comm *c, char *buf)
{
  for (int i = 0; i < MESSAGES; i++) {
    spx_request *r;
    MPI_Status st;
    int flag;
    CHECK(spx_recv(buf, 200, job_bytes, MPI_ANY_SOURCE, 1, c, SPX_CTX_P2P, &st) == 0 &&
          spx_status_bytes(&st) == 8);
    CHECK(spx_irecv(buf, 200, job_bytes, 0, 2, c, SPX_CTX_P2P, 0, &r) == 0 && spx_wait(r) == 0 &&
          r->bytes == 90);
    spx_request_free(r);
    CHECK(spx_iprobe(0, 3, c, SPX_CTX_P2P, &flag, NULL, NULL) == 0 && !flag);
  }
}

static void body(spx_comm *c)
{
  char buf[200] = {0};
  signal(SIGSYS, on_call);
  if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) != 0) {
    fprintf(stderr,
            "this kernel can not trap system calls: only allocations and locks are checked\n");
  }
  for (int round = 0; round < 3; round++) { /* the first one warms up */
    if (c->rank == 0) {
      if (round > 0) selector = BLOCK;
      send_all(c, buf);
      selector = ALLOW;
      *stage = 2 * round + 1;
      await(2 * round + 2);
    } else {
      await(2 * round + 1); /* not in MPI, so that the sender has no process to wake */
      if (round > 0) selector = BLOCK;
      receive_all(c, buf);
      selector = ALLOW;
      *stage = 2 * round + 2;
    }
  }
  barrier(c);
}

int main(void)
{
  stage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (stage == MAP_FAILED) return 1;
  return run_job((job){.procs = 2}, body) != 0;
}
