/* job.h - a job for tests of the data plane: forks processes that share a memory file, and plays
 * their agent. No Go, no launcher. What belongs to the shims is answered simply in
 * participant.h. */
#ifndef SPX_TEST_JOB_H
#define SPX_TEST_JOB_H
#include "participant.h"
#include "attach.h"
#include "basic.h"
#include "other_way.h"
#include "pack.h"
#include "sleeper.h"

/* ---- communicators ---- */
static spx_comm *job_comm(uint64_t ctx, const uint32_t *procs, int n, int rank)
{
  spx_comm *c = calloc(1, sizeof *c);
  c->o.refs = 1;
  c->rank = rank;
  c->size = c->remote_size = n;
  c->ctx = ctx;
  c->peer = c->local = malloc((size_t)n * sizeof *c->peer);
  for (int i = 0; i < n; i++) c->peer[i] = procs ? procs[i] : (uint32_t)i;
  return c;
}

static spx_type *job_bytes;

/* n blocks of block bytes, stride bytes apart: a vector, as the engine would compile it. */
static inline spx_type *job_vector(int64_t n, int64_t block, int64_t stride)
{
  int64_t *w = calloc(4 + 2 * (size_t)SPX_NODE_WORDS, sizeof *w);
  spx_layout *l = (spx_layout *)w;
  l->words = 4 + 2 * SPX_NODE_WORDS;
  l->root = 4;
  *(spx_node *)(w + 4) = (spx_node){
      .kind = SPX_L_REP, .size = n * block, .n = n, .stride = stride, .child = 4 + SPX_NODE_WORDS};
  *(spx_node *)(w + 4 + SPX_NODE_WORDS) = (spx_node){.kind = SPX_L_RUN, .size = block};
  spx_type *t = calloc(1, sizeof *t);
  t->o.refs = 1;
  t->flags = SPX_T_COMMITTED;
  t->basic = (uint16_t)job_bytes->basic;
  t->size = n * block;
  t->extent = t->true_extent = n * stride;
  t->layout = l;
  return t;
}

/* ---- sockets: JOB_SOCKETS 1 before job.h: all pairs are connected by sockets and share no
 * channels ---- */
#ifndef JOB_SOCKETS
#define JOB_SOCKETS 0
#endif
/* JOB_HOSTS n: n processes on each host, which share channels; hosts have memory files of their
 * own, and are connected by sockets. 0: one file. */
#ifndef JOB_HOSTS
#define JOB_HOSTS 0
#endif
static inline uint32_t job_host(uint32_t i) { return JOB_HOSTS ? i / (JOB_HOSTS + !JOB_HOSTS) : 0; }
#if JOB_SOCKETS
#include <sys/socket.h>
enum { JOB_MOST = 16 };
static int job_ends[JOB_MOST][JOB_MOST]; /* of i, towards k */
/* JOB_TCP 1: those are connections over TCP, as within a host. */
#ifndef JOB_TCP
#define JOB_TCP 0
#endif
#include <netinet/in.h>
#include <netinet/tcp.h>
static inline void job_tcp_pair(int pair[2])
{
  int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof a;
  pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(door, (struct sockaddr *)&a, n) != 0 || listen(door, 1) != 0 ||
      getsockname(door, (struct sockaddr *)&a, &n) != 0 ||
      connect(pair[0], (struct sockaddr *)&a, n) != 0)
    abort();
  pair[1] = accept4(door, NULL, NULL, SOCK_CLOEXEC);
  for (int i = 0; i < 2; i++)
    if (setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) abort();
  close(door);
}

/* JOB_FURTHER n: so many further streams of each process to each other one. */
#ifndef JOB_FURTHER
#define JOB_FURTHER 0
#endif
static int job_further[JOB_FURTHER + 1][JOB_MOST][JOB_MOST][2]; /* from i to k: of i, of k */

static void job_connect(uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < i; k++) {
      int pair[2];
      if (n > JOB_MOST) abort();
      if (JOB_TCP)
        job_tcp_pair(pair);
      else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        abort();
      job_ends[i][k] = pair[0];
      job_ends[k][i] = pair[1];
    }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++)
      for (int s = 0; s < JOB_FURTHER; s++)
        if (i != k && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, job_further[s][i][k]) != 0)
          abort();
}

static void job_each_further(uint32_t n, uint32_t me, bool takes)
{
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++)
      for (int s = 0; s < JOB_FURTHER; s++)
        for (int end = 0; end < 2 && i != k; end++)
          if (takes && (end ? k : i) == me)
            spx_net_adopt_further(job_further[s][i][k][end], end ? i : k, 1, end == 0);
          else
            close(job_further[s][i][k][end]);
}

static void job_disconnect(uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++)
      if (i != k) close(job_ends[i][k]);
  job_each_further(n, 0, false);
}

/* JOB_RELAYS 1: neighbours in a ring of at most seven processes alone are connected, and nothing
 * else can be: up to three hops. */
