/* 100,000 warm round trips through the finished library make no system call, allocate nothing and take no lock: with MPI_Send and
 * MPI_Recv, with Isend, Irecv and Waitall, with persistent requests and with messages that were not expected. System calls of
 * the thread are trapped by the kernel (user dispatch); malloc and its like and the locks of pthread are this program's own. */
// run: n=2 env=SPX_SPIN=4294967295 env=SPX_SPIN_BUSY=4294967295 timeout=100 alone=1 cflags="-ldl"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON           1
#endif
enum { ROUNDS = 100000, WINDOW = 8, LEAST = 2000 };
static const double most_seconds = 40; /* on a processor shared with others a round trip may cost time slices */

static char selector;           /* 0: system calls are let through, 1: they are a failure */
static __thread int watched;    /* this thread is on the short path */
static const char *volatile at; /* what it does there */
static int trapped;

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

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
  return __libc_malloc(n);
}
void *calloc(size_t n, size_t m)
{
  if (watched) seen("calloc");
  return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n)
{
  if (watched) seen("realloc");
  return __libc_realloc(p, n);
}

static int (*real_lock)(pthread_mutex_t *), (*real_trylock)(pthread_mutex_t *);
int pthread_mutex_lock(pthread_mutex_t *m)
{
  if (watched) seen("pthread_mutex_lock");
  if (!real_lock) real_lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
  return real_lock(m);
}
int pthread_mutex_trylock(pthread_mutex_t *m)
{
  if (watched) seen("pthread_mutex_trylock");
  if (!real_trylock) real_trylock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_trylock");
  return real_trylock(m);
}

static void watch(int on, int dispatch)
{
  watched = on;
  selector = (char)(on && dispatch);
}

static int rank;
static MPI_Request kept[2];
static char out[WINDOW][64], in[WINDOW][64];

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

/* Every eighth message tells whether there is time for more. */
static int go_on(double end)
{
  int more = MPI_Wtime() < end;
  at = "the question for time";
  if (rank == 0)
    MPI_Send(&more, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
  else
    MPI_Recv(&more, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return more;
}

int main(int argc, char **argv)
{
  struct sigaction sa = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
  void (*const ways[])(void) = {blocking, window, unexpected, persistent};
  long done = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Send_init(out, 8, MPI_BYTE, 1 - rank, 20, MPI_COMM_WORLD, &kept[0]);
  MPI_Recv_init(in, 8, MPI_BYTE, 1 - rank, 20, MPI_COMM_WORLD, &kept[1]);
  sigaction(SIGSYS, &sa, NULL);
  int dispatch = prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) == 0;
  if (!dispatch) fprintf(stderr, "this kernel can not trap system calls: only allocations and locks are checked\n");
  if (dispatch) { /* the trap works */
    selector = 1;
    getppid();
    if (trapped != 1) fprintf(stderr, "a system call was not trapped\n"), MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (int i = 0; i < 200; i++) ways[i % 4](); /* warm */
  go_on(0);
  MPI_Barrier(MPI_COMM_WORLD);
  double end = MPI_Wtime() + most_seconds;
  int more = 1;
  while (more && done < ROUNDS) {
    watch(1, dispatch);
    for (int i = 0; i < 100; i++) ways[i % 4]();
    more = go_on(end);
    watch(0, dispatch);
    done += 100;
  }
  if (done < LEAST)
    fprintf(stderr, "only %ld round trips in %.0f s\n", done, most_seconds), MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Request_free(&kept[0]);
  MPI_Request_free(&kept[1]);
  MPI_Finalize();
  return 0;
}
