/* suite.h - the conformance suite of transports: the processes of a case, and what each of them
 * has.
 *
 * A case is a test (suite_tests.h, suite_loss.h) over a row, one transport and one way to wire its
 * processes (suite_rows.h). Its *participants* talk to each other; a row may need further
 * processes, relays, which only serve. This process is the agent: it makes the memory files and the
 * sockets, starts the processes, and publishes how they end. A case shares one board. */
#ifndef SPX_TEST_SUITE_H
#define SPX_TEST_SUITE_H
#include "participant.h"
#include <dirent.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include "basic.h"
#include "net_conn.h"
#include "pack.h"
#include "progress.h"
#include "sleeper.h"

enum {
  MOST = 8,       /* processes of a case */
  SOCKETS = 6,    /* of each pair that a row wires: one after the other */
  LIMIT_S = 60,   /* a process that hangs ends */
  PATIENCE_S = 20 /* what is waited for comes by then, or the test fails and says what it was */
};

/* ---- rows ---- */

/* What a transport may lack: each lack has its reason in the table of suite_rows.h. */
enum {
  HAS_RINGS = 1u,   /* a larger buffer, of which there are fewer than pairs: widen */
  HAS_SOCKETS = 2u, /* connections that can break, be closed and be made again */
  HAS_RELAYS = 4u,  /* processes in between that can die */
  /* what does not fit where it goes is written by others while the program computes */
  HAS_ENGINE = 8u,
  HAS_LONG_SLEEP = 16u /* a process with something to send sleeps until another one wakes it */
};

typedef struct row {
  const char *name;
  const spx_transport *by; /* the one of the table that is tried */
  uint32_t has;            /* HAS_* */
  uint32_t flags;          /* SPX_SEG_*: how processes of the job reach each other */
  uint32_t longest;        /* bytes of payload of the longest record; 0: of a quarter of a ring */
  /* So many processes for n participants, and which one participant i is. */
  uint32_t (*processes)(uint32_t n);
  uint32_t (*process)(uint32_t i, uint32_t n);
  uint32_t (*host)(uint32_t process);
  /* the suite connects them by sockets */
  bool (*wired)(uint32_t a, uint32_t b, uint32_t processes);
  /* in each process, behind attach: what else it needs */
  void (*begin)(uint32_t processes, uint32_t me);
  /* The same of a by-way: before attach, what stays; behind it; and what threads of the engine do
   * for it while the program makes no calls. */
  void (*by_load)(void);
  void (*by_begin)(void);
  void (*by_moves)(void);
  void (*by_end)(void); /* a participant has done what it had to */
} row;

static const row *tried;

/* ---- what all processes of a case share ---- */

typedef struct {
  _Atomic uint32_t stage[MOST];      /* by participant: how far its body is */
  _Atomic uint32_t deep[MOST];       /* by process: sleeps that only another process ends */
  _Atomic uint32_t done, needed;     /* participants that have nothing more to do; of so many */
  _Atomic uint32_t started;          /* processes that are attached */
  _Atomic uint32_t released;         /* processes that have let go of the number of a dead one */
  _Atomic uint32_t life[MOST];       /* by process: the incarnation that runs now */
  _Atomic uint32_t made[MOST][MOST]; /* by pair, lower number first: sockets that were taken */
  _Atomic uint32_t lost;             /* steps of the sequence until the loss: it has happened */
  _Atomic uint32_t complete;         /* the sequence was over before */
} board_t;
static board_t *board;

static uint32_t participants, processes; /* of the case */
static uint32_t me;                      /* this participant; a relay: MOST */
static uint32_t participant_of[MOST];    /* by process; MOST: a relay */
static const char *case_name = "";
static uint32_t process_of(uint32_t participant)
{
  return tried->process(participant, participants);
}
static uint32_t my_life = 1;
static int the_ends[SOCKETS][MOST][MOST]; /* of process i, towards k */
static spx_type *bytes_type;

