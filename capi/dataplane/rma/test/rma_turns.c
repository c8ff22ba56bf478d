/* A process takes locks of its window for processes elsewhere. When it returns its own lock it
 * waits for the word that guards a lock, which another process of its host has. It makes progress
 * meanwhile, and in that takes the same lock for the same waiting process. The lock is granted
 * once, and no waiter is left. MPI-5.0, 12.5.3. */
// sanitize: address,undefined
#include "job.h"
#include "reduce.h"
#include "rma.h"

enum { OWNER, ELSEWHERE, NEIGHBOUR, PROCS, ROUNDS = 100 };

static spx_win *make_window(spx_comm *c)
{
  uint64_t bytes = spx_win_control_bytes(PROCS, false), place = 0;
  spx_win *w = calloc(1, sizeof *w);
  *w = (spx_win){.comm = c, .rank = c->rank, .size = PROCS, .flavor = MPI_WIN_FLAVOR_CREATE};
  if (c->rank == OWNER) CHECK(spx_file_take(bytes, &place) == 0);
  for (int i = 1; i < PROCS; i++)
    if (c->rank == OWNER)
      CHECK(spx_send(&place, 8, job_bytes, i, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    else if (c->rank == i)
      CHECK(spx_recv(&place, 8, job_bytes, OWNER, 1, c, SPX_CTX_P2P, NULL) == 0);
  CHECK((w->map = spx_file_map(place, bytes)));
  spx_win_control_set(w);
  w->targets = calloc(PROCS, sizeof *w->targets);
  for (int i = 0; i < PROCS; i++)
    w->targets[i] = (spx_target){
        .proc = (uint32_t)i, .unit = 1, .far = (i == ELSEWHERE) != (c->rank == ELSEWHERE)};
  CHECK(spx_rma_far_serve(w) == MPI_SUCCESS);
  return w;
}

static spx_win_cell *cell; /* of the owner */
/* the neighbour has the word: it gives it back while the owner makes progress */
static bool has_word;
static int returns;

static int give_back(spx_poller *p)
{
  (void)p;
  if (!has_word) return 0;
  has_word = false;
  returns++;
  spx_unlatch(&cell->latch);
  return 1;
}

/* As spx_win_unlock, with the neighbour in between. */
static void own(spx_win *w)
{
  CHECK(spx_win_lock(w, OWNER, SPX_HELD_EXCLUSIVE) == MPI_SUCCESS);
  barrier(w->comm);
  while (__atomic_load_n(&cell->waiting, __ATOMIC_ACQUIRE) == 0) spx_progress();
  spx_win_drop_lock(w, OWNER, OWNER);
  __atomic_store_n(&cell->latch, NEIGHBOUR + 1, __ATOMIC_RELEASE);
  has_word = true;
  spx_rma_far_grant(w);
  CHECK(!has_word);
}

static void ask(spx_win *w)
{
  barrier(w->comm);
  CHECK(spx_win_lock(w, OWNER, SPX_HELD_EXCLUSIVE) == MPI_SUCCESS);
}

static void body(spx_comm *c)
{
  spx_win *w = make_window(c);
  spx_poller poller = {.poll = give_back};
  cell = &w->cells[OWNER];
  if (c->rank == OWNER) spx_poller_add(&poller); /* before the one that serves */
  for (int i = 0; i < ROUNDS; i++) {
    if (c->rank == OWNER) own(w);
    if (c->rank == ELSEWHERE) ask(w);
    if (c->rank == NEIGHBOUR) barrier(c);
    barrier(c);
    CHECK(cell->waiting == 0 && cell->exclusive == ELSEWHERE + 1 && cell->shared == 0);
    barrier(c);
    if (c->rank == ELSEWHERE) spx_win_unlock(w, OWNER, SPX_HELD_EXCLUSIVE);
    barrier(c);
    CHECK(cell->waiting == 0 && cell->exclusive == 0);
    barrier(c);
  }
  CHECK(returns == (c->rank == OWNER ? ROUNDS : 0));
}

int main(void) { return run_job((job){.procs = PROCS}, body) != 0; }
