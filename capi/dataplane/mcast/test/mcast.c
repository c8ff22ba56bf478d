/* Multicasts of all processes to random sets that overlap, themselves included, of sizes around
 * every threshold, at once; with and without the get protocol, with little credit, through small
 * rings: every member gets what is for it, of each master in order, and no other process gets
 * anything. With deaths: a process ends itself somewhere, and the survivors get everything from
 * each other. docs/multicast.md. */
// sanitize: address,undefined
// timeout: 240
#include "above.h"

enum { BEHIND = 6, MOST = 200001 };
static int total = 120;

typedef struct {
  int n, vector, sync, blocking, in[16];
} plan;

/* Message i of a master: every process computes the same. */
static plan message(int master, int size, int i)
{
  static const int sizes[] = {0,    1,     8,     31,    64,    1000,  4000,
                              8160, 16200, 16320, 16384, 40000, 200000};
  uint64_t s = (uint64_t)master * 7919 + (uint64_t)i * 104729;
  for (int k = 0; k < 4; k++) rnd(&s);
  uint32_t density = 1 + rnd(&s) % 3;
  plan p = {.n = sizes[rnd(&s) % 13],
            .vector = rnd(&s) % 4 == 0,
            .sync = rnd(&s) % 5 == 0,
            .blocking = rnd(&s) % 8 == 0};
  if (p.vector) p.n = (p.n + 7) / 8 * 8;
  for (int r = 0; r < size; r++) p.in[r] = rnd(&s) % density == 0;
  return p;
}

static spx_type *type_of(const plan *p, int64_t *count)
{
  static spx_type *v;
  if (!v) v = job_vector(2, 4, 7);
  *count = p->vector ? p->n / 8 : p->n;
  return p->vector ? v : job_bytes;
}

static uint64_t key(int master, int i) { return (uint64_t)(master * 31 + i); }

static spx_rankset *set_of(const spx_comm *c, const plan *p)
{
  spx_rankset *s = (spx_rankset *)spx_new(SPX_K_RANKSET);
  s->procs = malloc(16 * sizeof *s->procs); /* no destructor here: left to the end of the process */
  s->ctx = c->ctx;
  for (int r = 0; r < c->size; r++)
    if (p->in[r]) {
      s->procs[s->n++] = (uint32_t)r;
      s->self = s->self || r == c->rank;
    }
  return s;
}

typedef struct {
  spx_request *r[BEHIND];
  uint8_t *buf[BEHIND];
  int i;
} window;

static bool collect(window *w, int k)
{
  if (w->r[k] && !spx_is_done(w->r[k])) return false;
  if (w->r[k]) {
    CHECK(w->r[k]->error == MPI_SUCCESS || w->r[k]->error == MPIX_ERR_PROC_FAILED);
    spx_request_free(w->r[k]);
  }
  free(w->buf[k]);
  w->r[k] = NULL;
  w->buf[k] = NULL;
  return true;
}

static bool send_next(spx_comm *c, window *w)
{
  int k = w->i % BEHIND;
  if (!collect(w, k)) return false;
  plan p = message(c->rank, c->size, w->i);
  int64_t count;
  spx_type *t = type_of(&p, &count);
  uint8_t *packed = malloc((size_t)p.n + 1);
  w->buf[k] = malloc((size_t)(count * t->extent) + 1);
  pattern_fill(packed, key(c->rank, w->i), (size_t)(p.n));
  spx_unpack(w->buf[k], count, t, 0, p.n, packed);
  free(packed);
  spx_mcast_args a = {w->buf[k], count, t, set_of(c, &p), 1, c, p.sync};
  w->i++;
  if (p.blocking && p.n < 64 &&
      !p.sync) { /* blocks no process: there is credit, or the receivers poll */
    int rc = spx_mcast(&a);
    CHECK(rc == MPI_SUCCESS || rc == MPIX_ERR_PROC_FAILED);
  } else {
    CHECK(spx_mcast_init(&a, SPX_RF_ACTIVE, &w->r[k]) == MPI_SUCCESS);
    CHECK(spx_start(w->r[k]) == MPI_SUCCESS);
  }
  spx_unref(SPX_K_RANKSET, &a.set->o); /* the request keeps it */
  return true;
}

