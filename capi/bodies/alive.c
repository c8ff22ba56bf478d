/* alive.c - MPISP_Alive: how long this process will be silent. The agent of its host, which watches
 * it (launch/watch), reads that in the memory file. */
#include "dp.h"
#include "shim.h"
#include "stat.h"

int spx_c_SP_Alive(int milliseconds)
{
  spx_lock();
  if (spx_segment) {
    spx_proc *p = spx_proc_of(spx_me);
    __atomic_store_n(&p->promise_ms, (uint64_t)milliseconds, __ATOMIC_RELAXED);
    __atomic_store_n(&p->promised_at, spx_stat_moves(), __ATOMIC_RELAXED);
    __atomic_store_n(&p->promises, p->promises + 1, __ATOMIC_RELEASE);
  }
  spx_unlock();
  return MPI_SUCCESS;
}