#ifndef JOB_RELAYS
#define JOB_RELAYS 0
#endif
static uint32_t job_hops(uint32_t n, uint32_t a, uint32_t b)
{
  uint32_t d = (a + n - b) % n;
  return !JOB_RELAYS ? 1 : d < n - d ? d : n - d;
}

/* Both ways round are given, the shorter one first. */
static void job_routes(uint32_t n, uint32_t me)
{
  spx_routes *r = calloc(1, sizeof *r + n * sizeof r->to[0]);
  r->n = n;
  for (uint32_t i = 0; i < n; i++) {
    spx_route *t = &r->to[i];
    t->kept = i == me || job_hops(n, i, me) == 1;
    uint32_t side[2] = {(me + 1) % n, (me + n - 1) % n};
    bool second = job_hops(n, side[1], i) < job_hops(n, side[0], i);
    for (int k = 0; k < 2 && !t->kept; k++) {
      uint32_t via = side[k ^ (int)second],
               way = k ? n - job_hops(n, me, i) - 1 : job_hops(n, via, i);
      if (way > 2) continue;
      t->via[t->n] = via;
      t->needs[t->n++] = (uint8_t)way;
    }
  }
  spx_net_policy((spx_net_ways){.heeds = true, .relays = true});
  spx_net_route(r);
}

/* JOB_KEEPS_ENDS 1: process 0 adopts its ends itself. */
#ifndef JOB_KEEPS_ENDS
#define JOB_KEEPS_ENDS 0
#endif
static void job_take_ends(uint32_t n, uint32_t me)
{
  if (JOB_RELAYS) job_routes(n, me);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++) {
      if (i == k || (JOB_KEEPS_ENDS && i == me && me == 0)) continue;
      if (i == me && job_hops(n, i, k) == 1 && (!JOB_HOSTS || job_host(i) != job_host(k)))
        spx_net_adopt(job_ends[i][k], k, 1);
      else
        close(job_ends[i][k]);
    }
  job_each_further(n, me, true);
}

/* processes that have nothing more to send: the others' messages may still go through them */
static _Atomic uint32_t *job_done;

static void job_serve(void)
{
  uint32_t ticket = spx_ticket();
  spx_progress();
  spx_wait_event(ticket, now_ns() + 1000000);
}

/* What was sent is with its receiver before the process goes. */
static void job_flush(uint32_t n)
{
  while (spx_net_unsent()) job_serve();
  if (!JOB_RELAYS) return;
  atomic_fetch_add(job_done, 1);
  while (atomic_load(job_done) < n) job_serve();
}
#endif

/* ---- running ---- */
static inline void barrier(spx_comm *c)
{
  char x = 0;
  for (int k = 1; k < c->size; k *= 2) {
    spx_request *r;
    CHECK(spx_irecv(&x, 1, job_bytes, (c->rank - k + c->size) % c->size, k, c, SPX_CTX_COLL, 0,
                    &r) == 0);
    CHECK(spx_send(&x, 1, job_bytes, (c->rank + k) % c->size, k, c, SPX_CTX_COLL, SPX_M_STANDARD) ==
          0);
    CHECK(spx_wait(r) == 0);
    spx_request_free(r);
  }
}

typedef struct {
  uint32_t procs, maxprocs, ncpus, ring_bytes;
  int mt;
  int (*killed)(uint32_t i);        /* NULL, or: may this process die by a signal? */
  void (*supervise)(const pid_t *); /* NULL, or: called by the agent once all run */
} job;

/* A test of the data plane as a whole, JOB_WHOLE 1 before job.h, has all layers. One of a layer
 * above pt2pt says by JOB_ABOVE what that registers: a function that is called before the layers
 * below are brought up. Else there is nothing above sends and receives. */
#ifndef JOB_WHOLE
#define JOB_WHOLE 0
#endif
#if JOB_WHOLE
static int job_attach(int fd, uint32_t me) { return spx_dp_attach(fd, me); }
#else
static const spx_failure_observer *job_failures[4]; /* up to NULL */
static spx_record_handler *job_handlers[SPX_REC_LAST + 1];
#ifndef JOB_ABOVE
static void job_above(void) {}
#endif
static int no_record(const spx_request *r, uint64_t since, const uint64_t *registers, bool parked)
{
  (void)r, (void)since, (void)registers, (void)parked;
  return -1;
}
static void no_end(int slot) { (void)slot; }
static const spx_sleep_hooks job_sleeps = {no_record, no_end};
static bool not_replaced(const spx_comm *c, uint32_t ctx_kind)
{
  (void)c, (void)ctx_kind;
  return false;
}
static bool not_outlived(const spx_request *r)
{
  (void)r;
  return false;
}
static void not_missed(uint64_t ctx, int src) { (void)ctx, (void)src; }
/* What is asked without a flag that only messages of systems have. */
static const spx_other_way job_way = {
    .replaced = not_replaced, .outlives = not_outlived, .missed = not_missed};

static int job_attach(int fd, uint32_t me)
{
  spx_sleeper = &job_sleeps;
  spx_other = &job_way;
  job_above();
  return spx_messages_attach(fd, me, job_failures, job_handlers);
}
#endif

