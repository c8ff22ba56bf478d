/* A receiver that does not receive: its memory stays bounded however much is sent, the senders are
 * held back, and everything arrives in the end. Then thousands of unexpected messages and of posted
 * receives are matched in bad order, quickly. */
// sanitize: address,undefined
// timeout: 120
#include "job.h"
#include <malloc.h>
#include <sys/resource.h>

enum { SIZE = 4000, COUNT = 20000 /* 80 MB */, CREDIT = 1 << 20 };

static long resident_kib(void)
{
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

enum { HELD = 1000 };
/* Probes for what does not come, while it is flooded, until the sender is held back: it sleeps, and
 * nothing more has come for a while. */
static void probe_until_held(spx_comm *c)
{
  uint64_t before = 0;
  for (int flag, still = 0; still < HELD; still++) {
    CHECK(spx_iprobe(1, 99, c, SPX_CTX_P2P, &flag, NULL, NULL) == 0 && !flag);
    if (before && spx_unex_count == before &&
        __atomic_load_n(&spx_proc_of(1)->sleeping, __ATOMIC_RELAXED))
      continue;
    before = spx_unex_count;
    still = 0;
  }
}

static void flood(spx_comm *c)
{
  static uint8_t buf[SIZE];
  if (c->rank > 0) {
    for (int i = 0; i < COUNT; i++) {
      memset(buf, i, sizeof buf);
      CHECK(spx_send(buf, sizeof buf, job_bytes, 0, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    }
    return;
  }
  long before = resident_kib();
  probe_until_held(c);
  CHECK(spx_unex_count * (SIZE + 32) <= CREDIT + 3 * (uint64_t)(SIZE + 64));
  CHECK(resident_kib() - before < 40 * 1024); /* the sanitizer's share included */
  for (int i = 0; i < COUNT; i++) {
    CHECK(spx_recv(buf, sizeof buf, job_bytes, 1, 1, c, SPX_CTX_P2P, NULL) == 0);
    CHECK(buf[0] == (uint8_t)i && buf[SIZE - 1] == (uint8_t)i);
  }
}

/* Messages without payload use up credit too. */
static void flood_empty(spx_comm *c)
{
  if (c->rank > 0) {
    for (int i = 0; i < COUNT * 2; i++)
      CHECK(spx_send(NULL, 0, job_bytes, 0, 2, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    return;
  }
  int flag;
  for (int i = 0; i < 20000; i++) CHECK(spx_iprobe(1, 99, c, SPX_CTX_P2P, &flag, NULL, NULL) == 0);
  CHECK(spx_unex_count <= CREDIT / 64 + 1);
  for (int i = 0; i < COUNT * 2; i++)
    CHECK(spx_recv(NULL, 0, job_bytes, 1, 2, c, SPX_CTX_P2P, NULL) == 0);
}

/* Many tags, received last to first; then receives posted first to last and sent last to first. */
static void bad_order(spx_comm *c)
{
  enum { MANY = 8000 };
  static int in[MANY];
  static spx_request *r[MANY];
  if (c->rank > 0) {
    for (int i = 0; i < MANY; i++)
      CHECK(spx_send(&i, sizeof i, job_bytes, 0, i, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    int go;
    CHECK(spx_recv(&go, sizeof go, job_bytes, 0, 0, c, SPX_CTX_P2P, NULL) == 0);
    for (int i = MANY - 1; i >= 0; i--)
      CHECK(spx_send(&i, sizeof i, job_bytes, 0, i, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
    return;
  }
  for (int i = MANY - 1; i >= 0; i--)
    CHECK(spx_recv(&in[i], sizeof in[i], job_bytes, 1, i, c, SPX_CTX_P2P, NULL) == 0 && in[i] == i);
  for (int i = 0; i < MANY; i++)
    CHECK(spx_irecv(&in[i], sizeof in[i], job_bytes, 1, i, c, SPX_CTX_P2P, 0, &r[i]) == 0);
  CHECK(spx_send(&in[0], sizeof in[0], job_bytes, 1, 0, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  for (int i = 0; i < MANY; i++) {
    CHECK(spx_wait(r[i]) == 0 && in[i] == i);
    spx_request_free(r[i]);
  }
}

static void body(spx_comm *c)
{
  flood(c);
  flood_empty(c);
  barrier(c);
  bad_order(c);
  barrier(c);
  CHECK(spx_unex_count == 0 && spx_posted_count == 0);
}

int main(void)
{
  setenv("SPX_CREDIT", "1048576", 1);
  return run_job((job){.procs = 2}, body) != 0;
}
