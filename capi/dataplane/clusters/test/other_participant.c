/* A process that still takes the number of another one for that of a participant of a system, as
 * tables of the system arrive late, sends messages for that participant there: they are not
 * received, and messages sent after the tables have arrived are. */
// sanitize: address,undefined
#include "above.h"
#include "replay.h"

enum { PARTICIPANTS = 3, ELSEWHERE = 2 /* a number that no process has */ };

static void body(spx_comm *world)
{
  static const uint32_t as_sent[PARTICIPANTS] = {0, 1, ELSEWHERE},
                        as_is[PARTICIPANTS] = {0, ELSEWHERE, 1};
  spx_comm *c = job_comm(1000, NULL, 2, world->rank);
  int first = 1, second = 2, got = 0;
  barrier(world);
  if (world->rank == 1) {
    job_participant(2, as_is, PARTICIPANTS);
    CHECK(spx_recv(&got, sizeof got, job_bytes, 0, 1, c, SPX_CTX_P2P, NULL) == 0);
    CHECK(got == second);
    barrier(world);
    return;
  }
  job_participant(0, as_sent, PARTICIPANTS);
  c->flags |= SPX_C_REPLAY;
  spx_request *r[2];
  CHECK(spx_isend(&first, sizeof first, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0,
                  &r[0]) == 0);
  spx_replay_place(2, 1);
  CHECK(spx_isend(&second, sizeof second, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0,
                  &r[1]) == 0);
  CHECK(spx_wait(r[1]) == 0);
  barrier(world);
}

int main(void) { return run_job((job){.procs = 2, .maxprocs = 3, .ncpus = 2}, body); }
