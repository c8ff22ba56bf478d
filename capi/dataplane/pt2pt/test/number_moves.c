/* A number was that of a process of this host, which was talked to through memory, and goes to one
 * of another host, which connects itself and sends before a communicator leads to it: what comes is
 * taken for the new one's. */
// sanitize: address,undefined
#define JOB_SOCKETS 1
#define JOB_HOSTS   1
#include "job.h"
#include <poll.h>

enum { TIMES = 10 };

static void attach(int fd, uint32_t me)
{
  alarm(20); /* whatever hangs ends */
  spx_basic_init();
  job_bytes = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  CHECK(job_attach(fd, me) == 0);
}

/* The process with number 1 in this life: sends a number, publishes that, and gets it back plus
 * one. */
static void other(int fd, uint32_t life, int x, const int *turn, const int *sent)
{
  char word;
  CHECK(read(turn[0], &word, 1) == 1); /* once it has its number */
  attach(fd, 1);
  spx_peer_hold(0);
  if (life == 2) spx_net_adopt(job_ends[1][0], 0, 1);
  spx_comm *c = job_comm(1000, NULL, 2, 1);
  for (int i = 0; i < TIMES; i++)
    CHECK(spx_send(&x, sizeof x, job_bytes, 0, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  while (spx_net_unsent()) job_serve();
  CHECK(write(sent[1], "", 1) == 1);
  int answer;
  CHECK(spx_recv(&answer, sizeof answer, job_bytes, 0, 2, c, SPX_CTX_P2P, NULL) == 0);
  CHECK(answer == x + 1);
  _exit(0);
}

static void talk(int x)
{
  int got = 0;
  spx_comm *c = job_comm(1000, NULL, 2, 0);
  for (int i = 0; i < TIMES; i++) {
    CHECK(spx_recv(&got, sizeof got, job_bytes, 1, 1, c, SPX_CTX_P2P, NULL) == 0);
    CHECK(got == x);
  }
  got++;
  CHECK(spx_send(&got, sizeof got, job_bytes, 1, 2, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
}

/* Receives until the peer has sent all, or until a connection was refused. */
static void await_sent(const int *sent)
{
  struct pollfd said = {.fd = sent[0], .events = POLLIN};
  char word;
  while (poll(&said, 1, 0) == 0 && spx_stat.net_refused == 0) job_serve();
  CHECK(spx_stat.net_refused == 0);
  CHECK(read(sent[0], &word, 1) == 1);
}

static void await(pid_t process)
{
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) job_serve();
  CHECK(status == 0);
}

int main(void)
{
  job j = {.procs = 2, .maxprocs = 2, .ncpus = 2};
  job_memory here = job_memory_of(&j, 0), there = job_memory_of(&j, 1);
  here.procs[1].host = 0;
  here.procs[1].agent_state = here.procs[0].agent_state = there.procs[0].agent_state =
      SPX_AGENT_STARTED;
  there.procs[1].agent_state = SPX_AGENT_STARTED;
  there.procs[1].incarnation = 2;
  int turn[2][2], sent[2];
  job_connect(2);
  if (pipe(turn[0]) != 0 || pipe(turn[1]) != 0 || pipe(sent) != 0) return 1;
  pid_t first = fork();
  if (first == 0) other(here.fd, 1, 10, turn[0], sent);
  pid_t second = fork();
  if (second == 0) other(there.fd, 2, 20, turn[1], sent);
  attach(here.fd, 0);

  CHECK(write(turn[0][1], "", 1) == 1);
  spx_peer_hold(1);
  talk(10);
  await(first);
  await_sent(sent);
  spx_peer_release(1, 0);

  here.procs[1].host = 1;
  __atomic_store_n(&here.procs[1].incarnation, 2, __ATOMIC_RELEASE);
  spx_net_adopt(job_ends[0][1], 1, 2);
  CHECK(write(turn[1][1], "", 1) == 1);
  await_sent(sent);
  spx_peer_hold(1);
  talk(20);
  await(second);
  _exit(0);
}
