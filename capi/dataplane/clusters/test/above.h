/* above.h - a job (job.h) whose processes have systems of clusters above sends and receives. */
#ifndef SPX_TEST_CLUSTERS_ABOVE_H
#define SPX_TEST_CLUSTERS_ABOVE_H
#define JOB_ABOVE
static void job_above(void);
#include "job.h"
#include "other_way.h"

static void job_above(void)
{
  job_handlers[SPX_REC_SPOILT] = spx_pass_on_spoilt;
  job_failures[0] = &spx_clusters_failures;
  spx_other = &spx_clusters_way;
}
#endif
