/* background.c - SPX_PROGRESS=1: a thread of libspx's own that carries on what is under way while
 * the program computes and calls nothing of MPI. MPI-5.0, 2.9 and 6.12: nonblocking operations may
 * progress so.
 *
 * The thread waits for a request that is complete when MPI ends, as a thread of the program's may
 * wait for a message with MPI_THREAD_MULTIPLE: it sleeps while nothing comes, and leaves the
 * messages to other threads that look for them. */
#include <pthread.h>
#include <signal.h>
#include "dp.h"
#include "init.h"

static pthread_t thread;
static bool runs;
static spx_request until;

static void *carry_on(void *unused)
{
  (void)unused;
  spx_wait(&until);
  return NULL;
}

int spx_background_start(void)
{
  sigset_t all, before;
  if (!spx_set.progress || runs) return 0;
  until = (spx_request){.kind = SPX_R_COLL, .flags = SPX_RF_ACTIVE | SPX_RF_INTERNAL};
  sigfillset(&all);
  for (int i = 0; i < 4; i++)
    sigdelset(&all, (const int[]){SIGSEGV, SIGBUS, SIGFPE,
                                  SIGILL}[i]); /* a crash is reported like any other */
  /* signals are the program's */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int err = pthread_create(&thread, NULL, carry_on, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  runs = err == 0;
  return err;
}

void spx_background_stop(void)
{
  if (!runs) return;
  spx_complete(&until, MPI_SUCCESS);
  pthread_join(thread, NULL);
  runs = false;
}
