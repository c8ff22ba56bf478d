/* Messages that a process has sent as a participant of a system are read when another process,
 * another participant, has its number: the number stays with that one. The former participant has
 * another process, which must not be lost by this. */
// sanitize: address,undefined
#include "above.h"
#include "replay.h"

enum {
  RECEIVER,
  BEFORE,
  AFTER,
  PARTICIPANTS,
  OTHER = PARTICIPANTS,
  PROCESSES
}; /* participants have the processes of these numbers at first */

static void body(spx_comm *world)
{
  static const uint32_t procs[PARTICIPANTS] = {RECEIVER, BEFORE, AFTER};
  spx_comm *c = job_comm(1000, NULL, PROCESSES, world->rank);
  int sent = 7, got = 0;
  barrier(world);
  if (world->rank == BEFORE) {
    job_participant(BEFORE, procs, PARTICIPANTS);
    c->flags |= SPX_C_REPLAY;
    spx_request *r;
    CHECK(spx_isend(&sent, sizeof sent, job_bytes, RECEIVER, 1, c, SPX_CTX_P2P, SPX_M_STANDARD, 0,
                    &r) == 0);
    spx_replay_end();
  }
  barrier(world);
  if (world->rank != RECEIVER) {
    barrier(world); /* stays alive as long */
    return;
  }
  job_participant(RECEIVER, procs, PARTICIPANTS);
  spx_replay_place(BEFORE, OTHER);
  spx_proc_of(BEFORE)->serial = 9; /* a later process has this number */
  spx_proc_of(BEFORE)->incarnation++;
  spx_replay_place(AFTER, BEFORE);
  CHECK(spx_replay_participant(OTHER) == BEFORE && spx_replay_participant(BEFORE) == AFTER);
  CHECK(spx_recv(&got, sizeof got, job_bytes, BEFORE, 1, c, SPX_CTX_P2P, NULL) == 0);
  CHECK(got == sent);
  CHECK(spx_replay_participant(BEFORE) == AFTER);
  barrier(world);
}

int main(void) { return run_job((job){.procs = PROCESSES, .ncpus = 2}, body); }
