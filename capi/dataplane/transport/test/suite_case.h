/* suite_case.h - a case of the suite (suite.h): its processes are started, wait for each other, and
 * end; each leaves nothing behind. */
#ifndef SPX_TEST_SUITE_CASE_H
#define SPX_TEST_SUITE_CASE_H

/* ---- running a case ---- */

/* of number k of a way, from participant to participant */
typedef uint32_t length_fn(uint32_t from, uint32_t to, uint32_t k);

typedef struct test {
  const char *name;
  const char *states; /* what of the contract it states */
  uint32_t participants;
  uint32_t needs;     /* HAS_* */
  void (*body)(void); /* in each participant */
  /* so long are records, texts and streams; NULL: any_length and the like */
  length_fn *record, *text;
  uint64_t (*stream)(uint32_t from, uint32_t to, uint32_t k);
  bool wrap;      /* also with counters that begin just before their end */
  uint32_t rings; /* rings of each process; 0: as usual */
  /* participant 0 dies by SIGKILL, or not; another process gets its number then */
  bool dies, succeeds;
  bool stays_apart; /* the body does what ends a participant itself */
} test;
static const test *running;
static void set_lengths(const test *t);
static void (*serving)(void); /* what a relay does before it serves; or NULL */

static uint32_t maps_of_file(void)
{
  char line[512];
  uint32_t n = 0;
  FILE *f = fopen("/proc/self/maps", "r");
  while (f && fgets(line, sizeof line, f)) n += strstr(line, "memfd:job") != NULL;
  if (f) fclose(f);
  return n;
}

/* Descriptors that transports take: streams that are not the suite's, names to be woken by, epoll,
 * memory files. */
static uint32_t open_fds(void)
{
  uint32_t n = 0;
  DIR *d = opendir("/proc/self/fd");
  for (struct dirent *e; d && (e = readdir(d));) {
    int fd = atoi(e->d_name), type = 0;
    char link[256] = "";
    socklen_t size = sizeof type;
    struct sockaddr_un a = {0};
    socklen_t len = sizeof a;
    if (readlinkat(dirfd(d), e->d_name, link, sizeof link - 1) < 0) continue;
    if (strstr(link, "eventpoll") || strstr(link, "memfd:job")) n++;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) continue;
    bool named = type == SOCK_DGRAM && getsockname(fd, (struct sockaddr *)&a, &len) == 0 &&
                 len > sizeof(sa_family_t);
    n += type == SOCK_STREAM || named;
  }
  if (d) closedir(d);
  for (int g = 0; g < SOCKETS; g++)
    for (uint32_t k = 0; k < MOST; k++) n -= the_ends[g][spx_me][k] >= 0;
  return n;
}

#if defined(__SANITIZE_ADDRESS__)
int __lsan_do_recoverable_leak_check(void);
static bool leaks(void) { return __lsan_do_recoverable_leak_check() != 0; }
#else
static bool leaks(void) { return false; }
#endif

static uint32_t maps_before, fds_before;

/* All that was taken since attach is given back. */
static void check_left_nothing(bool memory)
{
  suite_detach();
  if (words_of_engine >= 0) close(words_of_engine);
  spx_net_start(-1);
  CHECK(maps_of_file() == maps_before);
  /* libfabric leaves the socket of a connection that it is accepting when its endpoint is closed */
  CHECK(tried->by_load || open_fds() == fds_before);
  if (memory) CHECK(!leaks());
}

static void serve(void)
{
  uint32_t ticket = spx_ticket();
  look();
  spx_wait_event(ticket, now_ns() + 1000000);
}

/* A participant has nothing more to do: it serves until all are so far, for what others send may go
 * through it. */
static void finish(void)
{
  UNTIL(!spx_tx_waiting() && spx_net_unsent() == 0);
  CHECK(spx_stat.net_refused == 0);
  if (tried->by_end) tried->by_end();
  one_more(&board->done);
  while (atomic_load(&board->done) < atomic_load(&board->needed)) serve();
}

static bool all_joined(void)
{
  bool all = true;
  for (uint32_t k = 0; k < processes; k++)
    all &= k == spx_me || !tried->wired(spx_me, k, processes) ||
           (spx_net.conns[k] && (spx_net.conns[k]->fd >= 0 || spx_net.conns[k]->over));
  return all;
}

