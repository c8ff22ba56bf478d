/* coll_cache.c - the plans that a communicator has compiled. A warm call finds its plan here and
 * never enters Go.
 *
 * WAYS plans share each of SETS places, the one unused longest gives way; beside that, the last
 * plan of each operation is remembered, which is what a loop needs. Plans of many ranks are large:
 * all of a cache together have at most MOST bytes, or there is but one. What was chosen for the
 * last call of each operation is in spx_comm.chosen, written where the plan is another one than
 * that of the call before. Collectives of one communicator are started by one thread at a time
 * (MPI-5.0 6.12), so the cache has no lock of its own. */
#include <stdlib.h>
#include "check_coll.h"
#include "coll.h"

enum { SETS = 16, WAYS = 4, MOST = 512 << 10 };

typedef struct cache {
  spx_plan *last[SPX_COLL_COUNT];
  spx_plan *place[SETS][WAYS];
  uint64_t clock;
  size_t bytes; /* of the plans in place */
} cache;

static unsigned hash(const spx_plan_key *k)
{
  uint64_t h = 0x9e3779b97f4a7c15ull, w[sizeof *k / 8];
  memcpy(w, k, sizeof w);
  for (unsigned i = 0; i < sizeof w / sizeof *w; i++)
    h = (h ^ w[i]) * 0xff51afd7ed558ccdull, h ^= h >> 32;
  return (unsigned)h % SETS;
}
_Static_assert(sizeof(spx_plan_key) % 8 == 0, "hashed by words");
_Static_assert(SPX_COMM_CHOICES == SPX_COLL_COUNT, "a choice for each");

/* The key of a call has just been filled in, in pieces of the sizes of its members, and only loads
 * of these sizes get them without waiting for the stores to end: memcmp took 20 ns. */
static int same(const spx_plan_key *a, const spx_plan_key *b)
{
  if (a->kind != b->kind || a->in_place != b->in_place || a->commute != b->commute ||
      a->persistent != b->persistent)
    return 0;
  if (a->s_contig != b->s_contig || a->r_contig != b->r_contig || a->size_class != b->size_class ||
      a->root != b->root)
    return 0;
  if (a->scount != b->scount || a->rcount != b->rcount) return 0;
  for (int i = 0; i < 4; i++)
    if (a->s[i] != b->s[i] || a->r[i] != b->r[i]) return 0;
  return 1;
}

static int compile(spx_comm *c, const spx_plan_key *key, spx_plan **out)
{
  spx_plan *p = NULL;
  spx_frame f = {.fn = SPX_IN_PLAN};
  f.a[0].p = (void *)(uintptr_t)key;
  f.a[1].p = c;
  f.a[2].p = &p;
  int err = spx_go_internal(&f);
  if (err != MPI_SUCCESS) return err;
  p->key = *key;
  *out = p;
  return MPI_SUCCESS;
}

static cache *cache_of(spx_comm *c)
{
  if (!c->plans) c->plans = calloc(1, sizeof(cache));
  return c->plans;
}

/* Empties a place. */
static void forget(cache *k, spx_plan **place)
{
  spx_plan *p = *place;
  if (k->last[p->key.kind] == p) k->last[p->key.kind] = NULL;
  k->bytes -= spx_plan_bytes(p);
  *place = NULL;
  spx_plan_unref(p);
}

/* Makes room for a plan of so many bytes: what was not used for longest goes. */
static void make_room(cache *k, size_t bytes)
{
  while (k->bytes > 0 && k->bytes + bytes > MOST) {
    spx_plan **oldest = NULL;
    for (spx_plan **p = &k->place[0][0]; p < &k->place[0][0] + SETS * WAYS; p++)
      if (*p && (!oldest || (*p)->used < (*oldest)->used)) oldest = p;
    forget(k, oldest);
  }
}

/* p is another plan than that of the last call of its operation: not the way of a loop, which this
 * must not cost anything. */
__attribute__((noinline)) static void remember(spx_comm *c, cache *k, spx_plan *p)
{
  k->last[p->key.kind] = p;
  __atomic_store_n(&c->chosen[p->key.kind], p->choice, __ATOMIC_RELAXED);
}

int spx_coll_plan(spx_comm *c, const spx_plan_key *key, spx_plan **out)
{
  cache *k = cache_of(c);
  *out = NULL;
  if (!k) {
    spx_detail("no memory for the plans of a communicator");
    return MPI_ERR_NO_MEM;
  }
  spx_plan *p = k->last[key->kind];
  if (!(p && same(&p->key, key))) {
    spx_plan **set = k->place[hash(key)], **victim = &set[0];
    p = NULL;
    for (int i = 0; i < WAYS && !p; i++) {
      if (set[i] && same(&set[i]->key, key))
        p = set[i];
      else if (*victim && (!set[i] || set[i]->used < (*victim)->used))
        victim = &set[i];
    }
    if (!p) {
      int err = compile(c, key, &p);
      if (err != MPI_SUCCESS) return err;
      if (*victim) forget(k, victim);
      make_room(k, spx_plan_bytes(p));
      k->bytes += spx_plan_bytes(p);
      *victim = p;
    }
    remember(c, k, p);
  }
  p->used = ++k->clock;
  spx_plan_ref(p);
  *out = p;
  return MPI_SUCCESS;
}

void spx_coll_comm_free(spx_comm *c)
{
  cache *k = c->plans;
  if (!k) return;
  c->plans = NULL;
  for (int s = 0; s < SETS; s++)
    for (int w = 0; w < WAYS; w++) spx_plan_unref(k->place[s][w]);
  free(k);
}

static int collective(const spx_coll *c, spx_how how)
{
  spx_plan *p;
  spx_request *r = NULL;
  int err = SPX_UNLIKELY(spx_checking) ? spx_check_collective(c, how.request != NULL) : MPI_SUCCESS;
  if (SPX_LIKELY(err == MPI_SUCCESS)) err = spx_coll_plan(c->comm, &c->key, &p);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) return SPX_COLL_FAIL(c->comm, err, "%s", spx_detail_text());
  if (!how.request)
    err = spx_plan_run(p, c);
  else if (how.persistent)
    err = spx_plan_init(p, c, &r);
  else
    err = spx_plan_start(p, c, &r);
  spx_plan_unref(p);
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) {
    if (r) spx_request_free(r);
    return SPX_COLL_FAIL(c->comm, err, "%s", spx_detail_text());
  }
  if (how.request) *how.request = (MPI_Request)(uintptr_t)r->o.handle;
  return MPI_SUCCESS;
}

int spx_collective(const spx_coll *c, spx_how how)
{
  if (SPX_LIKELY(!how.persistent)) return collective(c, how);
  spx_coll persistent = *c;
  persistent.key.persistent = 1;
  return collective(&persistent, how);
}
