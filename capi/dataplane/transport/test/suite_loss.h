/* suite_loss.h - a transport that loses its peer: a wrapper around each of the table that counts
 * the steps of a short sequence, and lets something happen at one of them. Each case is tried for
 * step 1, 2, ... until the sequence is over before.
 *
 * A step is a call of the table, a record half written, written and committed, a bell, a record
 * delivered, and each time that bytes go to a socket or have come from one. What is lost is in the
 * table of losses. */
#ifndef SPX_TEST_SUITE_LOSS_H
#define SPX_TEST_SUITE_LOSS_H
#include "suite_tests.h"

typedef enum {
  /* the process, by SIGKILL; another one gets its number, and communicates with the same peer */
  DIES,
  HALF_DIES,   /* the same when it has written a part of what it was to write */
  BREAKS,      /* the connection; both processes live */
  HALF_BREAKS, /* the same in the middle of a record */
  CLOSES,      /* the connection, in order: the engine wants its place; and is made again */
  BOTH_CLOSE,  /* the same at both ends */
  TWICE,       /* a further connection of the pair comes while there is one */
  /* nothing: but each system call does a part of what it could. The step is the seed */
  STUTTERS,
  RELAY_DIES, /* the process in between */
  DETACHES    /* this process leaves its transports, whatever is under way */
} loss;

static loss lossy_by;
static uint32_t strike, steps;
static bool armed, detaching;
static uint64_t stutter;

static void lose(int fd)
{
  (void)fd;
  switch (lossy_by) {
  case DIES:
  case HALF_DIES:
  case RELAY_DIES:
    set_word(&board->lost, 1);
    raise(SIGKILL);
    break;
  case BREAKS:
  case HALF_BREAKS: {
    const spx_conn *c = spx_net.conns[process_of(1 - me)];
    set_word(&board->lost, 1);
    if (c && c->fd >= 0) shutdown(c->fd, SHUT_RDWR);
    break;
  }
  case CLOSES:
  case BOTH_CLOSE:
    set_word(&board->lost, 1);
    spx_net_slots(1, 1);
    break;
  case TWICE:
    set_word(&board->lost, 1);
    atomic_store(made_of(process_of(0), process_of(1)), 2);
    break;
  case DETACHES:
    set_word(&board->lost, 1);
    detaching = true;
    break;
  case STUTTERS: break;
  }
}

/* The next step. True: it is the one. */
static bool is_next(void) { return armed && ++steps == strike; }

static void count_step(const char *where)
{
  (void)where;
  if (is_next()) lose(-1);
}

/* ---- system calls ---- */

ssize_t __real_send(int fd, const void *buf, size_t n, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __real_recv(int fd, void *buf, size_t n, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *m, int flags);
void __real_spx_ring_bell(uint32_t i);
ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t n, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
void __wrap_spx_ring_bell(uint32_t i);

static bool of_a_pair(int fd)
{
  for (uint32_t i = 0; spx_net.conns && i < spx_net.n_open; i++)
    if (spx_net.open_ones[i]->fd == fd) return true;
  return false;
}

/* As much of n as a call does that stutters; 0: nothing now, as errno says. */
static size_t a_part(size_t n)
{
  uint32_t dice = rnd(&stutter) % 16;
  errno = dice == 0 ? EINTR : EAGAIN;
  if (dice < 2) return 0;
  return n < 2 || dice == 15 ? n
         : dice < 8          ? 1 + rnd(&stutter) % (n < 100 ? n : 100)
                             : 1 + rnd(&stutter) % n;
}

/* Precedes the bytes of a call that are written: all of them, or a part of them, and then the
 * loss. */
static size_t before_write(int fd, size_t n, bool *struck)
{
  *struck = false;
  if (!armed || !of_a_pair(fd)) return n;
  if (lossy_by == STUTTERS) return a_part(n);
  *struck = is_next();
  if (*struck && (lossy_by == HALF_DIES || lossy_by == HALF_BREAKS))
    return n > 1 ? 1 + strike * 7919 % (n - 1) : n;
  if (*struck) lose(fd);
  *struck = false;
  return n;
}

ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags)
{
  bool struck;
  size_t part = before_write(fd, n, &struck);
  if (part == 0 && n > 0) return -1;
  ssize_t done = __real_send(fd, buf, part, flags);
  if (struck) lose(fd);
  return done;
}

/* The first n bytes of a message. */
static struct msghdr first_of(const struct msghdr *m, size_t n, struct iovec *v)
{
  struct msghdr part = *m;
  size_t k = 0;
  for (; k < m->msg_iovlen && n > 0; k++) {
    v[k] = m->msg_iov[k];
    if (v[k].iov_len > n) v[k].iov_len = n;
    n -= v[k].iov_len;
  }
  part.msg_iov = v;
  part.msg_iovlen = k;
  return part;
}

