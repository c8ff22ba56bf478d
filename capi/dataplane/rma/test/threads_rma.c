/* Several threads of two processes on one window: accumulates on the same memory, moves on their
 * own, locks of different targets. The window's memory is mapped, reached by the kernel, or reached
 * by active messages. MPI-5.0 12.3.4, 12.5.3 and 12.7. */
// sanitize: address,undefined thread
// timeout: 240
#include "job.h"
#include "reduce.h"
#include "rma.h"
#include <pthread.h>

enum { PROCS = 2, THREADS = 3, ROUNDS = 40, LONG = 300, SLOT = 2000 };

/* The window memory of a process. */
typedef struct {
  int64_t count;      /* each adds 1 */
  int64_t swaps;      /* each adds 1 by comparing and swapping */
  int32_t row[LONG];  /* each adds k */
  int32_t guarded[2]; /* changed under an exclusive lock only */
  uint8_t slot[PROCS * THREADS][SLOT];
} memory;

typedef enum { MAPPED, KERNEL, MAIL } way;
static spx_win *w;
static memory *mine;
static _Atomic int running;
static spx_type *ints, *longs, *strided;
static const spx_op *add;

static uint64_t at(int target, size_t offset) { return w->targets[target].base + offset; }

static void accumulate(int target, int i)
{
  int64_t one = 1, old = -1, now, want;
  int32_t k[LONG], was[LONG];
  for (int j = 0; j < LONG; j++) k[j] = j;
  CHECK(spx_rma_fetch_op(w, target, at(target, offsetof(memory, count)), &one, &old, longs, add) ==
            0 &&
        old >= 0);
  spx_accumulate a = {.origin = k, .origin_type = ints, .type = ints, .count = LONG, .op = add};
  a.addr = at(target, offsetof(memory, row));
  if (i % 2) a.result = was, a.result_type = ints;
  CHECK(spx_rma_accumulate(w, target, &a) == 0);
  if (i % 2)
    for (int j = 2; j < LONG; j++) CHECK(was[j] == j * was[1]); /* all at once: it is short */
  for (want = 0;; want = now) {
    int64_t with = want + 1;
    CHECK(spx_rma_compare_swap(w, target, at(target, offsetof(memory, swaps)), &with, &want, &now,
                               longs) == 0);
    if (now == want) break;
  }
}

static void move(int target, int me, int i)
{
  uint8_t out[3 * SLOT], in[SLOT];
  pattern_fill(out, (uint64_t)(me + i), (size_t)(3 * SLOT));
  uint64_t to = at(target, offsetof(memory, slot) + (size_t)me * SLOT);
  CHECK(spx_rma_move(w, target, true, to, job_bytes, 0, out, i % 2 ? strided : job_bytes, 0,
                     SLOT) == 0);
  CHECK(spx_rma_move(w, target, false, to, job_bytes, 0, in, job_bytes, 0, SLOT) == 0);
  for (int j = 0; j < SLOT; j++) CHECK(in[j] == out[i % 2 ? j / 4 * 12 + j % 4 : j]);
}

static void guarded(int target)
{
  int32_t v[2];
  uint64_t where = at(target, offsetof(memory, guarded));
  CHECK(spx_win_lock(w, target, SPX_HELD_EXCLUSIVE) == 0);
  CHECK(spx_rma_move(w, target, false, where, job_bytes, 0, v, job_bytes, 0, sizeof v) == 0 &&
        v[0] == v[1]);
  v[0]++;
  CHECK(spx_rma_move(w, target, true, where, job_bytes, 0, v, job_bytes, 0, sizeof v) == 0);
  v[1]++;
  CHECK(spx_rma_move(w, target, true, where, job_bytes, 0, v, job_bytes, 0, sizeof v) == 0);
  spx_win_unlock(w, target, SPX_HELD_EXCLUSIVE);
}

/* Accesses of a thread to its own process's memory are ordered with the active messages of other
 * processes by their locks: the thread sanitizer does not see through another process. */
static bool others_only(void)
{
#ifdef __SANITIZE_THREAD__
  return w->am;
#else
  return false;
#endif
}

