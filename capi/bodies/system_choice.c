/* system_choice.c - which IOP a message goes to, by the plan that package choice has made. */
#include "system.h"
#include "comm.h"
#include "dp.h"
#include "replay.h"
#include "settings.h"

spx_system *spx_sys;
_Atomic uint32_t spx_system_turn;
static _Atomic uint32_t changes; /* of SPX_IOP_CHOICE that were carried out */

bool spx_system_ready(const spx_system *s, uint32_t iop)
{
  return !spx_proc_left(s->proc[iop]) && s->heals[iop] != SPX_HEALS_AWAY;
}

/* Whether it lives, and its agent has seen that it does not run. */
bool spx_system_hangs(const spx_system *s, uint32_t iop)
{
  return SPX_UNLIKELY(__atomic_load_n(&spx_proc_of(s->proc[iop])->hangs, __ATOMIC_RELAXED) != 0);
}

/* The bytes sent to an IOP that it has not received yet. */
static uint64_t under_way(uint32_t peer)
{
  const spx_tx *tx = &spx_txs[peer];
  return tx->slow & SPX_TX_NEW || !tx->chan
             ? 0
             : tx->sent - spx_tx_published(tx, &tx->chan->matched, tx->sent, __ATOMIC_RELAXED);
}

/* What an IOP holds: what it says of itself, if it is on this host, and what is under way to it
 * from here. */
static uint64_t held_by(const spx_system *s, uint32_t iop, bool messages)
{
  uint32_t peer = s->proc[iop];
  const spx_proc *p = spx_proc_of(peer);
  if (messages)
    return __atomic_load_n(&p->io_messages, __ATOMIC_RELAXED) +
           (under_way(peer) + SPX_LINE - 1) / SPX_LINE;
  return __atomic_load_n(&p->io_bytes, __ATOMIC_RELAXED) + under_way(peer);
}

/* The place of the slot that holds least; turns decide between equal ones. */
static uint32_t least(const spx_system *s, uint32_t from)
{
  uint32_t best = from;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < s->slots; i++) {
    uint32_t at = (from + i) % s->slots;
    uint64_t held = spx_system_ready(s, s->slot[at]) && !spx_system_hangs(s, s->slot[at])
                        ? held_by(s, s->slot[at], s->mode == SPX_CHOOSE_QUEUE)
                        : UINT64_MAX;
    if (held < least) {
      least = held;
      best = at;
    }
  }
  return best;
}

static uint32_t ask_user(const spx_system *s, int tag, uint32_t from)
{
  int messages[256];
  long long bytes[256];
  uint32_t at[256];
  int n = 0;
  for (uint32_t i = 0; i < s->slots && n < 256; i++) {
    if (!spx_system_ready(s, s->slot[i]) || spx_system_hangs(s, s->slot[i])) continue;
    at[n] = i;
    messages[n] = (int)held_by(s, s->slot[i], true);
    bytes[n++] = (long long)held_by(s, s->slot[i], false);
  }
  int k = n ? s->choose(n, messages, bytes, tag) : 0;
  return k >= 0 && k < n ? at[k] : from;
}

/* The number of an IOP for the next message; -1: none is ready. */
int spx_system_iop(const spx_system *s, int tag)
{
  if (!s->slots) return -1;
  uint32_t from = 0;
  switch (s->mode) {
  case SPX_CHOOSE_TAG: from = (uint32_t)tag * 0x9e3779b1u >> 8; break;
  case SPX_CHOOSE_KEY:
    from = ((uint32_t)s->cluster << 16 ^ (uint32_t)spx_world->rank) * 0x9e3779b1u >> 8;
    break;
  default: from = atomic_fetch_add_explicit(&spx_system_turn, 1, memory_order_relaxed);
  }
  from %= s->slots;
  if (s->mode == SPX_CHOOSE_LOAD || s->mode == SPX_CHOOSE_QUEUE) from = least(s, from);
  if (s->mode == SPX_CHOOSE_USER) from = ask_user(s, tag, from);
  int last = -1; /* where all hang, one of those: it may go on */
  for (uint32_t i = 0; i < s->slots; i++) {
    uint32_t iop = s->slot[(from + i) % s->slots];
    if (!spx_system_ready(s, iop)) continue;
    if (!spx_system_hangs(s, iop)) return (int)iop;
    if (last < 0) last = (int)iop;
  }
  return last;
}

static bool any_ready(const spx_system *s)
{
  for (uint32_t i = 0; i < s->slots; i++)
    if (spx_system_ready(s, s->slot[i])) return true;
  return false;
}

int spx_system_choose(int tag)
{
  const spx_system *s = __atomic_load_n(&spx_sys, __ATOMIC_ACQUIRE);
  if (s && tag == SPX_NO_TAG) return any_ready(s) ? 0 : spx_system_healing(s);
  return s ? spx_system_iop(s, tag) : -1;
}

uint32_t spx_system_lane(int iop, int tag)
{
  const spx_system *s = __atomic_load_n(&spx_sys, __ATOMIC_ACQUIRE);
  switch (s ? s->mode : SPX_CHOOSE_KEY) {
  case SPX_CHOOSE_TAG: return (uint32_t)tag;
  case SPX_CHOOSE_KEY: return 0;
  default: return (uint32_t)iop;
  }
}

/* One that could have been chosen is dead, or away, and another process is to be started in its
 * place; -1: none. */
int spx_system_healing(const spx_system *s)
{
  for (uint32_t i = 0; i < s->slots; i++)
    if (s->heals[s->slot[i]] == SPX_HEALS_AWAY ||
        (s->heals[s->slot[i]] && spx_proc_dies(s->proc[s->slot[i]])))
      return (int)s->slot[i];
  return -1;
}

/* SPX_IOP_CHOICE may have been set while MPI runs: then the engine plans anew. */
const spx_system *spx_system_now(void)
{
  uint32_t n = spx_setting_changes();
  if (SPX_UNLIKELY(n != atomic_load(&changes))) {
    atomic_store(&changes, n);
    spx_frame f = {.fn = SPX_IN_SYSTEM_PLAN};
    spx_go_internal(&f); /* an unknown policy leaves the one before */
  }
  return __atomic_load_n(&spx_sys, __ATOMIC_ACQUIRE);
}
