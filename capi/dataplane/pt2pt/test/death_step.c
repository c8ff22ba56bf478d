/* A sender dies after any number of machine instructions of a send: the receiver gets the whole
 * message or the failure, never garbage, and never waits for ever. The sender runs step by step
 * under its agent (ptrace), through every kind of send. */
// sanitize: undefined
// timeout: 240
#include "job.h"
#include <sys/ptrace.h>

enum { MOST = 3000 };
static const struct {
  int size, before;
  spx_send_mode mode;
} kinds[] = {
    {8, 0, SPX_M_STANDARD},     /* the first message: the channel */
    {8, 6, SPX_M_STANDARD},     /* a ring is opened or used */
    {500, 0, SPX_M_STANDARD},   /* SWITCH and message at once */
    {9000, 10, SPX_M_STANDARD}, /* the ring wraps around: PAD */
    {200, 8, SPX_M_SYNC},
    {100000, 3, SPX_M_STANDARD} /* announced, then streamed or fetched */
};
static size_t kind;
static long steps;

/* Continues the sender to its SIGSTOP, then for a number of instructions, then ends it. */
static void supervise(const pid_t *pids)
{
  int status;
  if (waitpid(pids[1], &status, 0) != pids[1] || !WIFSTOPPED(status)) return;
  for (long k = 0; k < steps; k++)
    if (ptrace(PTRACE_SINGLESTEP, pids[1], 0, 0) != 0 ||
        waitpid(pids[1], &status, __WALL) != pids[1] || !WIFSTOPPED(status))
      break;
  kill(pids[1], SIGKILL);
}

static int is_sender(uint32_t i) { return i == 1; }

static void sender(spx_comm *c, uint8_t *buf)
{
  int n = kinds[kind].size;
  for (int i = 0; i < kinds[kind].before; i++) {
    pattern_fill(buf, (uint64_t)i, (size_t)n);
    CHECK(spx_send(buf, n, job_bytes, 0, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  }
  pattern_fill(buf, 99, (size_t)n);
  CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
  raise(SIGSTOP);
  for (;;) spx_send(buf, n, job_bytes, 0, 2, c, SPX_CTX_P2P, kinds[kind].mode);
}

static void body(spx_comm *c)
{
  static uint8_t buf[100000];
  int n = kinds[kind].size;
  if (c->rank == 1) sender(c, buf);
  MPI_Status st;
  for (int i = 0; i < kinds[kind].before; i++) {
    CHECK(spx_recv(buf, sizeof buf, job_bytes, 1, 1, c, SPX_CTX_P2P, &st) == 0 &&
          spx_status_bytes(&st) == n);
    CHECK(pattern_is(buf, (uint64_t)i, (size_t)n));
  }
  for (;;) {
    int rc = spx_recv(buf, sizeof buf, job_bytes, 1, 2, c, SPX_CTX_P2P, &st);
    if (rc == MPIX_ERR_PROC_FAILED) break;
    CHECK(rc == 0 && spx_status_bytes(&st) == n);
    CHECK(pattern_is(buf, 99, (size_t)n));
  }
  CHECK(spx_proc_dead(1) && spx_posted_count == 0);
}

/* Arguments: kind and steps of one run that failed. Without: a sample of every kind, other steps
 * each time the test is built differently, all of them in the long run. */
int main(int argc, char **argv)
{
  if (argc == 3) {
    kind = (size_t)atoi(argv[1]);
    steps = atol(argv[2]);
    return run_job((job){.procs = 2, .killed = is_sender, .supervise = supervise}, body);
  }
  uint64_t s = now_ns();
  for (int run = 0; run < full_or(240, 24); run++) {
    kind = (size_t)run % (sizeof kinds / sizeof *kinds);
    steps = rnd(&s) % MOST;
    if (run_job((job){.procs = 2, .killed = is_sender, .supervise = supervise}, body)) {
      fprintf(stderr, "again: death_step %zu %ld\n", kind, steps);
      return 1;
    }
  }
  return 0;
}
