/* coll_inside.c - collectives that other functions of MPI need for themselves, on words of 8 bytes.
 * They run over the caller's communicator, whose plans are warm, between the user's own: all
 * processes are in the same call. */
#include "coll.h"
#include "comm.h"
#include "shim.h"

static spx_type *words(void) { return (spx_type *)spx_get(SPX_K_TYPE, MPI_INT64_T); }

static int run(spx_coll *c)
{
  spx_plan *p;
  spx_creation_step();
  int err = spx_coll_plan(c->comm, &c->key, &p);
  if (err != MPI_SUCCESS) return err;
  err = spx_plan_run(p, c);
  spx_plan_unref(p);
  return err;
}

static void gather(spx_coll *c, spx_comm *comm, const void *mine, void *all, size_t bytes)
{
  spx_coll_on(c, comm, SPX_COLL_ALLGATHER);
  spx_coll_receives(c, all, (int64_t)bytes / 8, words());
  spx_coll_sends(c, mine, (int64_t)bytes / 8, words());
}

int spx_inside_gather(spx_comm *comm, const void *mine, void *all, size_t bytes)
{
  spx_coll c;
  gather(&c, comm, mine, all, bytes);
  return run(&c);
}

static int start(spx_coll *c, spx_request **r)
{
  spx_plan *p;
  spx_creation_step();
  int err = spx_coll_plan(c->comm, &c->key, &p);
  if (err != MPI_SUCCESS) return err;
  *r = NULL;
  err = spx_plan_start(p, c, r);
  spx_plan_unref(p);
  if (err == MPI_SUCCESS || !*r) return err;
  spx_request_free(*r);
  *r = NULL;
  return err;
}

int spx_inside_gather_begin(spx_comm *comm, const void *mine, void *all, size_t bytes,
                            spx_request **r)
{
  spx_coll c;
  gather(&c, comm, mine, all, bytes);
  return start(&c, r);
}

static void greatest(spx_coll *c, spx_comm *comm, const int64_t *mine, int64_t *all, int n)
{
  spx_coll_on(c, comm, SPX_COLL_ALLREDUCE);
  c->op = (spx_op *)spx_get(SPX_K_OP, MPI_MAX);
  c->key.commute = 1;
  spx_coll_sends(c, mine, n, words());
  spx_coll_receives(c, all, n, words());
}

int spx_inside_greatest_of(spx_comm *comm, const int64_t *mine, int64_t *all, int n)
{
  spx_coll c;
  greatest(&c, comm, mine, all, n);
  return run(&c);
}

int spx_inside_greatest_begin(spx_comm *comm, const int64_t *mine, int64_t *all, int n,
                              spx_request **r)
{
  spx_coll c;
  greatest(&c, comm, mine, all, n);
  return start(&c, r);
}

static void bcast(spx_coll *c, spx_comm *comm, void *data, size_t bytes)
{
  spx_coll_on(c, comm, SPX_COLL_BCAST);
  spx_coll_receives(c, data, (int64_t)bytes / 8, words());
}

int spx_inside_bcast(spx_comm *comm, void *data, size_t bytes)
{
  spx_coll c;
  bcast(&c, comm, data, bytes);
  return run(&c);
}

int spx_inside_bcast_begin(spx_comm *comm, void *data, size_t bytes, spx_request **r)
{
  spx_coll c;
  bcast(&c, comm, data, bytes);
  return start(&c, r);
}