static void *worker(void *arg)
{
  int thread = (int)(intptr_t)arg;
  for (int i = 0; i < ROUNDS; i++) {
    int target = others_only() ? 1 - w->rank : (thread + i) % PROCS;
    accumulate(target, i);
    move(target, w->rank * THREADS + thread, i);
    if (thread < PROCS && (!others_only() || thread != w->rank))
      guarded(thread); /* a process locks a target once at a time */
  }
  running--;
  spx_ring_self();
  return NULL;
}

static void make_window(spx_comm *c, way how)
{
  uint64_t control = spx_win_control_bytes(PROCS, how == MAIL), place[2] = {0};
  w = calloc(1, sizeof *w);
  w->comm = c;
  w->rank = c->rank;
  w->size = PROCS;
  w->flavor = how == MAPPED ? MPI_WIN_FLAVOR_ALLOCATE : MPI_WIN_FLAVOR_CREATE;
  w->am = w->boxed = how == MAIL;
  w->bytes = sizeof(memory);
  if (c->rank == 0) {
    CHECK(spx_file_take(control + PROCS * sizeof(memory), &place[0]) == 0);
    CHECK(spx_send(place, 8, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  } else
    CHECK(spx_recv(place, 8, job_bytes, 0, 1, c, SPX_CTX_P2P, NULL) == 0);
  w->map = spx_file_map(place[0], control + PROCS * sizeof(memory));
  CHECK(w->map);
  spx_win_control_set(w);
  w->targets = calloc(PROCS, sizeof *w->targets);
  mine = how == MAPPED ? (memory *)(w->map + control) + c->rank : calloc(1, sizeof *mine);
  uint64_t base[PROCS];
  for (int i = 0; i < PROCS; i++) {
    base[c->rank] = (uint64_t)(uintptr_t)mine;
    if (i != c->rank) {
      spx_request *r;
      CHECK(spx_irecv(&base[i], 8, job_bytes, i, 2, c, SPX_CTX_P2P, 0, &r) == 0);
      CHECK(spx_send(&base[c->rank], 8, job_bytes, i, 2, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0 &&
            spx_wait(r) == 0);
      spx_request_free(r);
    }
    spx_target *t = &w->targets[i];
    t->proc = (uint32_t)i;
    t->size = sizeof(memory);
    t->unit = 1;
    t->here = how == MAPPED  ? (char *)((memory *)(w->map + control) + i)
              : i == c->rank ? (char *)mine
                             : NULL;
    t->base = t->here ? (uint64_t)(uintptr_t)t->here : base[i];
  }
  w->base = mine;
  if (how == MAIL) spx_rma_serve(w);
  barrier(c);
}

/* Checks the memory when all are through. */
static void look(void)
{
  int64_t all = PROCS * THREADS * ROUNDS / PROCS; /* each thread goes to each target in turn */
  CHECK(mine->count == all && mine->swaps == all);
  for (int j = 0; j < LONG; j++) CHECK(mine->row[j] == j * all);
  int times = (others_only() ? 1 : PROCS) * ROUNDS;
  CHECK(mine->guarded[0] == times && mine->guarded[1] == times);
}

static void run(spx_comm *c, way how)
{
  pthread_t t[THREADS];
  make_window(c, how);
  running = THREADS;
  for (intptr_t i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, worker, (void *)i);
  while (running > 0) { /* active messages of the peers must be answered */
    uint32_t ticket = spx_ticket();
    if (running > 0) spx_wait_event(ticket, 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  barrier(c);
  look();
  if (how == MAIL) spx_rma_serve_end(w);
  barrier(c);
}

static void body(spx_comm *c)
{
  spx_ops_init();
  ints = (spx_type *)spx_get(SPX_K_TYPE, MPI_INT);
  longs = (spx_type *)spx_get(SPX_K_TYPE, MPI_INT64_T);
  add = (const spx_op *)spx_get(SPX_K_OP, MPI_SUM);
  strided = job_vector(SLOT / 4, 4, 12);
  run(c, MAPPED);
  run(c, KERNEL);
  run(c, MAIL);
}

int main(void)
{
  int bad = run_job((job){.procs = PROCS, .mt = 1}, body);
  setenv("SPX_SPIN", "0", 1);
  setenv("SPX_YIELD", "0", 1); /* always asleep when there is nothing to do */
  return (full_or(1, 0) ? bad + run_job((job){.procs = PROCS, .mt = 1}, body) : bad) != 0;
}
