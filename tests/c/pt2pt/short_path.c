/* 100,000 warm round trips through the finished library make no system call, allocate nothing and take no lock: with MPI_Send and
 * MPI_Recv, with Isend, Irecv and Waitall, with persistent requests and with messages that were not expected. System calls of
 * the thread are trapped by the kernel (user dispatch); malloc and its like and the locks of pthread are this program's own.
 *
 * Argument "steps": every call that is watched finds what it needs, and no process sleeps in MPI and has to be woken, since both have
 * met before, outside of MPI: nothing waits, and it does not matter who else uses the processors. "spin": waiting is watched as well, by processes that never give up polling; on
 * processors shared with others each message may then cost a time slice, so that the clock ends it. */
// run: n=2 args="steps" alone=1 cflags="-rdynamic -ldl"
// run: n=2 args="spin" env=SPX_SPIN=4294967295 env=SPX_SPIN_BUSY=4294967295 alone=1 cflags="-rdynamic -ldl"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON           1
#endif
enum { ROUNDS = 100000, WINDOW = 8, MANY = 32, LEAST = 48 };
static const double spin_seconds = 3;

static char selector;           /* 0: system calls are let through, 1: they are a failure */
static __thread int watched;    /* this thread is on the short path */
static const char *volatile at; /* what it does there */
static int trapped;
static int allocations, locks; /* that this program has seen, watched or not */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

static void seen(const char *what)
{
  watched = 0;
  selector = 0;
  fprintf(stderr, "%s on the short path, in %s\n", what, at);
  _exit(1);
}
static void on_call(int sig, siginfo_t *info, void *context)
{
  char what[60];
  (void)sig, (void)context;
  trapped++;
  selector = 0;
  snprintf(what, sizeof what, "system call %d", info->si_syscall);
  if (watched) seen(what);
}

void *malloc(size_t n)
{
  if (watched) seen("malloc");
  allocations++;
  return __libc_malloc(n);
}
void *calloc(size_t n, size_t m)
{
  if (watched) seen("calloc");
  allocations++;
  return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n)
{
  if (watched) seen("realloc");
  allocations++;
  return __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
  if (watched) seen("aligned_alloc");
  allocations++;
  return __libc_memalign(alignment, n);
}

static int (*real_lock)(pthread_mutex_t *), (*real_trylock)(pthread_mutex_t *);
int pthread_mutex_lock(pthread_mutex_t *m)
{
  if (watched) seen("pthread_mutex_lock");
  locks++;
  if (!real_lock) real_lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
  return real_lock(m);
}
int pthread_mutex_trylock(pthread_mutex_t *m)
{
  if (watched) seen("pthread_mutex_trylock");
  locks++;
  if (!real_trylock) real_trylock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_trylock");
  return real_trylock(m);
}

static void watch(int on, int dispatch)
{
  watched = on;
  selector = (char)(on && dispatch);
}

static int rank;
static MPI_Request kept[2], sends[MANY], receives[MANY];
static char out[MANY][64], in[MANY][64];

/* ---- what waits for its messages ----------------------------------------------------------------------------- */

