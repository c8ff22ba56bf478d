/* The cache of plans alone: what is found, what is compiled anew, how much is kept. The engine is
 * played here. */
// sanitize: address,undefined
#include "job.h"
#include "coll.h"

const char *const spx_fn_name[SPX_FN_COUNT];
_Atomic int spx_state;
static int compiled, refuse;

/* Compiles a plan without steps. */
int spx_go_internal(spx_frame *f)
{
  CHECK(f->fn == SPX_IN_PLAN);
  if (refuse) return MPI_ERR_NO_MEM;
  compiled++;
  *(spx_plan **)f->a[2].p = spx_plan_new(0, 0, 0, 0);
  return MPI_SUCCESS;
}
int spx_raise(spx_kind k, void *handle, int code, const char *function, const char *fmt, ...)
{
  (void)k, (void)handle, (void)function, (void)fmt;
  return code;
}

static spx_plan_key shape(int kind, int64_t count)
{
  spx_plan_key k;
  memset(&k, 0, sizeof k);
  k.kind = (uint8_t)kind;
  k.rcount = count;
  return k;
}

/* Requests a plan and gives it back; returns how many were compiled for it. */
static int ask(spx_comm *c, int kind, int64_t count)
{
  spx_plan_key k = shape(kind, count);
  spx_plan *p;
  int before = compiled;
  CHECK(spx_coll_plan(c, &k, &p) == MPI_SUCCESS);
  CHECK(memcmp(&p->key, &k, sizeof k) == 0);
  spx_plan_unref(p);
  return compiled - before;
}

int main(void)
{
  spx_comm *c = job_comm(8, NULL, 1, 0), *other = job_comm(16, NULL, 1, 0);
  CHECK(ask(c, SPX_COLL_BARRIER, 0) == 1 && ask(c, SPX_COLL_BARRIER, 0) == 0);
  CHECK(ask(other, SPX_COLL_BARRIER, 0) == 1); /* of its own */
  for (int round = 0; round < 3; round++) /* the same count of another operation is another plan */
    for (int kind = 1; kind < SPX_COLL_COUNT; kind++) CHECK(ask(c, kind, 77) == (round == 0));
  CHECK(ask(c, SPX_COLL_BARRIER, 0) == 0);
  /* more than fit */
  for (int64_t n = 0; n < 1000; n++) CHECK(ask(c, SPX_COLL_BCAST, 1000 + n) == 1);
  /* the last are kept */
  CHECK(ask(c, SPX_COLL_BCAST, 1999) == 0);
  /* the first are not */
  CHECK(ask(c, SPX_COLL_BCAST, 1000) == 1);
  spx_plan_key k = shape(SPX_COLL_REDUCE, 5);
  spx_plan *held;
  CHECK(spx_coll_plan(c, &k, &held) == MPI_SUCCESS);
  for (int64_t n = 0; n < 1000; n++) ask(c, SPX_COLL_BCAST, n);
  /* thrown out of the cache, not from under its user */
  CHECK(memcmp(&held->key, &k, sizeof k) == 0);
  refuse = 1;
  spx_plan *none = held;
  k = shape(SPX_COLL_SCAN, 123456);
  CHECK(spx_coll_plan(c, &k, &none) == MPI_ERR_NO_MEM && none == NULL);
  refuse = 0;
  CHECK(ask(c, SPX_COLL_SCAN, 123456) == 1);
  spx_coll_comm_free(c);
  spx_coll_comm_free(c); /* nothing left */
  spx_coll_comm_free(other);
  spx_plan_unref(held);
  free(c->peer), free(c), free(other->peer), free(other);
  return 0; /* and nothing leaks */
}
