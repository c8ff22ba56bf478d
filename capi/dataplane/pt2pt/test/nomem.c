/* The memory file cannot grow: without a channel a send fails with MPI_ERR_NO_MEM and succeeds
 * later; without rings everything goes through the channels, slowly and whole. Nothing touches
 * memory that is not there. */
// sanitize: address,undefined
// flags: -Wl,--wrap=fallocate
#include "job.h"
#include <fcntl.h>
#include <sys/syscall.h>

static int no_channels, no_rings;

/* The data plane calls this instead of fallocate. */
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
  if ((no_channels && bytes == SPX_CHAN_BYTES) || (no_rings && bytes == SPX_RING_BYTES)) {
    errno = ENOSPC;
    return -1;
  }
  return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static void without_channel(spx_comm *c)
{
  char x = 5;
  spx_request *r;
  if (c->rank == 0) {
    no_channels = 1;
    CHECK(spx_send(&x, 1, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == MPI_ERR_NO_MEM);
    CHECK(spx_isend(&x, 1, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_SYNC, 0, &r) == 0);
    CHECK(r->done && spx_wait(r) == MPI_ERR_NO_MEM && strstr(spx_detail_text(), "memory"));
    spx_request_free(r);
    no_channels = 0;
    CHECK(spx_send(&x, 1, job_bytes, 1, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  } else {
    x = 0;
    CHECK(spx_recv(&x, 1, job_bytes, 0, 1, c, SPX_CTX_P2P, NULL) == 0 && x == 5);
  }
}

static void without_rings(spx_comm *c)
{
  static const int sizes[] = {8, 33, 500, 16384, 50000};
  static uint8_t out[50000], in[50000];
  no_rings = 1;
  for (int round = 0; round < 10; round++)
    for (int k = 0; k < 5; k++) {
      spx_request *r;
      pattern_fill(out, (uint64_t)(c->rank + round), (size_t)(sizes[k]));
      CHECK(spx_irecv(in, sizeof in, job_bytes, 1 - c->rank, k, c, SPX_CTX_P2P, 0, &r) == 0);
      CHECK(spx_send(out, sizes[k], job_bytes, 1 - c->rank, k, c, SPX_CTX_P2P, SPX_M_STANDARD) ==
            0);
      CHECK(spx_wait(r) == 0 && r->bytes == sizes[k]);
      spx_request_free(r);
      CHECK(pattern_is(in, (uint64_t)(1 - c->rank + round), (size_t)(sizes[k])));
    }
  CHECK(spx_txs[1 - c->rank].ring < 0);
  no_rings = 0;
}

static void body(spx_comm *c)
{
  without_channel(c);
  without_rings(c);
  barrier(c);
}

int main(void)
{
  int bad = run_job((job){.procs = 2}, body);
  setenv("SPX_CMA", "0", 1);
  return bad + run_job((job){.procs = 2}, body) != 0;
}
