/* Members that leave before they have forwarded a message that came to them along the tree, since
 * they have had it directly from the master, which had to keep the order of its messages: the
 * members behind them get it all the same; also when the master has left. Each place in the tree
 * once. docs/multicast.md. */
// sanitize: address,undefined
// timeout: 120
#include "above.h"
#include <sched.h>
#include "mcast.h"

enum { PROCS = 8, MASTER = PROCS - 1, FIRST = 0, LONG = 40000 };
static int leaver, bytes;
static bool master_leaves;
static struct {
  _Atomic int sent, left, have;
} * now; /* shared by all without MPI */

static uint8_t buf[LONG];

static spx_request *multicast(spx_comm *c, int first, int last, uint32_t flags, int n, int tag)
{
  spx_rankset *s = (spx_rankset *)spx_new(SPX_K_RANKSET);
  s->procs = malloc(PROCS * sizeof *s->procs);
  s->ctx = c->ctx;
  s->flags = flags;
  for (int r = first; r <= last; r++) s->procs[s->n++] = (uint32_t)r;
  spx_request *r;
  CHECK(spx_mcast_init(&(spx_mcast_args){buf, n, job_bytes, s, tag, c, false}, SPX_RF_ACTIVE, &r) ==
        MPI_SUCCESS);
  CHECK(spx_start(r) == MPI_SUCCESS);
  return r;
}

static void receive(spx_comm *c, int n, int tag)
{
  memset(buf, 0, sizeof buf);
  CHECK(spx_recv(buf, LONG, job_bytes, MASTER, tag, c, SPX_CTX_P2P, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  CHECK(pattern_is(buf, 7, (size_t)n));
}

/* As MPI_Finalize does. */
static void leave(void)
{
  do {
    spx_progress();
    spx_mcast_leave();
  } while (spx_tx_waiting());
}

static void await(const _Atomic int *what, int n)
{
  while (atomic_load(what) < n) sched_yield();
}

static void body(spx_comm *c)
{
  alarm(30);
  if (c->rank == MASTER) {
    pattern_fill(buf, 7, (size_t)LONG);
    spx_request *all = multicast(c, FIRST, MASTER - 1, 0, bytes, 1);
    spx_request *one = multicast(c, leaver, leaver, MPIX_MCAST_ORDERED, 8, 2);
    if (master_leaves) leave();
    atomic_store(&now->sent, 1);
    while (!master_leaves && atomic_load(&now->have) < PROCS - 1) spx_progress();
    await(&now->have, PROCS - 1);
    CHECK(spx_wait(all) == MPI_SUCCESS && spx_wait(one) == MPI_SUCCESS);
    spx_request_free(all);
    spx_request_free(one);
  } else {
    if (c->rank == FIRST) await(&now->left, 1); /* computes, and hands nothing on */
    await(&now->sent, 1);
    receive(c, bytes, 1);
    if (c->rank == leaver) {
      receive(c, 8, 2);
      leave();
      atomic_store(&now->left, 1);
    }
    atomic_fetch_add(&now->have, 1);
    while (c->rank != leaver && atomic_load(&now->have) < PROCS - 1) spx_progress();
    await(&now->have, PROCS - 1);
  }
  spx_mcast_detach();
}

int main(void)
{
  int bad = 0;
  now = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (leaver = 1; leaver < MASTER; leaver++)
    for (int way = 0; way < 3; way++) {
      bytes = way == 1 ? LONG : 8;
      master_leaves = way == 2;
      memset((void *)now, 0, sizeof *now);
      bad += run_job((job){.procs = PROCS, .ncpus = PROCS}, body);
    }
  return bad != 0;
}
