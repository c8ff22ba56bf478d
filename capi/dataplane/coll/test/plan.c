/* The plan executor alone, with plans written by hand: order of steps, waits, copies, reductions,
 * counts by array, several runs of one plan at once, and a death in the middle: every survivor's
 * run ends. MPI-5.0 6.12; docs/dataplane.md, "Failures". */
// sanitize: address,undefined
// timeout: 120
#include "job.h"
#include "plan.h"
#include "reduce.h"

enum { PROCS = 6, VICTIM = 2 };

/* ---- writing plans ---- */
typedef struct {
  spx_step steps[64];
  int32_t waits[64];
  int nsteps, nwaits, nslots;
} draft;

static spx_operand ints(int buf, int64_t i, int64_t n)
{
  return (spx_operand){
      .buf = (uint8_t)buf, .type = SPX_PT_RECV, .off = i * (int64_t)sizeof(int), .count = n};
}
static int transfer(draft *d, int op, int peer, spx_operand x)
{
  d->steps[d->nsteps++] = (spx_step){.op = (uint8_t)op, .peer = peer, .slot = d->nslots, .x = x};
  return d->nslots++;
}
static void wait_for(draft *d, int slot)
{
  d->steps[d->nsteps++] = (spx_step){.op = SPX_P_WAIT, .first = d->nwaits, .n = 1};
  d->waits[d->nwaits++] = slot;
}
static void local(draft *d, int op, spx_operand x, spx_operand y)
{
  d->steps[d->nsteps++] = (spx_step){.op = (uint8_t)op, .x = x, .y = y};
}

static spx_plan *finish(const draft *d, int64_t temp)
{
  spx_plan *p =
      spx_plan_new((uint32_t)d->nsteps, (uint32_t)d->nwaits, (uint32_t)d->nslots, temp ? 1 : 0);
  CHECK(p != NULL);
  memcpy(p->steps, d->steps, (size_t)d->nsteps * sizeof *d->steps);
  memcpy(p->waits, d->waits, (size_t)d->nwaits * sizeof *d->waits);
  if (temp) p->regions[0].fixed = temp;
  return p;
}

/* The sum of the ranks' vectors of n at all ranks: up and down a chain. Temporary memory holds what
 * comes from below. */
static spx_plan *chain_sum(const spx_comm *c, int64_t n)
{
  draft d = {0};
  local(&d, SPX_P_COPY, ints(SPX_PB_SEND, 0, n), ints(SPX_PB_RECV, 0, n));
  if (c->rank > 0) {
    wait_for(&d, transfer(&d, SPX_P_RECV, c->rank - 1, ints(SPX_PB_TEMP, 0, n)));
    local(&d, SPX_P_REDUCE, ints(SPX_PB_TEMP, 0, n), ints(SPX_PB_RECV, 0, n));
  }
  if (c->rank + 1 < c->size) {
    wait_for(&d, transfer(&d, SPX_P_SEND, c->rank + 1, ints(SPX_PB_RECV, 0, n)));
    wait_for(&d, transfer(&d, SPX_P_RECV, c->rank + 1, ints(SPX_PB_RECV, 0, n)));
  }
  if (c->rank > 0) transfer(&d, SPX_P_SEND, c->rank - 1, ints(SPX_PB_RECV, 0, n));
  return finish(&d, n * (int64_t)sizeof(int));
}

static spx_coll call(spx_comm *c, const void *send, void *recv)
{
  spx_type *t = (spx_type *)spx_get(SPX_K_TYPE, MPI_INT);
  return (spx_coll){.comm = c,
                    .send = send,
                    .recv = recv,
                    .stype = t,
                    .rtype = t,
                    .op = (spx_op *)spx_get(SPX_K_OP, MPI_SUM)};
}

/* ---- healthy runs ---- */
static void fill(int *v, int n, int key)
{
  for (int i = 0; i < n; i++) v[i] = key * 1000 + i;
}
static void check_sum(const int *v, int n, int size, int extra)
{
  for (int i = 0; i < n; i++)
    CHECK(v[i] == size * (size - 1) / 2 * 1000 + size * i + size * extra * 1000);
}

static void blocking(spx_comm *c, int n)
{
  int *in = malloc((size_t)n * sizeof *in + 1), *out = malloc((size_t)n * sizeof *out + 1);
  spx_plan *p = chain_sum(c, n);
  for (int round = 0; round < 20; round++) {
    spx_coll k = call(c, in, out);
    fill(in, n, c->rank + round);
    CHECK(spx_plan_run(p, &k) == MPI_SUCCESS);
    check_sum(out, n, c->size, round);
  }
  spx_plan_unref(p);
  free(in);
  free(out);
}

/* Several runs of one plan at once, and a persistent request started again; completed in the other
 * order. */
static void nonblocking(spx_comm *c)
{
  enum { N = 300, AT_ONCE = 5 };
  static int in[AT_ONCE][N], out[AT_ONCE][N];
  spx_plan *p = chain_sum(c, N);
  spx_request *r[AT_ONCE], *again;
  for (int i = 0; i < AT_ONCE; i++) {
    spx_coll k = call(c, in[i], out[i]);
    fill(in[i], N, c->rank + i);
    CHECK(spx_plan_start(p, &k, &r[i]) == MPI_SUCCESS);
  }
  for (int i = AT_ONCE - 1; i >= 0; i--) {
    CHECK(spx_wait(r[i]) == MPI_SUCCESS);
    check_sum(out[i], N, c->size, i);
    spx_request_free(r[i]);
  }
  spx_coll k = call(c, in[0], out[0]);
  CHECK(spx_plan_init(p, &k, &again) == MPI_SUCCESS);
  spx_plan_unref(p); /* the request keeps it */
  for (int round = 0; round < 10; round++) {
    fill(in[0], N, c->rank + round);
    CHECK(spx_start(again) == MPI_SUCCESS && spx_wait(again) == MPI_SUCCESS);
    check_sum(out[0], N, c->size, round);
  }
  spx_request_free(again);
}