#define SAY(...)                                                                                   \
  (fprintf(stderr, "%s:%d: %s, participant %u, process %u: ", __FILE__, __LINE__, case_name, me,   \
           spx_me),                                                                                \
   fprintf(stderr, __VA_ARGS__), fprintf(stderr, "\n"))
#undef CHECK
#define CHECK(ok)                                                                                  \
  do {                                                                                             \
    if (!(ok)) {                                                                                   \
      SAY("%s (%s)", #ok, spx_detail_text());                                                      \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)

static void show_state(void);

static long on_futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *most)
{
  return syscall(SYS_futex, word, op, value, most, NULL, 0);
}

static void set_word(_Atomic uint32_t *word, uint32_t value)
{
  atomic_store(word, value);
  on_futex(word, FUTEX_WAKE, INT32_MAX, NULL);
}

static void one_more(_Atomic uint32_t *word)
{
  atomic_fetch_add(word, 1);
  on_futex(word, FUTEX_WAKE, INT32_MAX, NULL);
}

/* Sleeps until a word of the board has reached a value; no look at the transport meanwhile. False:
 * it has not. */
static bool word_reaches(_Atomic uint32_t *word, uint32_t value)
{
  uint64_t end = now_ns() + PATIENCE_S * 1000000000ull;
  for (uint32_t is; (is = atomic_load(word)) < value;) {
    uint64_t now = now_ns();
    if (now >= end) return false;
    struct timespec t = {(time_t)((end - now) / 1000000000u), (long)((end - now) % 1000000000u)};
    on_futex(word, FUTEX_WAIT, is, &t);
  }
  return true;
}

static void at_stage(uint32_t k) { set_word(&board->stage[me], k); }
#define AWAIT_STAGE(participant, k)                                                                \
  do {                                                                                             \
    if (word_reaches(&board->stage[participant], k)) break;                                        \
    SAY("in vain for %d s: stage %u of participant %u", PATIENCE_S, k, participant);               \
    show_state();                                                                                  \
    _exit(1);                                                                                      \
  } while (0)

/* ---- sockets ---- */

static void tcp_pair(int pair[2])
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

static void make_sockets(void)
{
  memset(the_ends, -1, sizeof the_ends);
  for (uint32_t i = 0; i < processes; i++)
    for (uint32_t k = 0; k < i; k++)
      for (int g = 0; g < SOCKETS && tried->wired(i, k, processes); g++) {
        int pair[2];
        if (tried->flags & SPX_SEG_TCP)
          tcp_pair(pair);
        else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
          abort();
        the_ends[g][i][k] = pair[0];
        the_ends[g][k][i] = pair[1];
      }
}

/* Closes the ends that this process does not need: of the first so many of each pair, all but those
 * of process but. */
static void close_sockets(int first, uint32_t but)
{
  for (int g = 0; g < first; g++)
    for (uint32_t i = 0; i < MOST; i++)
      for (uint32_t k = 0; k < MOST; k++) {
        if (i == but || the_ends[g][i][k] < 0) continue;
        close(the_ends[g][i][k]);
        the_ends[g][i][k] = -1;
      }
}

static _Atomic uint32_t *made_of(uint32_t a, uint32_t b)
{
  return a < b ? &board->made[a][b] : &board->made[b][a];
}

/* ---- the engine, played: it makes connections when it is asked, and writes what it is handed over
 * ---- */

static int words_of_engine = -1; /* what the data plane tells it */
static uint32_t taken[MOST];     /* by process: sockets towards it that were adopted, */
static uint32_t in_order[MOST];  /* and closed in order: else there is one already */
static struct {
  uint32_t connect, closed, lost, handed, shut; /* words, so many of each */
} told;
static bool carries; /* it writes what it is handed over */

static void hear_engine(void)
{
  uint32_t w[2];
  while (words_of_engine >= 0 && read(words_of_engine, w, sizeof w) == (ssize_t)sizeof w) {
    uint32_t peer = w[0] & 0xffffff, kind = w[0] >> 24;
    if (w[0] == SPX_NET_HANDED) {
      told.handed++;
      while (carries && spx_net_carry() == SPX_CARRY_SOME) {}
    } else if (w[0] == SPX_NET_SHUT)
      told.shut++;
    else if (kind == SPX_NET_CONNECT >> 24) {
      told.connect++;
      uint32_t mine = taken[peer];
      if (tried->wired(spx_me, peer, processes) &&
          mine == in_order[peer]) /* or the other end has called */
        atomic_compare_exchange_strong(made_of(spx_me, peer), &mine, mine + 1);
    } else if (kind == SPX_NET_CLOSED >> 24)
      told.closed++, in_order[peer]++, spx_net_slots(0, 0);
    else if (kind >= SPX_NET_LOST >> 24 && kind < SPX_NET_MOST >> 24)
      told.lost++;
  }
}

/* Takes the sockets that were made, one after the other. */
static void take_sockets(void)
{
  for (uint32_t k = 0; k < processes; k++) {
    if (k == spx_me || !tried->wired(spx_me, k, processes)) continue;
    uint32_t made = atomic_load(made_of(spx_me, k));
    while (taken[k] < made) {
      CHECK(taken[k] < SOCKETS);
      int *end = &the_ends[taken[k]++][spx_me][k];
      if (*end >= 0) spx_net_adopt(*end, k, atomic_load(&board->life[k]));
      *end = -1;
    }
  }
}

static void start_engine(void)
{
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  words_of_engine = ends[0];
  spx_net_start(ends[1]);
}

/* ---- the layers below sends and receives ---- */

static bool arrives(uint32_t peer, spx_rx *rx, const spx_rec *rec, uint32_t kind);
static const spx_carried carried;
static void forget_traffic(uint32_t process);
static void drop_queued(uint32_t process);

static const spx_peer_observer *const observers[] = {&spx_ring_peers, &spx_pair_peers,
                                                     &spx_relay_peers, &spx_net_peers, NULL};
/* In the order of pt2pt/attach.c. A row of another transport has it here, too. */
static const spx_transport *const all_transports[] = {&spx_shm, &spx_tcp, NULL};
static const spx_transport *const *transports = all_transports;

static int look_once(bool all);
static void no_rest(void) {}
static int nothing_before_sleep(void) { return 0; }
static int deep_begins(const spx_request *r, uint64_t since, const uint64_t *registers, bool parked)
{
  (void)r, (void)since, (void)registers;
  if (!parked) return -1;
  one_more(&board->deep[spx_me]);
  return 0;
}
static void deep_ends(int slot) { (void)slot; }
static const spx_sleep_hooks sleeps = {deep_begins, deep_ends};

static int suite_attach(int fd, uint32_t process)
{
  spx_sleeper = &sleeps;
  int err = spx_seg_attach(fd, process);
  if (err != 0) return err;
  spx_arrived = arrives;
  spx_on_deaths = NULL;
  spx_sources = (spx_progress_source){.poll = look_once,
                                      .settle = spx_rx_settle,
                                      .rest = no_rest,
                                      .before_sleep = nothing_before_sleep,
                                      .wants_room = spx_tx_waiting};
  spx_on_sockets = &spx_net_sleeping;
  spx_detours = &spx_relay_detour;
  spx_handed_ends = spx_zero_keeps;
  spx_idle_attach();
  err = spx_places_attach();
  if (err == 0) err = spx_peers_attach(observers);
  if (err == 0) err = spx_pairs_attach(transports, &carried);
  if (err == 0) err = spx_ring_attach();
  if (err == 0) err = spx_net_attach();
  if (err == 0) err = spx_relay_attach();
  return err;
}

static void suite_detach(void)
{
  spx_net_detach();
  spx_relay_detach();
  spx_ring_detach();
  spx_pairs_detach();
  spx_peers_detach();
  spx_places_detach();
  spx_seg_detach();
}

/* What fail.c does when a process has died: what it has sent is taken in, and its pair is given
 * up. */
static uint32_t gone_to[MOST]; /* by process: incarnations whose death was noticed */
static int notice_deaths(void)
{
  uint32_t seq = __atomic_load_n(&spx_segment->death_seq, __ATOMIC_ACQUIRE);
  if (seq == spx_map.seen_deaths) return 0;
  spx_map.seen_deaths = seq;
  int n = 0;
  for (uint32_t i = 0; i < processes; i++) {
    uint32_t life = __atomic_load_n(&spx_proc_of(i)->incarnation, __ATOMIC_ACQUIRE);
    if (i == spx_me || spx_places[i].dead || spx_rx_stale(i, &spx_rxs[i]) ||
        __atomic_load_n(&spx_proc_of(i)->agent_state, __ATOMIC_ACQUIRE) != SPX_AGENT_DEAD)
      continue;
    spx_rx_drain(i, (uint16_t)life);
    spx_net_peer_failed(i);
    if (!spx_rxs[i].base) spx_rx_init_as(i, (uint16_t)life);
    spx_places[i].dead = true;
    spx_ndead++;
    drop_queued(i);
    spx_tx_kill(i);
    CHECK(!spx_txs[i].pend && !spx_txs[i].stream && spx_txs[i].slow & SPX_TX_DEAD &&
          !(spx_txs[i].slow & SPX_TX_QUEUED));
    gone_to[i] = life;
    n++;
  }
  return n + 1;
}

static int look_once(bool all)
{
  int n = spx_rx_poll_all(all);
  if (spx_network) n += spx_network->poll();
  if (spx_tx_waiting()) n += spx_tx_drain();
  n += notice_deaths();
  if (n) spx_happened(n);
  return n;
}

/* A number whose process has died is released, and its next process is met once it runs. */
static uint32_t let_go_of[MOST], met_life[MOST];
static void meet_successors(void)
{
  for (uint32_t i = 0; i < processes; i++) {
    if (i == spx_me) continue;
    if (gone_to[i] > let_go_of[i]) {
      let_go_of[i] = gone_to[i];
      forget_traffic(i);
      spx_peer_release(i, 0);
      one_more(&board->released);
    }
    uint32_t life = atomic_load(&board->life[i]);
    if (let_go_of[i] && life > let_go_of[i] && met_life[i] < life) {
      met_life[i] = life;
      spx_peer_hold(i);
      if (tried->wired(spx_me, i, processes)) {
        uint32_t mine = taken[i];
        atomic_compare_exchange_strong(made_of(spx_me, i), &mine, mine + 1);
      }
    }
  }
}

/* One look at everything. */
static bool looks_for_sockets = true;
static void look(void)
{
  hear_engine();
  if (looks_for_sockets) take_sockets();
  int n = spx_poll_brief();
  meet_successors();
  if (n == 0) sched_yield();
}

#define UNTIL(condition)                                                                           \
  do {                                                                                             \
    uint64_t end_ = now_ns() + PATIENCE_S * 1000000000ull;                                         \
    while (!(condition)) {                                                                         \
      look();                                                                                      \
      if (now_ns() > end_) {                                                                       \
        SAY("in vain for %d s: %s", PATIENCE_S, #condition);                                       \
        show_state();                                                                              \
        _exit(1);                                                                                  \
      }                                                                                            \
    }                                                                                              \
  } while (0)

/* The program makes no call meanwhile; the engine's threads write what it has been handed over. */
#define WITHOUT_CALLS_UNTIL(condition)                                                             \
  do {                                                                                             \
    uint64_t end_ = now_ns() + PATIENCE_S * 1000000000ull;                                         \
    while (!(condition)) {                                                                         \
      spx_net_carry();                                                                             \
      if (tried->by_moves) tried->by_moves();                                                      \
      sched_yield();                                                                               \
      if (now_ns() < end_) continue;                                                               \
      SAY("in vain for %d s, without a call: %s", PATIENCE_S, #condition);                         \
      show_state();                                                                                \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)

#include "suite_case.h"
#endif