static void blocking(void)
{
  at = "MPI_Send and MPI_Recv";
  MPI_Status st;
  if (rank == 0) MPI_Send(out, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  MPI_Recv(in, 64, MPI_BYTE, rank ? 0 : MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &st);
  if (rank == 1) MPI_Send(out, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}
static void window(void)
{
  MPI_Request q[2 * WINDOW];
  at = "MPI_Isend, MPI_Irecv and MPI_Waitall";
  for (int k = 0; k < WINDOW; k++) {
    MPI_Irecv(in[k], 64, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD, &q[k]);
    MPI_Isend(out[k], 40, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD, &q[WINDOW + k]);
  }
  MPI_Waitall(2 * WINDOW, q, MPI_STATUSES_IGNORE);
}
static void unexpected(void)
{
  at = "receives in another order than sends";
  for (int k = 0; k < WINDOW; k++) MPI_Send(out[k], 16, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD);
  for (int k = WINDOW; k-- > 0;) MPI_Recv(in[k], 64, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void persistent(void)
{
  at = "MPI_Startall and MPI_Waitall";
  MPI_Startall(2, kept);
  MPI_Waitall(2, kept, MPI_STATUSES_IGNORE);
}

/* Whether there is time for more, by the clock of rank 0. */
static int go_on(double end)
{
  int more = MPI_Wtime() < end;
  MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return more;
}

static void (*const ways[])(void) = {blocking, window, unexpected, persistent};

/* Afterwards there is room for many messages on their way, so that a send need not wait for its receive. */
static void warm(void)
{
  for (int i = 0; i < 8; i++) ways[i % 4]();
}

static void spin(int dispatch)
{
  double end = MPI_Wtime() + spin_seconds;
  long done = 0;
  while (done < LEAST || (done < ROUNDS && go_on(end))) {
    watch(1, dispatch);
    for (int i = 0; i < 24; i++) ways[i % 4]();
    watch(0, dispatch);
    done += 24;
  }
}

/* ---- what finds its messages --------------------------------------------------------------------------------- */

static void send_all(void)
{
  at = "MPI_Send";
  for (int k = 0; k < MANY; k++) MPI_Send(out[k], 8, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD);
}
static void receive_all(void)
{
  MPI_Status st;
  at = "MPI_Recv";
  for (int k = 0; k < MANY; k++) MPI_Recv(in[k], 64, MPI_BYTE, rank ? 0 : MPI_ANY_SOURCE, k, MPI_COMM_WORLD, &st);
}
static void receive_backwards(void)
{
  at = "MPI_Recv of messages in another order";
  for (int k = MANY; k-- > 0;) MPI_Recv(in[k], 64, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static MPI_Request now[2 * MANY];
static void isend_all(void)
{
  at = "MPI_Isend";
  for (int k = 0; k < MANY; k++) MPI_Isend(out[k], 40, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD, &now[MANY + k]);
}
static void irecv_all(void)
{
  at = "MPI_Irecv";
  for (int k = 0; k < MANY; k++) MPI_Irecv(in[k], 64, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD, &now[k]);
}
static void wait_all(void)
{
  at = "MPI_Waitall";
  MPI_Waitall(2 * MANY, now, MPI_STATUSES_IGNORE);
}
static void start_receives(void)
{
  at = "MPI_Startall of receives";
  MPI_Startall(MANY, receives);
}
static void start_sends(void)
{
  at = "MPI_Startall of sends";
  MPI_Startall(MANY, sends);
}
static void wait_started(void)
{
  at = "MPI_Waitall of persistent requests";
  MPI_Waitall(MANY, receives, MPI_STATUSES_IGNORE);
  MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE);
}

static uint32_t *met[2]; /* in shared memory: how often each rank has come */
static void meet(void)
{
  uint32_t mine = __atomic_add_fetch(met[rank], 1, __ATOMIC_SEQ_CST), other;
  syscall(SYS_futex, met[rank], FUTEX_WAKE, 1, NULL, NULL, 0);
  while ((other = __atomic_load_n(met[1 - rank], __ATOMIC_SEQ_CST)) < mine)
    syscall(SYS_futex, met[1 - rank], FUTEX_WAIT, other, NULL, NULL, 0);
}

static void steps(int dispatch)
{
  MPI_Win win;
  MPI_Aint bytes;
  int unit;
  MPI_Win_allocate_shared(64, 64, MPI_INFO_NULL, MPI_COMM_WORLD, &met[rank], &win);
  *met[rank] = 0;
  MPI_Win_shared_query(win, 1 - rank, &bytes, &unit, &met[1 - rank]);
  MPI_Barrier(MPI_COMM_WORLD);
  void (*const step[])(void) = {send_all,  receive_all, send_all,       receive_backwards, irecv_all,
                                isend_all, wait_all,    start_receives, start_sends,       wait_started};
  enum { STEPS = sizeof step / sizeof *step, WAYS = 4 };
  long done = -4 * WAYS * MANY; /* below 0: warm */
  for (; done < ROUNDS; done += WAYS * MANY)
    for (int i = 0; i < STEPS; i++) {
      meet();
      watch(done >= 0, dispatch);
      step[i]();
      watch(0, dispatch);
    }
  MPI_Win_free(&win);
}

static void persistent_requests(void)
{
  MPI_Send_init(out, 8, MPI_BYTE, 1 - rank, 20, MPI_COMM_WORLD, &kept[0]);
  MPI_Recv_init(in, 8, MPI_BYTE, 1 - rank, 20, MPI_COMM_WORLD, &kept[1]);
  for (int k = 0; k < MANY; k++) {
    MPI_Send_init(out[k], 8, MPI_BYTE, 1 - rank, 40 + k, MPI_COMM_WORLD, &sends[k]);
    MPI_Recv_init(in[k], 8, MPI_BYTE, 1 - rank, 40 + k, MPI_COMM_WORLD, &receives[k]);
  }
}

static void free_requests(void)
{
  for (int k = 0; k < 2; k++) MPI_Request_free(&kept[k]);
  for (int k = 0; k < MANY; k++) {
    MPI_Request_free(&sends[k]);
    MPI_Request_free(&receives[k]);
  }
}

/* What the library allocates and locks comes by here: where there is something to see, it is seen. */
static void traps_work(int dispatch)
{
  MPI_Datatype type;
  void *memory;
  int allocated = allocations, locked = locks;
  if (dispatch) {
    selector = 1;
    getppid();
    if (trapped != 1) fprintf(stderr, "a system call was not trapped\n"), MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Alloc_mem(100, MPI_INFO_NULL, &memory);
  if (allocations == allocated) fprintf(stderr, "an allocation was not seen\n"), MPI_Abort(MPI_COMM_WORLD, 2);
  if (locks == locked) fprintf(stderr, "a lock was not seen\n"), MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Free_mem(memory);
  MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
  struct sigaction sa = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  persistent_requests();
  sigaction(SIGSYS, &sa, NULL);
  int dispatch = prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) == 0;
  if (!dispatch) fprintf(stderr, "this kernel can not trap system calls: only allocations and locks are checked\n");
  traps_work(dispatch);
  warm();
  if (argc > 1 && strcmp(argv[1], "spin") == 0)
    spin(dispatch);
  else
    steps(dispatch);
  free_requests();
  MPI_Finalize();
  return 0;
}
