/* Messages go through a relay while numbers change hands: what it holds of a process, or for one,
 * that is gone is neither the next one's nor given back to it. And a relay gives back as much room
 * as was taken, however a frame came. */
// sanitize: address,undefined
// timeout: 120
#define JOB_SOCKETS 1
#define JOB_HOSTS   2 /* 0 and 1 share memory; 2 is on another host, and connected with 0 alone */
#include "job.h"
#include "net_conn.h"
#include <sys/prctl.h>

enum { RELAY, SENDER, RECEIVER, N, NEXT = N };
enum { BYTES = 15000, TIMES = 12, OWN = 20, GO = 7 };
static char buffer[BYTES];
static int turn[N + 1][2]; /* processes that the test signals to continue */

static void attach(int fd, uint32_t me)
{
  spx_basic_init();
  job_bytes = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  int err = job_attach(fd, me);
  CHECK(err == 0);
  spx_routes *r = calloc(1, sizeof *r + N * sizeof r->to[0]);
  r->n = N;
  for (uint32_t i = 0; i < N; i++) r->to[i].kept = me == RELAY || i == RELAY || i == me;
  if (me != RELAY)
    r->to[SENDER + RECEIVER - me] = (spx_route){.n = 1, .via = {RELAY}, .needs = {1}};
  spx_net_policy((spx_net_ways){.heeds = true, .relays = true});
  spx_net_route(r);
}

static void await_turn(uint32_t me)
{
  alarm(60); /* whatever hangs ends */
  char word;
  CHECK(read(turn[me][0], &word, 1) == 1);
}

static void let(uint32_t who) { CHECK(write(turn[who][1], "", 1) == 1); }

