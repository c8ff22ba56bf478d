/* pollers.c - what is asked in each look for progress beside messages (spx_pollers, progress.h):
 * runs of collectives, windows, multicasts, tools. A poller may remove itself, or another one,
 * while it is asked.
 */
#include "dp.h"
#include "progress.h"

spx_poller *spx_pollers;
static spx_poller *next_poller;
static bool in_pollers;

void spx_poller_add(spx_poller *p)
{
  spx_lock();
  p->next = spx_pollers;
  p->prev = &spx_pollers;
  if (spx_pollers) spx_pollers->prev = &p->next;
  spx_pollers = p;
  spx_unlock();
}

void spx_poller_del(spx_poller *p)
{
  spx_lock();
  if (next_poller == p) next_poller = p->next;
  *p->prev = p->next;
  if (p->next) p->next->prev = p->prev;
  spx_unlock();
}

int spx_run_pollers(void)
{
  int n = 0;
  if (in_pollers) return 0;
  in_pollers = true;
  for (spx_poller *p = spx_pollers; p; p = next_poller) {
    next_poller = p->next;
    n += p->poll(p);
  }
  next_poller = NULL;
  in_pollers = false;
  return n;
}
