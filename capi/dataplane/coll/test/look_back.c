/* The notification about an operation that peers have begun in another way waits for room in the
 * ring like any message: the communicator exists until it is sent. MPI-5.0 6.1. */
// sanitize: address,undefined
#include "job.h"
#include "plan.h"
#include "plan_run.h"
#include "share.h"

enum { NUMBER = 5, SIZE = 4000, COUNT = 200, FILL = 1 };
static int told[2]; /* a pipe: rank 1 takes nothing before */
static const uint32_t both[2] = {0, 1};

/* The communicator whose collectives are tested; rank 1 has begun operation NUMBER by messages,
 * rank 0 in shared memory. */
static spx_comm *other(int rank)
{
  static spx_share_line lines[2];
  static spx_share share = {.lines = lines, .n = 2, .behind = true};
  spx_comm *c = job_comm(16, both, 2, rank);
  lines[0].inside[NUMBER % SPX_SHARE_INSIDE] = NUMBER + 1;
  lines[1].outside[NUMBER % SPX_SHARE_OUTSIDE] = NUMBER + 1;
  c->share = &share;
  return c;
}

static void teller(spx_comm *world)
{
  static uint8_t data[SIZE];
  static spx_request *r[COUNT];
  for (int i = 0; i < COUNT; i++)
    CHECK(spx_isend(data, SIZE, job_bytes, 1, FILL, world, SPX_CTX_P2P, SPX_M_STANDARD, 0, &r[i]) ==
          MPI_SUCCESS);
  CHECK(spx_tx_waiting());
  spx_comm *c = other(0);
  int32_t before = c->o.refs;
  spx_share_look_back(c);
  CHECK(c->o.refs == before + 1);
  c->share->behind = true;
  spx_share_look_back(c); /* they have been notified */
  CHECK(c->o.refs == before + 1);
  CHECK(write(told[1], "", 1) == 1);
  for (int i = 0; i < COUNT; i++) {
    CHECK(spx_wait(r[i]) == MPI_SUCCESS);
    spx_request_free(r[i]);
  }
  barrier(world); /* the messages sent before have left */
  CHECK(c->o.refs == before);
}

static void body(spx_comm *world)
{
  if (world->rank == 0) {
    teller(world);
    return;
  }
  static uint8_t data[SIZE];
  char x;
  MPI_Status st;
  CHECK(read(told[0], &x, 1) == 1);
  for (int i = 0; i < COUNT; i++)
    CHECK(spx_recv(data, SIZE, job_bytes, 0, FILL, world, SPX_CTX_P2P, NULL) == MPI_SUCCESS);
  CHECK(spx_recv(data, SIZE, job_bytes, 0, NUMBER, other(1), SPX_CTX_COLL, &st) == MPI_SUCCESS);
  barrier(world);
}

int main(void)
{
  if (pipe(told) != 0) return 1;
  return run_job((job){.procs = 2}, body) != 0;
}
