/* MPI_THREAD_MULTIPLE: threads that come, enter Go, and go again; handlers of signals meanwhile; no thread, stack or memory stays. */
// run: n=1,2 timeout=60
#include "boundary.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

enum { THREADS = 4 };
static volatile long hits;
static void on_alarm(int sig)
{
  volatile char frame[65536];
  memset((void *)frame, sig, sizeof frame);
  hits += frame[7] == sig;
}

static void *work(void *arg)
{
  for (int i = 0; i < 20; i++) {
    MPI_Comm c;
    int out = i, in = -1;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, c, MPI_STATUS_IGNORE);
    if (in != i) FAIL("%d for %d", in, i);
    MPI_Comm_free(&c);
  }
  return arg;
}

static void generation(void)
{
  pthread_t t[THREADS];
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&t[i], NULL, work, NULL)) FAIL("pthread_create");
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
  int provided, one = 1, sum = 0, size;
  struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  struct itimerval it = {{0, 1000}, {0, 1000}};
  sigaction(SIGALRM, &sa, NULL);
  setitimer(ITIMER_REAL, &it, NULL);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  for (int i = 0; i < 10; i++) generation();
  long threads = status_kb("Threads"), rss = status_kb("VmRSS");
  for (int i = 0; i < 50; i++) generation();
  long more = status_kb("Threads") - threads, grown = status_kb("VmRSS") - rss;
  if (more > 20) FAIL("%ld threads more after 200 came and went", more);
  if (grown > 8192) FAIL("%ld KB more", grown);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size);
  MPI_Finalize();
  CHECK(hits > 0);
  return 0;
}
