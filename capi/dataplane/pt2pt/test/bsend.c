/* A buffered send that finds no room: it waits while there is hope, no longer than its patience,
 * also when something moves all the time that makes no room; and it goes on as soon as there is
 * room. MPI-5.0 3.6. */
// sanitize: address,undefined
// timeout: 60
#include "job.h"
#include "bsend.h"

enum { LONG = 1 << 20, SHORT = 1000, MS = 1000000, NEVER = 0x7fffffff };
static uint8_t message[LONG], in[LONG], space[LONG + 2 * MPI_BSEND_OVERHEAD];

static int looks;
static int always_moves(spx_poller *p)
{
  (void)p;
  looks++;
  return 1;
}

static int bsend(spx_comm *c, int n, int tag)
{
  return spx_send(message, n, job_bytes, 1, tag, c, SPX_CTX_P2P, SPX_M_BUFFERED);
}

static uint64_t refused(spx_comm *c)
{
  uint64_t began = now_ns();
  CHECK(bsend(c, SHORT, 2) == MPI_ERR_BUFFER);
  return now_ns() - began;
}

static void sender(spx_comm *c)
{
  static spx_poller mover = {.poll = always_moves};
  CHECK(bsend(c, SHORT, 2) == MPI_ERR_BUFFER); /* there is no buffer */
  CHECK(spx_buffer_attach(SPX_K_COMM, NULL, space, sizeof space) == MPI_SUCCESS);
  memset(message, 7, sizeof message);
  CHECK(bsend(c, LONG, 1) == MPI_SUCCESS); /* the whole buffer, until it is received */

  spx_bsend_patience = (spx_patience){.still_ns = 20 * MS, .total_ns = (uint64_t)NEVER * MS};
  CHECK(refused(c) > 20 * MS); /* nothing moves */

  spx_bsend_patience = (spx_patience){.still_ns = (uint64_t)NEVER * MS, .total_ns = 50 * MS};
  spx_poller_add(&mover);
  CHECK(refused(c) > 50 * MS); /* something moves all the time */
  CHECK(looks > 0);
  spx_poller_del(&mover);

  spx_bsend_patience.total_ns = (uint64_t)NEVER * MS;
  char go = 1;
  CHECK(spx_send(&go, 1, job_bytes, 1, 0, c, SPX_CTX_P2P, SPX_M_STANDARD) == MPI_SUCCESS);
  CHECK(bsend(c, SHORT, 2) == MPI_SUCCESS); /* when the first one has been received */
  int64_t size;
  void *at;
  CHECK(spx_buffer_detach(NULL, &at, &size) == MPI_SUCCESS && at == space &&
        size == (int64_t)sizeof space);
}

static void body(spx_comm *c)
{
  if (c->rank == 0) {
    sender(c);
    barrier(c);
    return;
  }
  char go;
  CHECK(spx_recv(&go, 1, job_bytes, 0, 0, c, SPX_CTX_P2P, NULL) == MPI_SUCCESS);
  CHECK(spx_recv(in, LONG, job_bytes, 0, 1, c, SPX_CTX_P2P, NULL) == MPI_SUCCESS && in[0] == 7 &&
        in[LONG - 1] == 7);
  CHECK(spx_recv(in, LONG, job_bytes, 0, 2, c, SPX_CTX_P2P, NULL) == MPI_SUCCESS);
  barrier(c);
}

int main(void) { return run_job((job){.procs = 2}, body) != 0; }