static void child(const job *j, int fd, uint32_t i, void (*body)(spx_comm *))
{
  alarm(200); /* whatever hangs ends */
  spx_basic_init();
  spx_mt = j->mt;
  job_bytes = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  int err = job_attach(fd, i);
  if (err) {
    fprintf(stderr, "process %u: attach: %s\n", i, strerror(err));
    _exit(1);
  }
  uint32_t self = i;
  spx_self = job_comm(4, &self, 1, 0);
  spx_world = job_comm(8, NULL, (int)j->procs, (int)i);
#if JOB_SOCKETS
  for (uint32_t k = 0; k < j->procs; k++) spx_txs[k].life = 1; /* as if communicators held them */
  job_take_ends(j->procs, i);
#endif
  body(spx_world);
#if JOB_SOCKETS
  job_flush(j->procs);
#endif
  _exit(0);
}

enum { JOB_FILES = 16 };
typedef struct {
  int fd;
  spx_seg *seg;
  spx_proc *procs;
} job_memory;

/* The memory file of host h. */
static job_memory job_memory_of(const job *j, uint32_t h)
{
  job_memory m = {.fd = job_file(j->maxprocs, j->procs, j->ncpus,
                                 j->ring_bytes ? j->ring_bytes : SPX_RING_BYTES)};
  m.seg = mmap(NULL, 4096 + j->maxprocs * sizeof(spx_proc), PROT_READ | PROT_WRITE, MAP_SHARED,
               m.fd, 0);
  m.procs = (spx_proc *)((char *)m.seg + m.seg->proc_off);
  for (uint32_t i = 0; i < j->procs; i++)
    m.procs[i].incarnation = 1, m.procs[i].serial = m.procs[i].world_rank = i,
    m.procs[i].host = job_host(i);
  m.seg->host = h;
#if JOB_SOCKETS
  m.seg->flags |= JOB_HOSTS ? SPX_SEG_HOSTS : SPX_SEG_TCP;
  getrandom(m.seg->job_id, sizeof m.seg->job_id, 0); /* names the bells */
#endif
  return m;
}

/* Process i has ended: on each host its agent says so. */
static void job_publish(const job *j, job_memory *m, uint32_t i, bool dead)
{
  __atomic_store_n(&m->procs[i].agent_state, dead ? SPX_AGENT_DEAD : SPX_AGENT_EXITED,
                   __ATOMIC_RELEASE);
  if (!dead) return;
  __atomic_fetch_add(&m->seg->death_seq, 1, __ATOMIC_RELEASE);
  for (uint32_t k = 0; k < j->procs; k++) {
    __atomic_fetch_add(&m->procs[k].bell, 1, __ATOMIC_SEQ_CST);
    syscall(202 /* futex */, &m->procs[k].bell, 1 /* FUTEX_WAKE */, INT32_MAX, NULL, NULL, 0);
    if (JOB_SOCKETS) spx_net_wake(m->seg, k);
  }
}

/* Runs body in every process; deaths by a signal are published as the agent does. Returns the
 * number of bad ends. */
static inline int run_job(job j, void (*body)(spx_comm *))
{
  if (!j.maxprocs) j.maxprocs = j.procs;
  if (!j.ncpus) j.ncpus = 2;
  int bad = 0;
  uint32_t hosts = job_host(j.procs - 1) + 1;
  job_memory files[JOB_FILES];
  if (hosts > JOB_FILES) abort();
  for (uint32_t h = 0; h < hosts; h++) files[h] = job_memory_of(&j, h);
  pid_t *pids = calloc(j.procs, sizeof *pids);
#if JOB_SOCKETS
  job_done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  job_connect(j.procs);
#endif
  for (uint32_t i = 0; i < j.procs; i++) {
    pids[i] = fork();
    if (pids[i] == 0) child(&j, files[job_host(i)].fd, i, body);
    for (uint32_t h = 0; h < hosts; h++) {
      files[h].procs[i].pid = (uint32_t)pids[i];
      __atomic_store_n(&files[h].procs[i].agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
    }
  }
#if JOB_SOCKETS
  job_disconnect(j.procs);
#endif
  if (j.supervise) j.supervise(pids);
  for (uint32_t left = j.procs; left > 0; left--) {
    int status;
    siginfo_t info;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {}
    uint32_t i = 0;
    while (pids[i] != info.si_pid) i++;
    for (uint32_t h = 0; h < hosts; h++) job_publish(&j, &files[h], i, info.si_code != CLD_EXITED);
    waitpid(pids[i], &status, 0);
    bool fine = WIFEXITED(status)
                    ? WEXITSTATUS(status) == 0
                    : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && j.killed && j.killed(i);
    if (!fine) fprintf(stderr, "process %u ended with %#x\n", i, status), bad++;
  }
  for (uint32_t h = 0; h < hosts; h++) {
    munmap(files[h].seg, 4096 + j.maxprocs * sizeof(spx_proc));
    close(files[h].fd);
  }
  free(pids);
  return bad;
}
#endif