static size_t bytes_of(const struct msghdr *m)
{
  size_t n = 0;
  for (size_t k = 0; k < m->msg_iovlen; k++) n += m->msg_iov[k].iov_len;
  return n;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
  bool struck;
  struct iovec v[SPX_LONG_IOVECS];
  size_t n = bytes_of(m), part = before_write(fd, n, &struck);
  if (part == 0 && n > 0) return -1;
  struct msghdr some = first_of(m, part, v);
  ssize_t done = __real_sendmsg(fd, &some, flags);
  if (struck) lose(fd);
  return done;
}

ssize_t __wrap_recv(int fd, void *buf, size_t n, int flags)
{
  bool ours = armed && of_a_pair(fd);
  if (ours && lossy_by == STUTTERS && (n = a_part(n)) == 0) return -1;
  ssize_t got = __real_recv(fd, buf, n, flags);
  if (ours && got > 0 && is_next()) lose(fd);
  return got;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
  bool ours = armed && of_a_pair(fd) && !(flags & MSG_ERRQUEUE);
  struct iovec v[SPX_LONG_IOVECS];
  size_t n = bytes_of(m), part = ours && lossy_by == STUTTERS ? a_part(n) : n;
  if (part == 0 && n > 0) return -1;
  struct msghdr some = first_of(m, part, v);
  ssize_t got = part == n ? __real_recvmsg(fd, m, flags) : __real_recvmsg(fd, &some, flags);
  if (ours && got > 0 && is_next()) lose(fd);
  return got;
}

void __wrap_spx_ring_bell(uint32_t i)
{
  if (spx_segment && i != spx_me) step("a bell");
  __real_spx_ring_bell(i);
}

/* ---- the wrapper ---- */

enum { REAL_ONES = sizeof all_transports / sizeof all_transports[0] - 1 };
static spx_transport lossy[REAL_ONES];
static const spx_transport *lossy_ones[REAL_ONES + 1];

static const spx_transport *real(const spx_transport *t) { return all_transports[t - lossy]; }
static const spx_transport *real_for(uint32_t peer)
{
  int i = 0;
  while (!all_transports[i]->reaches(peer)) i++;
  return all_transports[i];
}
static int lossy_open(uint32_t peer)
{
  step("open");
  int rc = real_for(peer)->open(peer);
  step("opened");
  return rc;
}
static void lossy_listen(uint32_t peer)
{
  step("listen");
  real_for(peer)->listen(peer);
}
static spx_rec *lossy_reserve(spx_tx *tx, uint32_t bytes)
{
  spx_rec *rec = real(tx->by)->reserve(tx, bytes);
  if (rec) step("reserved");
  return rec;
}
static bool lossy_widen(spx_tx *tx)
{
  if (!real(tx->by)->widen(tx)) return false;
  step("widened");
  return true;
}
static void lossy_close(spx_tx *tx) { real(tx->by)->close(tx); }
static void lossy_recall(spx_tx *tx, const spx_request *r) { real(tx->by)->recall(tx, r); }

static void be_lossy(void)
{
  for (int i = 0; i < REAL_ONES; i++) {
    lossy[i] = *all_transports[i];
    lossy[i].open = lossy_open;
    lossy[i].listen = lossy_listen;
    lossy[i].reserve = lossy_reserve;
    if (lossy[i].widen) lossy[i].widen = lossy_widen;
    if (lossy[i].close) lossy[i].close = lossy_close;
    if (lossy[i].recall) lossy[i].recall = lossy_recall;
    lossy_ones[i] = &lossy[i];
  }
  transports = lossy_ones;
}

/* ---- the sequence ---- */

enum { SEQUENCE = 10 };
static uint32_t sequence_length(uint32_t from, uint32_t to, uint32_t k)
{
  static const uint32_t n[SEQUENCE] = {8, 0, 32, 33, 500, 24, 3000, 9000, 1, 160};
  (void)to;
  return n[(k + from) % SEQUENCE];
}
static uint32_t sequence_text(uint32_t from, uint32_t to, uint32_t k)
{
  (void)from, (void)to, (void)k;
  return 300;
}
static uint64_t sequence_stream(uint32_t from, uint32_t to, uint32_t k)
{
  (void)to;
  return (from + k) % 2 ? 20000 : 70001;
}

static bool stops(void) { return detaching || (lossy_by == DETACHES && atomic_load(&board->lost)); }