/* Receives what has come; of each master the next one that is for us. */
static int receive_some(spx_comm *c, int *next, int left)
{
  static uint8_t buf[MOST];
  int flag = 1;
  while (left && flag) {
    MPI_Status st;
    spx_request *r;
    void *m;
    int rc = spx_iprobe(MPI_ANY_SOURCE, 1, c, SPX_CTX_P2P, &flag, &st, &m);
    CHECK(rc == MPI_SUCCESS || rc == MPIX_ERR_PROC_FAILED);
    if (rc != MPI_SUCCESS || !flag) break;
    int from = st.MPI_SOURCE, *i = &next[from];
    plan p = message(from, c->size, *i);
    while (!p.in[c->rank]) p = message(from, c->size, ++*i);
    CHECK(*i < total && spx_status_bytes(&st) == p.n);
    CHECK(spx_imrecv(buf, MOST, job_bytes, m, c, 0, &r) == MPI_SUCCESS);
    rc = spx_wait(r);
    CHECK(rc == MPI_SUCCESS || (rc == MPIX_ERR_PROC_FAILED && spx_proc_dead((uint32_t)from)));
    if (rc == MPI_SUCCESS) CHECK(pattern_is(buf, key(from, *i), (size_t)(p.n)));
    spx_request_free(r);
    ++*i;
    left--;
  }
  return left;
}

static int victim = -1, victim_until;

/* Messages still to arrive from living masters. */
static int missing(const spx_comm *c, const int *next)
{
  int n = 0;
  for (int s = 0; s < c->size; s++)
    for (int i = next[s]; i < total && !spx_proc_dead((uint32_t)s); i++)
      n += message(s, c->size, i).in[c->rank];
  return n;
}

static void body(spx_comm *c)
{
  window w = {.i = 0};
  int next[16] = {0}, open = 1;
  c->failed_seen = 16; /* no process waits because of deaths */
  while (open || missing(c, next)) {
    if (c->rank == victim && w.i >= victim_until) raise(SIGKILL);
    receive_some(c, next, missing(c, next));
    open = w.i < total;
    if (open)
      send_next(c, &w);
    else
      for (int k = 0; k < BEHIND; k++) open = !collect(&w, k) || open;
    spx_progress();
  }
  if (victim < 0) {
    barrier(c);
    CHECK(spx_unex_count == 0 && spx_posted_count == 0);
  } else { /* until all that live are through: they may need what is kept here */
    char x = 0;
    for (int r = 0; r < c->size; r++)
      if (r != c->rank) spx_send(&x, 1, job_bytes, r, 2, c, SPX_CTX_P2P, SPX_M_STANDARD);
    for (int r = 0; r < c->size; r++)
      if (r != c->rank) spx_recv(&x, 1, job_bytes, r, 2, c, SPX_CTX_P2P, MPI_STATUS_IGNORE);
  }
  while (spx_mcast_relaying + spx_acks_leave() > 0) spx_progress(); /* as MPI_Finalize does */
  spx_mcast_detach();
}

static int may_die(uint32_t i) { return (int)i == victim; }

int main(void)
{
  int bad = run_job((job){.procs = 2}, body) + run_job((job){.procs = 6, .maxprocs = 9}, body) +
            run_job((job){.procs = 1}, body) +
            run_job((job){.procs = 4, .ring_bytes = 16384}, body);
  for (int k = 0; k < full_or_fifth(10); k++) {
    victim = k % 5;
    victim_until = 7 + 13 * k;
    bad += run_job((job){.procs = 5, .killed = may_die}, body);
  }
  victim = -1;
  setenv("SPX_CMA", "0", 1); /* everything by two copies */
  bad += run_job((job){.procs = 3}, body);
  setenv("SPX_CREDIT", "4096", 1); /* and nearly everything announced */
  setenv("SPX_EAGER_MAX", "1000", 1);
  bad += run_job((job){.procs = 4}, body);
  unsetenv("SPX_CMA");
  bad += run_job((job){.procs = 5}, body);
  return bad != 0;
}
