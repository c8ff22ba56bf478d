/* ft.c - see ft.h. */
#include "ft.h"
#include "runtime.h"

static void hook(void)
{
  spx_frame f = {.fn = SPX_IN_FT};
  spx_go_internal(&f);
}

void spx_ft_start(void) { spx_ft_hook = hook; }

static void release(spx_request *r) { spx_unref(SPX_K_COMM, &r->comm->o); }

spx_request *spx_ft_request(spx_comm *comm)
{
  spx_request *r = (spx_request *)spx_new(SPX_K_REQ);
  if (!r) return NULL;
  r->kind = SPX_R_GO;
  r->flags = SPX_RF_ACTIVE;
  r->src = r->want_src = MPI_ANY_SOURCE;
  r->tag = r->want_tag = MPI_ANY_TAG;
  if (comm) {
    r->comm = comm;
    spx_ref(&comm->o);
    r->release = release;
  } else
    r->flags |= SPX_RF_INTERNAL;
  return r;
}

int64_t spx_ft_wait(spx_word *a) { return spx_wait((spx_request *)a[0].p); }

void spx_ft_leave(spx_request *r)
{
  spx_lock();
  bool done = atomic_load(&r->done) != 0;
  if (!done) r->flags |= SPX_RF_FREED;
  spx_unlock();
  if (done) spx_request_free(r);
}

uint32_t spx_ft_look(const uint32_t *procs, uint8_t *state, uint32_t n)
{
  uint32_t found = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (state[k] & (SPX_FT_DEAD | SPX_FT_LEFT)) {
      found += (state[k] & SPX_FT_NEWS) != 0;
      continue;
    }
    bool dead = spx_ndead && spx_proc_dead(procs[k]);
    if (!dead &&
        __atomic_load_n(&spx_proc_of(procs[k])->agent_state, __ATOMIC_ACQUIRE) != SPX_AGENT_EXITED)
      continue;
    state[k] |= SPX_FT_NEWS | (dead ? SPX_FT_DEAD : SPX_FT_LEFT);
    found++;
  }
  return found;
}

void spx_ft_hold(const uint32_t *procs, uint8_t *state, uint32_t n, uint32_t self)
{
  for (uint32_t k = 0; k < n; k++) {
    if (k == self || procs[k] == spx_me) continue;
    spx_peer_hold(procs[k]);
    spx_peer_part(procs[k]);
    state[k] |= SPX_FT_HELD;
  }
}

uint32_t spx_ft_let_go(const uint32_t *procs, uint8_t *state, uint32_t n, int all)
{
  uint32_t left = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (!(state[k] & SPX_FT_HELD)) continue;
    if (all || state[k] & (SPX_FT_DEAD | SPX_FT_LEFT) || !spx_peer_holds_us(procs[k])) {
      state[k] &= (uint8_t)~SPX_FT_HELD;
      spx_peer_release(procs[k], 1);
    } else
      left++;
  }
  return left;
}
