/* A number of a memory file goes from one process of another job to the next: what the new one
 * writes before it is known is received, a sender that waits for room is woken, and its life and
 * death are its own. The receiver plays its own agent. */
// sanitize: address,undefined
#include "job.h"
#include <sched.h>

enum { HOME = 1, EXTERNALS = 6, BIG = 300000, LIMIT_S = 60 };
enum {
  RECEIVER = 0,
  EXTERNAL = 1,
  FRESH = 2
}; /* numbers in the receiver's file; an external process is 0 in its own, and the receiver 1 */

static _Atomic int *stage; /* shared by all */
static int home, files[EXTERNALS];

static void until(int k)
{
  while (*stage < k) sched_yield();
}

static void enter(spx_proc *p, uint64_t job, uint32_t pid)
{
  __atomic_fetch_add(&p->incarnation, 1, __ATOMIC_RELEASE);
  p->home_job = job;
  p->pid = pid;
  p->owner_state = p->sleeping = p->tx_blocked = 0;
  __atomic_store_n(&p->agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
}

static void leave(uint32_t number, uint32_t state)
{
  __atomic_store_n(&spx_proc_of(number)->agent_state, state, __ATOMIC_RELEASE);
  if (state == SPX_AGENT_DEAD) __atomic_fetch_add(&spx_segment->death_seq, 1, __ATOMIC_RELEASE);
}

static void attach(int fd)
{
  alarm(LIMIT_S); /* whatever hangs ends */
  spx_basic_init();
  job_bytes = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  CHECK(job_attach(fd, 0) == 0);
}

/* As capi/peers.go once both agents have answered: process ours here is process 0 of that job,
 * where we are number theirs. */
static spx_comm *meet(int fd, uint64_t job, int rank, uint32_t ours, uint32_t theirs)
{
  CHECK(spx_file_adopt(fd, theirs, job) == 0);
  spx_peer_place(ours, job, 0);
  spx_peer_hold(ours);
  return job_comm(1000, rank ? (uint32_t[]){ours, 0} : (uint32_t[]){0, ours}, 2, rank);
}

static void give(spx_comm *c, int n, int tag)
{
  static char b[BIG];
  pattern_fill(b, (uint64_t)tag, (size_t)n);
  CHECK(spx_send(b, n, job_bytes, 1 - c->rank, tag, c, SPX_CTX_P2P, SPX_M_STANDARD) == 0);
}

static void take(spx_comm *c, int n, int tag)
{
  static char b[BIG];
  CHECK(spx_recv(b, n, job_bytes, 1 - c->rank, tag, c, SPX_CTX_P2P, NULL) == 0);
  CHECK(pattern_is(b, (uint64_t)tag, (size_t)n));
}

/* External process k, of job k + 2. Some end without a word. */
enum { UNHEARD = 0, FIRST = 1, SECOND = 2, DIES = 3, LAST = 4, EARLY = 5 };

static uint32_t number(int k) { return k == EARLY ? FRESH : EXTERNAL; }

static void external(int k)
{
  attach(files[k]);
  enter(spx_proc_of(1), HOME, 1);
  until(10 * k + 1);
  spx_comm *c = meet(home, HOME, 1, 1, number(k));
  if (k != UNHEARD && k != DIES) give(c, 100, k);
  *stage = 10 * k + 2;
  if (k == UNHEARD || k == DIES) _exit(0);
  if (k == EARLY) give(c, BIG, k);
  take(c, 100, k + 50);
  _exit(0);
}

/* Gives the number to external process k, and waits for what it does first. */
static void expect(int k, pid_t who)
{
  enter(spx_proc_of(number(k)), (uint64_t)k + 2, (uint32_t)who);
  *stage = 10 * k + 1;
  until(10 * k + 2);
}

/* Receives what does not fit into a ring when its sender sleeps until there is room. */
static void take_late(spx_comm *c)
{
  static char b[BIG];
  const spx_proc *sender = spx_home(FRESH);
  spx_request *r;
  CHECK(spx_irecv(b, BIG, job_bytes, 1, EARLY, c, SPX_CTX_P2P, 0, &r) == 0);
  while (r->state == SPX_S_POSTED) spx_progress();
  for (uint64_t since = now_ns(); now_ns() - since < 20000000;)
    if (!__atomic_load_n(&sender->sleeping, __ATOMIC_RELAXED) ||
        !__atomic_load_n(&sender->tx_blocked, __ATOMIC_RELAXED))
      since = now_ns();
  CHECK(spx_wait(r) == 0);
  spx_request_free(r);
}

static void talk(int k)
{
  spx_comm *c = meet(files[k], (uint64_t)k + 2, 0, number(k), 1);
  take(c, 100, k);
  if (k == EARLY) take_late(c);
  give(c, 100, k + 50);
  spx_peer_release(number(k), 0);
  leave(number(k), SPX_AGENT_EXITED);
}

static void look(void)
{
  for (int i = 0; i < 100; i++) spx_progress();
}

static void receiver(const pid_t *who)
{
  attach(home);
  __atomic_store_n(&spx_segment->nprocs, 3, __ATOMIC_RELEASE);
  /* One without a number here yet has died: the next is alive. */
  expect(UNHEARD, who[UNHEARD]);
  leave(EXTERNAL, SPX_AGENT_DEAD);
  spx_progress();
  expect(FIRST, who[FIRST]);
  talk(FIRST);
  /* Its leftover records are not received again when its file goes away. */
  spx_files_sweep();
  look();
  CHECK(spx_unex_count == 0);
  /* The next has written, and we have looked, while the number stood for the one before. */
  expect(SECOND, who[SECOND]);
  look();
  spx_files_sweep();
  look();
  talk(SECOND);
  /* One that has died before it had a number here is found dead. */
  expect(DIES, who[DIES]);
  leave(EXTERNAL, SPX_AGENT_DEAD);
  spx_progress();
  spx_comm *c = meet(files[DIES], DIES + 2, 0, EXTERNAL, 1);
  char x;
  CHECK(spx_recv(&x, 1, job_bytes, 1, 0, c, SPX_CTX_P2P, NULL) == MPIX_ERR_PROC_FAILED);
  spx_peer_release(EXTERNAL, 0);
  expect(LAST, who[LAST]);
  talk(LAST);
  /* Records of the first process of a number arrive before its bell is located. */
  expect(EARLY, who[EARLY]);
  look();
  talk(EARLY);
}

int main(void)
{
  pid_t who[EXTERNALS], r;
  int bad = 0, status;
  setenv("SPX_CMA", "0", 1); /* large messages need room */
  setenv("SPX_SPIN", "0", 1);
  setenv("SPX_YIELD", "0", 1);
  stage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (stage == MAP_FAILED) return 1;
  home = job_file(3, 1, 2, 16384);
  for (int k = 0; k < EXTERNALS; k++) files[k] = job_file(2, 2, 2, 16384);
  for (int k = 0; k < EXTERNALS; k++) {
    who[k] = fork();
    if (who[k] == 0) external(k);
  }
  r = fork();
  if (r == 0) {
    receiver(who);
    _exit(0);
  }
  for (int k = 0; k <= EXTERNALS; k++) {
    pid_t p = wait(&status);
    if (status == 0) continue;
    fprintf(stderr, "process %d (receiver %d) ended with %#x at stage %d\n", p, r, status, *stage);
    bad = 1;
    for (int i = 0; i < EXTERNALS; i++) kill(who[i], SIGKILL); /* they would wait */
    kill(r, SIGKILL);
  }
  return bad;
}