static void sequence(uint32_t to)
{
  uint32_t before = with[to].life;
  for (uint32_t k = 0; k < SEQUENCE && with[to].life == before && !stops(); k++) {
    say_by(to, k % 4 == 1 ? PUT : k % 4 == 2 ? PUT_TWO : QUEUE);
    if (k == 4) say_text(to);
    if (k == 6) say_stream(to);
    look();
  }
}

static bool has_come(uint32_t from)
{
  return with[from].heard == SEQUENCE && with[from].texts_heard == 1 &&
         with[from].streams_heard == 1;
}

static bool connection_over(uint32_t participant)
{
  const spx_conn *c = spx_net.conns ? spx_net.conns[process_of(participant)] : NULL;
  return c && c->over;
}

/* The victim's sequence is over: nothing happens any more. */
static void disarm(void)
{
  armed = false;
  at_step = NULL;
  if (!atomic_load(&board->lost)) set_word(&board->complete, 1);
}

static bool lost_or_not(void) { return atomic_load(&board->lost) || atomic_load(&board->complete); }

static void arm(void)
{
  at_step = count_step;
  stutter = strike;
  armed = true;
}

/* Both sides have sent all. A dead one has a successor, for which no message of the dead one is. */
static void loses_process(void)
{
  uint32_t other = 1 - me;
  if (me == 0 && my_life == 1) arm();
  if (!with[other].life) sequence(other);
  if (me == 0) {
    UNTIL(has_come(other));
    disarm();
    return;
  }
  UNTIL(with[other].life || (has_come(other) && lost_or_not()));
  if (!atomic_load(&board->lost)) return;
  UNTIL(met_life[process_of(0)] == 2);
  sequence(other);
  UNTIL(has_come(other));
}

/* Each side has had a beginning of what was sent. What is sent from now on has no
 * receiver, and its sender does not wait. */
static void after_break(uint32_t other)
{
  UNTIL(connection_over(other));
  for (int i = 0; i < 3; i++) say_by(other, PUT);
  UNTIL(!spx_txs[process_of(other)].pend);
  CHECK(spx_net_unsent() == 0);
  UNTIL(told.lost > 0);
  for (int i = 0; i < 5; i++) look();
  CHECK(told.lost == 1 && told.connect == 0 && spx_stat.net_refused == 0);
}

static void breaks(void)
{
  uint32_t other = 1 - me;
  UNTIL(all_joined());
  at_stage(1);
  UNTIL(atomic_load(&board->stage[other]) >= 1);
  if (me == 0) arm();
  sequence(other);
  UNTIL(has_come(other) || connection_over(other));
  if (me == 0) disarm();
  UNTIL(lost_or_not());
  if (atomic_load(&board->lost))
    after_break(other);
  else
    UNTIL(!spx_tx_waiting() && spx_net_unsent() == 0);
  at_stage(2);
  AWAIT_STAGE(other, 2);
  drop_traffic(other);
  check_left_nothing(true);
}

/* Nothing is lost, nothing comes twice: the connection that is made then goes on where the other
 * one ended. */
static void closes(void)
{
  uint32_t other = 1 - me;
  UNTIL(all_joined());
  const spx_conn *c = spx_net.conns[process_of(other)];
  UNTIL(now_ns() - c->opened_at > 2500000); /* younger ones are not closed */
  at_stage(1);
  UNTIL(atomic_load(&board->stage[other]) >= 1);
  if (me == 0 || lossy_by == BOTH_CLOSE) arm();
  sequence(other);
  UNTIL(has_come(other));
  bool struck = steps >= strike;
  armed = false;
  if (me == 0) disarm();
  UNTIL(lost_or_not());
  if (struck) UNTIL(lossy_by == TWICE ? told.shut > 0 : told.closed > 0);
  CHECK(told.lost == 0);
}

static void stutters(void)
{
  uint32_t other = 1 - me;
  UNTIL(all_joined());
  arm();
  if (me == 1) stutter += 77;
  for (int k = 0; k < 4; k++) sequence(other);
  UNTIL(with[other].heard == 4 * SEQUENCE && with[other].texts_heard == 4 &&
        with[other].streams_heard == 4);
  armed = false;
}

/* The participants lose nothing. */
static void relay_dies(void)
{
  uint32_t other = 1 - me;
  sequence(other);
  UNTIL(has_come(other));
}

static void detaches(void)
{
  uint32_t other = 1 - me;
  if (me == 0) arm();
  sequence(other);
  UNTIL(has_come(other) || stops());
  if (me == 0) disarm();
  UNTIL(lost_or_not());
  if (!atomic_load(&board->lost)) { /* no such step: each makes progress until the other has all */
    at_stage(1);
    UNTIL(atomic_load(&board->stage[other]) >= 1);
  }
  if (me == 1)
    for (int i = 0; i < 3; i++) look();
  drop_traffic(other);
  check_left_nothing(true);
}