/* Another process of the case has failed: this one says how far it is. */
static void on_failure(int number)
{
  (void)number;
  show_state();
  _exit(1);
}

static _Noreturn void child(int fd, uint32_t process, uint32_t life)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(LIMIT_S);
  signal(SIGTERM, on_failure);
  my_life = life;
  me = participant_of[process];
  close_sockets(SOCKETS, process);
  spx_basic_init();
  bytes_type = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  maps_before = maps_of_file();
  spx_me = process;
  if (tried->by_load) tried->by_load();
  fds_before = open_fds();
  int err = suite_attach(fd, process);
  if (err) SAY("attach: %s", strerror(err));
  CHECK(err == 0);
  __atomic_store_n(&spx_proc_of(process)->owner_state, SPX_OWNER_INIT, __ATOMIC_RELEASE);
  if (tried->begin) tried->begin(processes, process);
  if (tried->by_begin) tried->by_begin();
  start_engine();
  for (uint32_t k = 0; k < processes; k++) {
    if (k == process) continue;
    met_life[k] = 1;
    spx_peer_hold(k);
  }
  if (life > 1) /* those of its predecessor are behind it */
    for (uint32_t k = 0; k < processes; k++) taken[k] = 1;
  take_sockets();
  one_more(&board->started);
  /* relays move nothing before */
  if (tried->begin && life == 1) UNTIL(all_joined() && board->started >= processes);
  if (me == MOST && serving) serving();
  if (me == MOST)
    while (atomic_load(&board->done) < atomic_load(&board->needed)) serve();
  else {
    running->body();
    if (running->stays_apart)
      one_more(&board->done);
    else
      finish();
  }
  _exit(0);
}

typedef struct {
  int fd;
  spx_seg *seg;
  spx_proc *procs;
} memory;

