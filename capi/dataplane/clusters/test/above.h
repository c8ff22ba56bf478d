/* above.h - a job (job.h) whose processes have systems of clusters above sends and receives. */
#ifndef SPX_TEST_CLUSTERS_ABOVE_H
#define SPX_TEST_CLUSTERS_ABOVE_H
#define JOB_ABOVE
static void job_above(void);
#include "job.h"
#include "other_way.h"
#include "replay.h"

static void job_above(void)
{
  job_handlers[SPX_REC_ABORTED] = spx_pass_on_aborted;
  job_failures[0] = &spx_clusters_failures;
  spx_other = &spx_clusters_way;
}

static int sends_all(uint32_t fn)
{
  (void)fn;
  return SPX_DOES_SEND;
}
static int chooses_none(int tag)
{
  (void)tag;
  return -1;
}
static uint32_t one_lane(int iop, int tag)
{
  (void)iop, (void)tag;
  return 0;
}

/* This process is participant me of n (at most 8), which procs are now, all ranks, each of which is
 * replaced if it dies. */
static inline void job_participant(uint32_t me, const uint32_t *procs, uint32_t n)
{
  static const bool heals[8] = {true, true, true, true, true, true, true, true};
  static const uint32_t iop[8];
  spx_replay_setup s = {.participants = n,
                        .me = me,
                        .procs = procs,
                        .heals = heals,
                        .iop = iop,
                        .whole = true,
                        .ctx = 2000,
                        .wire = job_comm(2000, procs, (int)n, (int)me),
                        .kind = sends_all,
                        .choose = chooses_none,
                        .lane = one_lane};
  CHECK(spx_replay_begin(&s) == MPI_SUCCESS);
}
#endif