/* ---- all of them ---- */

#define SEQUENCE_LENGTHS .record = sequence_length, .text = sequence_text, .stream = sequence_stream

static const struct {
  loss how;
  test t;
} losses[] = {
    {DIES,
     {.name = "dies",
      .participants = 2,
      .body = loses_process,
      SEQUENCE_LENGTHS,
      .dies = true,
      .succeeds = true,
      .states =
          "what a dead process has sent comes whole or not at all; its successor's are its own"}},
    {HALF_DIES,
     {.name = "half-dies",
      .participants = 2,
      .needs = HAS_SOCKETS,
      .body = loses_process,
      SEQUENCE_LENGTHS,
      .dies = true,
      .succeeds = true,
      .states = "half a record is none"}},
    {BREAKS,
     {.name = "breaks",
      .participants = 2,
      .needs = HAS_SOCKETS,
      .body = breaks,
      SEQUENCE_LENGTHS,
      .stays_apart = true,
      .states =
          "a broken connection is told once; its ends have a beginning, and wait for nothing"}},
    {HALF_BREAKS,
     {.name = "half-breaks",
      .participants = 2,
      .needs = HAS_SOCKETS,
      .body = breaks,
      SEQUENCE_LENGTHS,
      .stays_apart = true,
      .states = "the same in the middle of a record"}},
    {CLOSES,
     {.name = "closes",
      .participants = 2,
      .needs = HAS_SOCKETS,
      .body = closes,
      SEQUENCE_LENGTHS,
      .states = "a connection that is closed in order and made again has lost nothing"}},
    {BOTH_CLOSE,
     {.name = "both-close",
      .participants = 2,
      .needs = HAS_SOCKETS,
      .body = closes,
      SEQUENCE_LENGTHS,
      .states = "the same when both ends close it"}},
    {TWICE,
     {.name = "twice",
      .participants = 2,
      .needs = HAS_SOCKETS,
      .body = closes,
      SEQUENCE_LENGTHS,
      .states = "a second connection of a pair is none"}},
    {STUTTERS,
     {.name = "stutters",
      .participants = 2,
      .needs = HAS_SOCKETS,
      .body = stutters,
      SEQUENCE_LENGTHS,
      .states = "system calls that do a part of their work lose nothing"}},
    {RELAY_DIES,
     {.name = "relay-dies",
      .participants = 2,
      .needs = HAS_RELAYS,
      .body = relay_dies,
      SEQUENCE_LENGTHS,
      .states = "a way that is lost loses nothing while there is another one"}},
    {DETACHES,
     {.name = "detaches",
      .participants = 2,
      .body = detaches,
      SEQUENCE_LENGTHS,
      .stays_apart = true,
      .states =
          "at any step a process can leave; memory, mappings and descriptors are given back"}},
};
enum { LOSSES = sizeof losses / sizeof losses[0], STUTTER_SEEDS = 8 };

static uint32_t relay_victim(void) { return 1; }
static void relay_arms(void)
{
  if (lossy_by == RELAY_DIES && spx_me == relay_victim()) arm();
}

/* A process takes several times as long to begin and to end. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* Tries every step (every second one of sanitized builds, unless SPX_SUITE requests more), from the
 * first one or the given one on. The number of steps; 0: one has failed. */
static uint32_t lose_at_each(const row *r, int which, uint32_t only)
{
  lossy_by = losses[which].how;
  other_victim = lossy_by == RELAY_DIES ? relay_victim : NULL;
  serving = relay_arms;
  be_lossy();
  /* each case takes long where libfabric is loaded */
  uint32_t every = rounds(1) > 1 ? 1
                   : r->by_load  ? 7
                   : SANITIZED   ? 2
                                 : 1,
           n = only ? only : 1 + (uint32_t)which % every;
  for (;; n += every) {
    strike = n;
    steps = 0;
    bool good = run_case(r, &losses[which].t, n / 2 % 2);
    if (!good) {
      fprintf(stderr, "step %u: %s. Again: conformance %s %s %u\n", n, losses[which].t.states,
              r->name, losses[which].t.name, n);
      return 0;
    }
    if (only || (lossy_by == STUTTERS ? n >= rounds(STUTTER_SEEDS) : !atomic_load(&board->lost)))
      break;
    if (n > 2000) {
      fprintf(stderr, "%s %s: no end of the sequence\n", r->name, losses[which].t.name);
      return 0;
    }
  }
  transports = all_transports;
  other_victim = NULL;
  serving = NULL;
  return n;
}
#endif