/* Counts and displacements by array: rank 0 gathers i elements from rank i; nothing travels where a
 * count is 0. */
static void by_arrays(spx_comm *c)
{
  int counts[PROCS], displs[PROCS], in[PROCS], out[64];
  draft d = {0};
  for (int i = 0, at = 0; i < c->size; i++, at += i) counts[i] = i, displs[i] = at;
  for (int i = 0; i < c->rank; i++) in[i] = 100 * c->rank + i;
  memset(out, 0xff, sizeof out);
  if (c->rank == 0)
    for (int i = 1; i < c->size; i++)
      transfer(
          &d, SPX_P_RECV, i,
          (spx_operand){.buf = SPX_PB_RECV, .mode = SPX_PM_INDEX, .type = SPX_PT_RECV, .a = i});
  else
    transfer(&d, SPX_P_SEND, 0, ints(SPX_PB_SEND, 0, c->rank));
  spx_plan *p = finish(&d, 0);
  spx_coll k = call(c, in, out);
  k.rcounts = (spx_array){counts, 0};
  k.rdispls = (spx_array){displs, 0};
  CHECK(spx_plan_run(p, &k) == MPI_SUCCESS);
  for (int i = 1; i < c->size && c->rank == 0; i++)
    for (int j = 0; j < i; j++) CHECK(out[displs[i] + j] == 100 * i + j);
  spx_plan_unref(p);
}

/* A message of another length than planned is an error at the receiver, and no rank hangs. */
static void mismatch(spx_comm *c)
{
  int v[8] = {0};
  draft d = {0};
  if (c->rank == 0) transfer(&d, SPX_P_SEND, 1, ints(SPX_PB_RECV, 0, 3));
  if (c->rank == 1) wait_for(&d, transfer(&d, SPX_P_RECV, 0, ints(SPX_PB_RECV, 0, 5)));
  if (c->rank == 1) transfer(&d, SPX_P_SEND, 2, ints(SPX_PB_RECV, 0, 5));
  if (c->rank == 2) transfer(&d, SPX_P_RECV, 1, ints(SPX_PB_RECV, 0, 5));
  spx_plan *p = finish(&d, 0);
  spx_coll k = call(c, v, v);
  CHECK(spx_plan_run(p, &k) == (c->rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
  spx_plan_unref(p);
}

static void healthy(spx_comm *c)
{
  spx_ops_init();
  blocking(c, 1);
  blocking(c, 1000);
  blocking(c, 100000);
  nonblocking(c);
  by_arrays(c);
  mismatch(c);
  barrier(c);
}

/* ---- a death ---- */
static int is_victim(uint32_t i) { return i == VICTIM; }

/* The victim dies in some step of some round. The other ranks continue until they detect it: each
 * run ends, those that need the victim with an error, and the poison reaches the ranks that never
 * communicate with it. */
static void deadly(spx_comm *c, int n, int dies_in, int request)
{
  int *in = calloc((size_t)n, sizeof *in), *out = calloc((size_t)n, sizeof *out), err = MPI_SUCCESS;
  spx_plan *p = chain_sum(c, n);
  for (int round = 0; err == MPI_SUCCESS; round++) {
    CHECK(round <= dies_in);
    if (c->rank == VICTIM && round == dies_in) {
      if (round % 2) { /* half-way: what came from below is not passed on */
        spx_request *r;
        spx_irecv(in, n, (spx_type *)spx_get(SPX_K_TYPE, MPI_INT), c->rank - 1, (int)c->coll_seq, c,
                  SPX_CTX_COLL, 0, &r);
        spx_wait(r);
      }
      kill(getpid(), SIGKILL);
    }
    spx_coll k = call(c, in, out);
    if (!request)
      err = spx_plan_run(p, &k);
    else {
      spx_request *r;
      CHECK(spx_plan_start(p, &k, &r) == MPI_SUCCESS);
      err = spx_wait(r);
      spx_request_free(r);
    }
    CHECK(err == MPI_SUCCESS || err == MPIX_ERR_PROC_FAILED);
  }
  spx_plan_unref(p);
  free(in);
  free(out);
}

static void dies_short(spx_comm *c) { spx_ops_init(), deadly(c, 2, 3, 0); }
static void dies_long(spx_comm *c) { spx_ops_init(), deadly(c, 100000, 2, 0); }
static void dies_request(spx_comm *c) { spx_ops_init(), deadly(c, 3000, 5, 1); }

int main(void)
{
  int bad = run_job((job){.procs = PROCS}, healthy);
  bad += run_job((job){.procs = PROCS, .mt = 1}, healthy);
  bad += run_job((job){.procs = PROCS, .killed = is_victim}, dies_short);
  bad += run_job((job){.procs = PROCS, .killed = is_victim}, dies_long);
  bad += run_job((job){.procs = PROCS, .killed = is_victim}, dies_request);
  return bad != 0;
}
