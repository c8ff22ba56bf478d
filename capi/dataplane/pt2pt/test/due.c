/* A record that arrives when a thread is about to sleep may complete, by the failure hook, the
 * request of that thread: it does not sleep then. */
// sanitize: address,undefined
#include "job.h"

enum { TIMES = 200 };

static spx_request *awaited;
static bool told;

/* As an agreement that ends with a control message. */
static void hook(void)
{
  char b[8];
  uint32_t from;
  while (spx_ctrl_recv(b, sizeof b, &from) >= 0) spx_complete(awaited, MPI_SUCCESS);
}

/* The look that a sleeper takes once it has published that it sleeps finds a message. */
static int last_look(spx_poller *p)
{
  (void)p;
  if (told || !spx_proc_of(spx_me)->sleeping) return 0;
  told = true;
  CHECK(spx_ctrl_send(spx_me, "x", 1) == MPI_SUCCESS);
  return 1;
}

static void body(spx_comm *c)
{
  static spx_poller poller = {.poll = last_look};
  alarm(30);
  spx_ft_hook = hook;
  spx_poller_add(&poller);
  for (int i = 0; i < TIMES; i++) {
    spx_request r = {.kind = SPX_R_GO, .flags = SPX_RF_ACTIVE | SPX_RF_INTERNAL, .comm = c};
    awaited = &r;
    told = false;
    CHECK(spx_wait(&r) == MPI_SUCCESS && told);
  }
}

int main(void)
{
  /* as when processes outnumber processors and foreign ones use them: park at once */
  setenv("SPX_SPIN", "0", 1);
  setenv("SPX_YIELD", "0", 1);
  return run_job((job){.procs = 1}, body);
}
