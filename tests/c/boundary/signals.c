/* A handler with a frame of 64 KB, installed without SA_ONSTACK, called 2000 times a second while messages, collectives and
 * creations of communicators go on: it always runs on the application's stack, and nothing breaks. The full gate is a run of its own:
 * spxrun -n 2 signals 10000000 10000. */
// run: n=2 args="200000 200" args.few="50000 100" timeout=60
// run: n=1 args="200000 200 prof" timeout=60
// run: n=2 args="20000 100 realtime" timeout=60
#include "boundary.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile long hits, elsewhere;
static char *stack_top;
static pthread_t application;

static void handler(int sig)
{
  volatile char frame[65536];
  memset((void *)frame, sig, sizeof frame);
  long depth = stack_top - (char *)frame;
  if (depth < 0 || depth > (8 << 20) || !pthread_equal(pthread_self(), application)) elsewhere++;
  hits += frame[100] == (char)sig;
}

static void start_signals(const char *kind)
{
  struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
  struct itimerval it = {{0, 500}, {0, 500}};
  if (!strcmp(kind, "prof")) { /* cannot be blocked by Go's own threads without help */
    sigaction(SIGPROF, &sa, NULL);
    setitimer(ITIMER_PROF, &it, NULL);
  } else if (!strcmp(kind, "realtime")) {
    timer_t timer;
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct itimerspec spec = {{0, 500000}, {0, 500000}};
    sigaction(SIGRTMIN, &sa, NULL);
    timer_create(CLOCK_MONOTONIC, &ev, &timer);
    timer_settime(timer, 0, &spec, NULL);
  } else {
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &it, NULL);
  }
}

int main(int argc, char **argv)
{
  int rank, size;
  long messages = atol(argv[1]), rounds = atol(argv[2]);
  stack_top = __builtin_frame_address(0);
  application = pthread_self();
  start_signals(argc > 3 ? argv[3] : "alarm");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (long i = 0; i < messages; i++) {
    long out = i, in = -1;
    MPI_Sendrecv(&out, 1, MPI_LONG, (rank + 1) % size, 1, &in, 1, MPI_LONG, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (in != i) FAIL("message %ld holds %ld", i, in);
  }
  for (long i = 0; i < rounds || (size == 1 && hits < 10); i++) {
    MPI_Comm dup, half;
    int sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(dup, rank % 2, rank, &half);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, dup);
    if (sum != size * (size - 1) / 2) FAIL("round %ld: sum %d", i, sum);
    MPI_Comm_free(&half);
    MPI_Comm_free(&dup);
  }
  MPI_Finalize();
  if (elsewhere) FAIL("%ld of %ld signals were handled on another stack or thread", elsewhere, hits);
  if (!hits) FAIL("no signal came");
  return 0;
}
