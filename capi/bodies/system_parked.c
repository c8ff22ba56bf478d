/* system_parked.c - messages to I/O processes that die or hang: one that is on its way to such a
 * process, and is not complete, goes to another one. If all are dead and some are started again, it
 * waits for that.
 */
#include "dp.h"
#include "replay.h"
#include "system.h"

spx_request *spx_system_parked;

bool spx_system_parks(spx_request *r)
{
  const spx_system *s = __atomic_load_n(&spx_sys, __ATOMIC_ACQUIRE);
  if (!s || spx_io_process || spx_replay_on || r->kind != SPX_R_SEND || !r->comm ||
      !spx_is_origin(r->as))
    return false;
  if (spx_system_iop(s, r->want_tag) < 0 && spx_system_healing(s) < 0) return false;
  r->state = SPX_S_PARKED;
  r->next = spx_system_parked;
  spx_system_parked = r;
  return true;
}

/* Sends what waits, where it can go now. */
int spx_system_unpark(void)
{
  const spx_system *s = __atomic_load_n(&spx_sys, __ATOMIC_ACQUIRE);
  int moved = 0;
  spx_request *list = NULL, *r;
  while ((r = spx_system_parked)) { /* in the order in which they came */
    spx_system_parked = r->next;
    r->next = list;
    list = r;
  }
  while ((r = list)) {
    int iop = s ? spx_system_iop(s, r->want_tag) : -1;
    list = r->next;
    if (iop < 0 && s && spx_system_healing(s) >= 0) {
      r->next = spx_system_parked;
      spx_system_parked = r;
      continue;
    }
    moved++;
    r->state = SPX_S_NONE;
    r->id_slot = 0;
    if (iop < 0) {
      spx_complete(r, MPIX_ERR_PROC_FAILED);
      continue;
    }
    r->peer = s->proc[iop];
    spx_send_start(r);
  }
  return moved;
}

/* Messages that wait for room on the way to an I/O process that hangs, and of which it has nothing,
 * go to another one. */
int spx_system_leave_hanging(const spx_system *s)
{
  int moved = 0;
  spx_request *r;
  for (uint32_t i = 0; i < s->slots; i++) {
    uint32_t iop = s->slot[i], peer = s->proc[iop];
    while (spx_system_hangs(s, iop) && spx_system_ready(s, iop) &&
           (r = spx_tx_queued(peer)) != NULL && spx_is_origin(r->as)) {
      int other = spx_system_iop(s, r->want_tag);
      if (other < 0 || spx_system_hangs(s, (uint32_t)other) || !spx_tx_unqueue(peer, r)) break;
      spx_id_drop(r);
      r->state = SPX_S_NONE;
      r->peer = s->proc[other];
      spx_send_start(r);
      moved++;
    }
  }
  return moved;
}

/* Who sends does not wait for an I/O process that hangs, nor for room among what is kept for it.
 * Which one hangs is told by the bell; what was kept before was looked at then. */
int spx_system_excuse_hanging(const spx_system *s)
{
  static uint32_t seen;
  static uint64_t sent;
  uint32_t bell = __atomic_load_n(&spx_proc_of(spx_me)->bell, __ATOMIC_ACQUIRE);
  int n = 0;
  if (bell == seen && sent == spx_replay_core.leaving) return 0;
  seen = bell;
  sent = spx_replay_core.leaving;
  for (uint32_t i = 0; i < s->iops; i++)
    if (spx_system_hangs(s, i)) n += spx_replay_excuse(s->proc[i]);
  return n;
}
