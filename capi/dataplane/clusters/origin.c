/* origin.c - how receives treat the origin of messages of a system of clusters (origin.h). */
#include "origin.h"

bool spx_io_process;
__thread int32_t spx_origin_last __attribute__((tls_model("initial-exec"))) =
    (int32_t)(0x80000000u | 255u << 22 | 0x3fffffu);

__thread uint32_t spx_origin_number __attribute__((tls_model("initial-exec")));

int spx_origin_shown(int32_t src)
{
  if (!spx_is_origin(src)) return src;
  return spx_io_process ? spx_origin_rank(src) : MPISP_CLUSTER_IN;
}

int spx_origin_note(MPI_Status *st, int32_t src)
{
  if (!spx_is_origin(src)) return src;
  spx_origin_last = src;
  if (st != MPI_STATUS_IGNORE) {
    st->MPI_internal[3] = src;
    st->MPI_internal[4] = (int)spx_origin_number;
  }
  return spx_origin_shown(src);
}