static memory memory_of(uint32_t h)
{
  memory m = {.fd = job_file(processes, processes, 2, SPX_RING_BYTES)};
  m.seg = mmap(NULL, 4096 + MOST * sizeof(spx_proc), PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
  m.procs = (spx_proc *)((char *)m.seg + m.seg->proc_off);
  for (uint32_t i = 0; i < processes; i++)
    m.procs[i].incarnation = 1, m.procs[i].serial = m.procs[i].world_rank = i,
    m.procs[i].host = tried->host(i);
  m.seg->host = h;
  m.seg->flags |= tried->flags;
  if (running->rings) m.seg->rings_per_proc = running->rings;
  if (getrandom(m.seg->job_id, sizeof m.seg->job_id, 0) < 0) abort();
  return m;
}

/* Process i has ended: on each host its agent says so. */
static void publish(memory *m, uint32_t i, bool dead)
{
  __atomic_store_n(&m->procs[i].agent_state, dead ? SPX_AGENT_DEAD : SPX_AGENT_EXITED,
                   __ATOMIC_RELEASE);
  if (!dead) return;
  __atomic_fetch_add(&m->seg->death_seq, 1, __ATOMIC_RELEASE);
  for (uint32_t k = 0; k < processes; k++) {
    __atomic_fetch_add(&m->procs[k].bell, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &m->procs[k].bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    if (tried->flags) spx_net_wake(m->seg, k);
  }
}

static memory files[MOST];
static pid_t pids[MOST];
static uint32_t hosts;

/* What the agent does before a number is given anew (clear in shm/procs.go): what others have sent
 * there, and what the dead process has said of itself and sent through its rings, goes. What it has
 * left with others is told apart by its epoch. */
static void clear_number(const memory *m, uint32_t i)
{
  const spx_seg *g = m->seg;
  uint64_t holes[][2] = {{g->dirty_off + i * g->dirty_stride, g->dirty_stride},
                         {g->held_off + i * g->held_stride, g->held_stride},
                         {g->chan_off + i * g->chan_row, g->chan_row},
                         {g->sdesc_off + i * g->sdesc_row, g->sdesc_row},
                         {g->ring_off + i * g->ring_row, g->ring_row}};
  for (size_t k = 0; k < sizeof holes / sizeof holes[0]; k++)
    if (fallocate(m->fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, (off_t)holes[k][0],
                  (off_t)holes[k][1]) != 0)
      abort();
  __atomic_store_n(&m->procs[i].agent_state, SPX_AGENT_EMPTY, __ATOMIC_RELEASE);
  memset(&m->procs[i].sleeping, 0, sizeof(spx_proc) - offsetof(spx_proc, sleeping));
}

static void start(uint32_t i, uint32_t life)
{
  for (uint32_t h = 0; h < hosts; h++) {
    spx_proc *p = &files[h].procs[i];
    if (life > 1) clear_number(&files[h], i);
    __atomic_store_n(&p->incarnation, life, __ATOMIC_RELEASE);
  }
  for (uint32_t h = 0; h < hosts; h++)
    __atomic_store_n(&files[h].procs[i].agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
  fflush(NULL);
  pids[i] = fork();
  if (pids[i] == 0) child(files[tried->host(i)].fd, i, life);
  for (uint32_t h = 0; h < hosts; h++) files[h].procs[i].pid = (uint32_t)pids[i];
  atomic_store(&board->life[i], life);
}

/* The end of process i; false: no good one. */
static bool ended(uint32_t i, bool killed, int status, bool may_be_killed)
{
  bool fine =
      WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL && may_be_killed;
  if (!fine)
    fprintf(stderr, "%s: process %u ended with %#x%s\n", case_name, i, status,
            WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
  for (uint32_t h = 0; h < hosts; h++) publish(&files[h], i, killed);
  return fine;
}

static uint32_t victim(void) { return running->dies ? process_of(0) : MOST; }
static uint32_t (*other_victim)(void); /* of a test in which another one dies */

/* Runs the test over the row. True: all is well. */
static bool run_case(const row *r, const test *t, bool wrap)
{
  static char name[128];
  tried = r;
  running = t;
  set_lengths(t);
  participants = t->participants;
  processes = r->processes(participants);
  snprintf(name, sizeof name, "%s %s%s", r->name, t->name, wrap ? " (wrap)" : "");
  case_name = name;
  setenv("SPX_WRAP", wrap ? "1" : "0", 1);
  memset(board, 0, sizeof *board);
  board->needed = t->participants - (t->dies && !t->succeeds);
  hosts = 1;
  for (uint32_t i = 0; i < processes; i++) {
    participant_of[i] = MOST;
    if (r->host(i) + 1 > hosts) hosts = r->host(i) + 1;
    for (uint32_t k = 0; k < i; k++) board->made[k][i] = r->wired(i, k, processes);
  }
  for (uint32_t i = 0; i < participants; i++) participant_of[process_of(i)] = i;
  for (uint32_t h = 0; h < hosts; h++) files[h] = memory_of(h);
  make_sockets();
  for (uint32_t i = 0; i < processes; i++) board->life[i] = 1;
  for (uint32_t i = 0; i < processes; i++) start(i, 1);
  /* else the end of one would not be seen at the other */
  close_sockets(t->succeeds ? 1 : SOCKETS, MOST);
  uint32_t dying = other_victim ? other_victim() : victim(), left = processes, lives = 1;
  bool good = true;
  while (left > 0) {
    siginfo_t info = {0};
    int status = 0;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {}
    uint32_t i = 0;
    while (i < processes && pids[i] != info.si_pid) i++;
    waitpid(info.si_pid, &status, 0);
    if (i == processes) continue;
    bool killed = WIFSIGNALED(status);
    bool fine = !good || ended(i, killed, status, i == dying);
    pids[i] = 0;
    left--;
    if (good && !fine) {
      good = false;
      for (uint32_t k = 0; k < processes; k++)
        if (pids[k]) kill(pids[k], SIGTERM);
    }
    if (!good || !killed || !t->succeeds || lives++ > 1) continue;
    if (word_reaches(&board->released, processes - 1)) {
      start(i, 2);
      left++;
    } else {
      fprintf(stderr, "%s: the number of a dead process is still held\n", case_name);
      good = false;
      for (uint32_t k = 0; k < processes; k++)
        if (pids[k]) kill(pids[k], SIGTERM);
    }
  }
  close_sockets(SOCKETS, MOST);
  for (uint32_t h = 0; h < hosts; h++) {
    munmap(files[h].seg, 4096 + MOST * sizeof(spx_proc));
    close(files[h].fd);
  }
  return good;
}
#endif
