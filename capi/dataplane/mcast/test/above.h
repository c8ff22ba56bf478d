/* above.h - a job (job.h) whose processes have multicasts above sends and receives. */
#ifndef SPX_TEST_MCAST_ABOVE_H
#define SPX_TEST_MCAST_ABOVE_H
#define JOB_ABOVE
static void job_above(void);
#include "job.h"
#include "mcast.h"

static void job_above(void)
{
  static const int records[] = {SPX_REC_MCAST, SPX_REC_MCAST_ACK, SPX_REC_MCAST_ASK,
                                SPX_REC_MCAST_HAVE};
  for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
    job_handlers[records[i]] = spx_mcast_on_record;
  job_failures[0] = &spx_mcast_failures;
  spx_kinds[SPX_R_MCAST] = &spx_mcast_kind;
  spx_casts = &spx_mcast_unexpected;
}
#endif