/* Sends so much that the relay has to hold some, and notifies it when all is sent. */
static void much_through(spx_comm *c)
{
  spx_request *r;
  for (int i = 0; i < TIMES; i++)
    CHECK(spx_isend(buffer, sizeof buffer, job_bytes, RECEIVER, 1, c, SPX_CTX_P2P, SPX_M_STANDARD,
                    0, &r) == 0);
  CHECK(spx_send(buffer, 1, job_bytes, RELAY, GO, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
}

static void hold_others(uint32_t me)
{
  for (uint32_t i = 0; i < N; i++)
    if (i != me) spx_peer_hold(i);
}

/* The sender in its first life: gives the relay what it cannot forward, and dies. */
static void first_sender(int fd)
{
  await_turn(SENDER);
  attach(fd, SENDER);
  hold_others(SENDER);
  much_through(job_comm(1000, NULL, N, SENDER));
  for (;;) job_serve();
}

/* A process with another number's next life: an answer comes for what it sends, through the
 * relay. */
static void second_sender(int fd)
{
  await_turn(NEXT);
  attach(fd, SENDER);
  hold_others(SENDER);
  spx_comm *c = job_comm(2000, NULL, N, SENDER);
  char x = 3;
  CHECK(spx_send(&x, 1, job_bytes, RECEIVER, 2, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  CHECK(spx_recv(&x, 1, job_bytes, RECEIVER, 2, c, SPX_CTX_P2P, NULL) == 0);
  CHECK(x == 4);
  CHECK(spx_send(&x, 1, job_bytes, RELAY, 2, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  CHECK(spx_stat.net_refused == 0);
  _exit(0);
}

static void answer(int fd, uint32_t life)
{
  await_turn(RECEIVER);
  attach(fd, RECEIVER);
  hold_others(RECEIVER);
  spx_net_adopt(job_ends[RECEIVER][RELAY], RELAY, 1);
  spx_comm *own = job_comm(1000, NULL, N, RECEIVER), *c = job_comm(2000, NULL, N, RECEIVER);
  char x;
  for (int i = 0; life == 1 && i < OWN; i++)
    CHECK(spx_recv(buffer, sizeof buffer, job_bytes, RELAY, 1, own, SPX_CTX_P2P, NULL) == 0);
  CHECK(spx_recv(&x, 1, job_bytes, SENDER, 2, c, SPX_CTX_P2P, NULL) == 0);
  x++;
  CHECK(spx_send(&x, 1, job_bytes, SENDER, 2, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  CHECK(spx_recv(&x, 1, job_bytes, RELAY, 2, c, SPX_CTX_P2P, NULL) == 0);
  _exit(0);
}

/* Messages through the relay arrive, in order, from a process whose buffers are small. */
static void sends_in_pieces(int fd)
{
  await_turn(SENDER);
  attach(fd, SENDER);
  hold_others(SENDER);
  spx_comm *c = job_comm(1000, NULL, N, SENDER);
  for (int i = 0; i < 10 * TIMES; i++) {
    pattern_fill(buffer, (uint64_t)i, sizeof buffer);
    CHECK(spx_send(buffer, sizeof buffer, job_bytes, RECEIVER, 1, c, SPX_CTX_P2P, SPX_M_STANDARD) ==
          0);
  }
  CHECK(spx_recv(buffer, 1, job_bytes, RECEIVER, 2, c, SPX_CTX_P2P, NULL) == 0);
  CHECK(spx_send(buffer, 1, job_bytes, RELAY, 2, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  _exit(0);
}

static void receives_pieces(int fd)
{
  await_turn(RECEIVER);
  attach(fd, RECEIVER);
  hold_others(RECEIVER);
  spx_net_adopt(job_ends[RECEIVER][RELAY], RELAY, 1);
  spx_comm *c = job_comm(1000, NULL, N, RECEIVER);
  for (int i = 0; i < 10 * TIMES; i++) {
    CHECK(spx_recv(buffer, sizeof buffer, job_bytes, SENDER, 1, c, SPX_CTX_P2P, NULL) == 0);
    CHECK(pattern_is(buffer, (uint64_t)i, sizeof buffer));
  }
  CHECK(spx_send(buffer, 1, job_bytes, SENDER, 2, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  CHECK(spx_recv(buffer, 1, job_bytes, RELAY, 2, c, SPX_CTX_P2P, NULL) == 0);
  _exit(0);
}

static void ends_well(pid_t process)
{
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) job_serve();
  CHECK(status == 0);
}

static pid_t begin(void (*body)(int), int fd)
{
  pid_t relay = getpid(), pid = fork();
  if (pid) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == relay) body(fd);
  _exit(1);
}

/* Whatever ends badly ends all of it. */
static void on_child(int number)
{
  siginfo_t how = {0};
  (void)number;
  if (waitid(P_ALL, 0, &how, WEXITED | WNOHANG | WNOWAIT) != 0 || how.si_pid == 0) return;
  if (how.si_code == CLD_EXITED ? how.si_status != 0 : how.si_status != SIGKILL) _exit(1);
}

static void first_receiver(int fd) { answer(fd, 1); }
static void second_receiver(int fd) { answer(fd, 2); }

/* This process is the relay. */
static int run(void (*sender)(int), void (*next_sender)(int), void (*receiver)(int),
               bool receiver_is_new, bool rings)
{
  pid_t pid = fork();
  if (pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }
  job j = {.procs = N, .maxprocs = N, .ncpus = 2};
  job_memory files[2] = {job_memory_of(&j, 0), job_memory_of(&j, 1)};
  for (int h = 0; h < 2; h++) {
    if (!rings) files[h].seg->rings_per_proc = 0;
    for (int i = 0; i < N; i++)
      files[h].procs[i].agent_state = SPX_AGENT_STARTED,
      files[h].procs[i].owner_state = SPX_OWNER_INIT;
  }
  job_connect(N);
  for (int i = 0; i <= N; i++) CHECK(pipe(turn[i]) == 0);
  alarm(100);
  struct sigaction looks = {.sa_handler = on_child, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGCHLD, &looks, NULL) == 0);
  pid_t first = begin(sender, files[0].fd),
        second = next_sender ? begin(next_sender, files[0].fd) : 0;
  pid_t last = begin(receiver, files[1].fd);
  attach(files[0].fd, RELAY);
  hold_others(RELAY);
  spx_comm *c = job_comm(1000, NULL, N, RELAY), *later = job_comm(2000, NULL, N, RELAY);
  char x;

  if (next_sender) {
    spx_request *r;
    for (int i = 0; i < OWN;
         i++) /* the buffer to the receiver, which has no connection yet, is full */
      CHECK(spx_isend(buffer, sizeof buffer, job_bytes, RECEIVER, 1, c, SPX_CTX_P2P, SPX_M_STANDARD,
                      0, &r) == 0);
    let(SENDER);
    CHECK(spx_recv(&x, 1, job_bytes, SENDER, GO, c, SPX_CTX_P2P, NULL) == 0);
    CHECK(spx_detours->unsent() > 0);
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    job_publish(&j, &files[0], SENDER, true);
    job_publish(&j, &files[1], SENDER, true);
    job_serve();
    spx_peer_release(SENDER, 0);
    if (receiver_is_new) spx_peer_release(RECEIVER, 0);
    for (int h = 0; h < 2; h++) { /* the numbers go to new processes */
      files[h].procs[SENDER].incarnation = 2;
      __atomic_store_n(&files[h].procs[SENDER].agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
      if (receiver_is_new)
        __atomic_store_n(&files[h].procs[RECEIVER].incarnation, 2, __ATOMIC_RELEASE);
    }
  }
  /* it examines what it holds, before a communicator leads to the new process */
  if (next_sender) job_serve();
  let(RECEIVER);
  spx_net_adopt(job_ends[RELAY][RECEIVER], RECEIVER, receiver_is_new ? 2 : 1);
  let(next_sender ? NEXT : SENDER);
  if (next_sender) spx_peer_hold(SENDER);
  if (receiver_is_new) spx_peer_hold(RECEIVER);
  spx_comm *at_end = next_sender ? later : c;
  CHECK(spx_recv(&x, 1, job_bytes, SENDER, 2, at_end, SPX_CTX_P2P, NULL) == 0);
  CHECK(spx_send(&x, 1, job_bytes, RECEIVER, 2, at_end, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
  while (spx_net_unsent()) job_serve();
  ends_well(next_sender ? second : first);
  ends_well(last);
  CHECK(spx_stat.net_refused == 0);
  _exit(0);
}

int main(void)
{
  setenv("SPX_EAGER_MAX", "16384", 1);
  setenv("SPX_CREDIT", "4000000", 1);
  int bad = 0;
  bad |= run(sends_in_pieces, NULL, receives_pieces, false, false);
  if (bad) fprintf(stderr, "pieces: %#x\n", bad);
  int next = run(first_sender, second_sender, first_receiver, false, true);
  if (next) fprintf(stderr, "another sender: %#x\n", next);
  int both = run(first_sender, second_sender, second_receiver, true, true);
  if (both) fprintf(stderr, "another sender and receiver: %#x\n", both);
  return (bad | next | both) != 0;
}
