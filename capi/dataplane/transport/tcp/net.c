/* net.c - records over stream sockets: the same records as in rings, one after the other. A
 * connection carries both directions.
 *
 * To the rest of the data plane a process of another host is a peer like any other. Its sending
 * side writes into a buffer of this process instead of a ring; its bell, for which it always counts
 * as asleep, writes the buffer to the socket. The receiving side is net_read.c. Credit, which rings
 * have in their control line, is a record of its own.
 *
 * Connections are made by the engine (capi/net.go), which gets the peers to connect to through a
 * pipe; finished ones arrive in a list. Data from a socket are checked before use: a record that
 * does not fit ends the connection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "net_conn.h"
#include "progress.h"

#define OUT_BYTES  SPX_NET_OUT
#define FEW        3  /* up to so many connections are read one by one; of more, epoll selects */
#define EVENTS     32 /* looked at in one poll */
#define HELD_TURNS 8
#define PASSED     16 /* processes at most in one look round */
#define LATER_NS   1000000000ull

bool spx_net_sealed;
spx_net_state spx_net = {.want_fd = -1};
const spx_detour *spx_detours;
static uint64_t nothing[SPX_LINE / 8]; /* what the receiving side of such a pair finds in memory */

int spx_net_attach(void)
{
  spx_beyond = spx_segment->flags & (SPX_SEG_TCP | SPX_SEG_HOSTS);
  if (!spx_beyond) return 0;
  spx_network = &spx_tcp;
  spx_net.conns = calloc(spx_map.nprocs, sizeof(spx_conn *));
  spx_net.open_ones = calloc(spx_map.nprocs, sizeof(spx_conn *));
  spx_net.busy = calloc(spx_map.nprocs, sizeof(spx_conn *));
  spx_net.gathered = calloc(spx_map.nprocs, sizeof(spx_conn *));
  bool room = spx_net.conns && spx_net.open_ones && spx_net.busy && spx_net.gathered &&
              spx_arrivals_attach();
  int err = room ? spx_net_bell() : ENOMEM;
  if (err) spx_net_detach();
  return err;
}

/* ---- connections ---- */

spx_conn *spx_net_conn(uint32_t peer)
{
  if (spx_net.conns[peer]) return spx_net.conns[peer];
  spx_conn *c = aligned_alloc(SPX_LINE, (sizeof *c + SPX_LINE - 1) / SPX_LINE * SPX_LINE);
  uint8_t *out = aligned_alloc(SPX_LINE, OUT_BYTES), *in = aligned_alloc(SPX_LINE, SPX_NET_IN);
  if (!c || !out || !in) {
    free(c);
    free(out);
    free(in);
    return NULL;
  }
  *c = (spx_conn){.fd = -1,
                  .peer = peer,
                  .life = spx_proc_of(peer)->incarnation,
                  .via = SPX_NET_NOBODY,
                  .out = out,
                  .in = in};
  c->done = c->got = (uint32_t)spx_count_from(32, 5000);
  c->bell.sleeping = 1;
  return spx_net.conns[peer] = c;
}

/* The whole pages of the first bytes of a buffer go back, but for those that are kept. */
static void give_back(uint8_t *buffer, uint32_t *high)
{
  if (SPX_LIKELY(*high <= SPX_NET_KEEP)) return;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)buffer + SPX_NET_KEEP;
  uintptr_t end = ((uintptr_t)buffer + *high) / page * page;
  from = (from + page - 1) / page * page;
  if (from < end) madvise((void *)from, end - from, MADV_DONTNEED);
  *high = 0;
}

/* A buffer was filled up to here. */
void spx_net_reached(spx_conn *c, uint32_t *high, uint32_t end)
{
  if (*high < end) *high = end;
  c->quiet = false;
}

void spx_net_thin(spx_conn *c)
{
  const spx_tx *tx = &spx_txs[c->peer];
  if (c->in_at == c->in_end && !c->delivering) give_back(c->in, &c->in_high);
  if (tx->conn != c || tx->pos == 0) give_back(c->out, &c->out_high);
}

void spx_net_disconnect(spx_conn *c)
{
  spx_net_recall(c);
  if (c->fd < 0) return;
  spx_byway_end(c);
  spx_zero_reset(c);
  spx_net_shut(c->fd); /* epoll forgets it by itself */
  c->fd = -1;
  spx_zero_end(c);
  SPX_ASSERT(c->at < spx_net.n_open && spx_net.open_ones[c->at] == c);
  spx_net.open_ones[c->at] = spx_net.open_ones[--spx_net.n_open];
  spx_net.open_ones[c->at]->at = c->at;
  spx_stat.net_open = spx_net.n_open;
  if (c->must_answer) spx_net.n_answers--;
  c->closing = SPX_CLOSING_NOT;
  c->must_answer = c->farewell = c->greets = c->full = false;
  c->again = 0;
  c->deaf = 0;
  c->burst = (spx_burst){.may = false};
}

static void drop(spx_conn *c)
{
  if (!c) return;
  spx_net_disconnect(c);
  if (spx_net.held == c) spx_net.held = NULL;
  spx_further_end(c, false);
  spx_net_not_busy(c);
  spx_detours->dropped(c->peer);
  for (uint32_t i = 0; i < spx_net.n_gathered; i++)
    if (spx_net.gathered[i] == c) spx_net.gathered[i--] = spx_net.gathered[--spx_net.n_gathered];
  spx_net.conns[c->peer] = NULL;
  free(c->out);
  free(c->in);
  free(c);
}

static _Atomic int news; /* the engine is notified, and has not polled yet */

void spx_net_start(int fd)
{
  atomic_store(&news, 0);
  spx_net.want_fd = fd;
}

void spx_net_tell(uint32_t word, uint32_t life)
{
  ssize_t rc;
  uint32_t words[2] = {word, life};
  do rc = spx_net.want_fd < 0 ? 0 : write(spx_net.want_fd, words, sizeof words);
  while (rc < 0 && errno == EINTR);
}

void spx_net_shut(int fd)
{
  close(fd);
  spx_net_tell(SPX_NET_SHUT, 0);
}

void spx_net_news(void)
{
  if (spx_beyond_host() && spx_net.heeds && !atomic_exchange(&news, 1))
    spx_net_tell(SPX_NET_NEWS, 0);
}

void spx_net_heard(void) { atomic_store(&news, 0); }

void spx_net_detach(void)
{
  if (SPX_UNLIKELY(spx_byways != NULL)) spx_byways->finish();
  spx_arrivals_drop();
  for (uint32_t i = 0; spx_net.conns && i < spx_map.nprocs; i++) drop(spx_net.conns[i]);
  free(spx_net.conns);
  free(spx_net.open_ones);
  free(spx_net.busy);
  free(spx_net.gathered);
  spx_net = (spx_net_state){.want_fd = -1};
  if (SPX_UNLIKELY(spx_byways != NULL)) spx_byways->leave();
  spx_byways = NULL;
  spx_further_sweep();
  spx_net_no_bell();
  spx_network = NULL;
  spx_beyond = false;
}

/* One process after the other is looked at: buffers that have had little in them since the last
 * time are thinned. Those that have no more memory than they may keep are passed over, some at a
 * time. */
static void look_round(void)
{
  static uint32_t polls, at;
  if (SPX_LIKELY(++polls % SPX_NET_ROUND != 0)) return;
  spx_conn *c = NULL;
  for (int i = 0; i < PASSED && (!c || (c->in_high == 0 && c->out_high == 0)); i++)
    c = spx_net.conns[at = (at + 1) % spx_map.nprocs];
  if (!c) return;
  if (c->quiet) spx_net_thin(c);
  c->quiet = true;
}

/* ---- sending ---- */

static int open_pair(uint32_t peer)
{
  spx_tx *tx = &spx_txs[peer];
  spx_conn *c = spx_net_conn(peer);
  if (!c) {
    spx_detail("no memory for a connection with process %u", peer);
    return MPI_ERR_NO_MEM;
  }
  spx_net_recall(c);
  tx->conn = c;
  tx->chan = &c->out_chan;
  tx->base = c->out;
  tx->size = tx->near =
      /* a record never ends there: the next is never at the start by itself */
      OUT_BYTES - SPX_LINE / 2;
  tx->pos = 0;
  tx->dirty = &c->dirty;
  tx->proc = &c->bell;
  tx->ring = 0; /* needs none */
  tx->file = &spx_own;
  tx->epoch = spx_epoch_at(peer);
  tx->head = tx->tail = tx->sent = tx->matched = spx_position_first();
  tx->seq = spx_first_record();
  c->out_chan.tail = c->out_chan.matched = spx_position_word(tx->epoch, tx->head);
  c->flushed = c->sent = 0;
  tx->slow &= ~(uint32_t)SPX_TX_NEW;
  bool room = spx_net_has_room() && spx_now_ns() >= spx_net.next_shortcut;
  if (!spx_net.relays || spx_detours->kept(peer) || room) spx_net_ask(c);
  return MPI_SUCCESS;
}

void spx_net_done(spx_conn *c, uint32_t n)
{
  spx_tx *tx = &spx_txs[c->peer];
  SPX_ASSERT(n <= tx->pos - c->flushed);
  c->flushed += n;
  c->done += n;
  if (SPX_UNLIKELY(c->by_left != 0)) c->by_left -= n < c->by_left ? n : c->by_left;
  if (c->sent < c->flushed) c->sent = c->flushed;
  if (c->flushed == tx->pos) {
    if (SPX_UNLIKELY(tx->pos > SPX_NET_KEEP)) spx_net_reached(c, &c->out_high, tx->pos);
    tx->pos = c->flushed = c->sent = c->long_out.at = 0;
    if (SPX_UNLIKELY(c->fd < 0)) spx_net_thin(c);
  }
  tx->tail = tx->head - (tx->pos - c->flushed);
  c->out_chan.tail = spx_position_word(tx->epoch, tx->tail);
}

/* Writes the next n bytes of the stream, or some of them: those of a long message lie in its
 * buffer. */
static ssize_t write_some(spx_conn *c, uint32_t n)
{
  spx_long_out *o = &c->long_out;
  if (SPX_LIKELY(o->left == 0) || SPX_UNLIKELY(c->by_left != 0))
    return send(c->fd, c->out + c->flushed, n, MSG_DONTWAIT | MSG_NOSIGNAL);
  struct iovec v[SPX_LONG_IOVECS];
  uint32_t before = o->at - c->flushed, runs = 0;
  uint64_t covered;
  if (SPX_UNLIKELY(c->zero.may) && spx_zero_takes(c)) {
    if (before == 0) return spx_zero_send(c);
    return send(c->fd, c->out + c->flushed, before, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE);
  }
  if (before) v[runs++] = (struct iovec){c->out + c->flushed, before};
  runs += (uint32_t)spx_long_source(o, v + runs, &covered);
  if (covered == o->left && n > before + o->left)
    v[runs++] = (struct iovec){c->out + o->at, n - before - o->left};
  struct msghdr m = {.msg_iov = v, .msg_iovlen = runs};
  ssize_t sent = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != EFAULT || o->copies) return sent;
  o->copies = true;
  errno = EINTR; /* again, in another way */
  return -1;
}

static void count_written(spx_conn *c, uint32_t n)
{
  spx_long_out *o = &c->long_out;
  uint32_t before = o->left ? o->at - c->flushed : n,
           part = n - before < o->left ? n - before : o->left;
  if (n <= before) {
    spx_net_done(c, n);
    return;
  }
  spx_net_done(c, before);
  c->done += part;
  spx_long_written(o, part);
  if (spx_set.streams == 0 && !c->by_out) spx_further_wrote(c, part);
  spx_net_done(c, n - before - part);
  if (o->left == 0) spx_txs[c->peer].full = 0; /* the message goes on, or is sent */
}

/* Writes what waits to the socket, up to an end that is being closed. */
static void write_out(spx_conn *c)
{
  bool may = c->burst.may && !c->closing && c->done != spx_net_end(c);
  if (may) spx_burst_write(c, spx_net_end(c) - c->done);
  for (;;) {
    uint32_t n = (c->closing ? c->stop : spx_net_end(c)) - c->done;
    if (n == 0) break;
    if (SPX_UNLIKELY(c->by_left != 0) && n > c->by_left) n = c->by_left;
    bool by = spx_byway_takes(c);
    ssize_t sent = SPX_UNLIKELY(by) ? spx_byway_write(c, n) : write_some(c, n);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) {
      if (!c->full && !by) spx_net_watch(c->fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD, c->peer);
      c->full = true;
      spx_net_done(c, 0);
      return;
    }
    if (sent < 0) {
      spx_net_unheard(c, errno);
      return;
    }
    count_written(c, (uint32_t)sent);
  }
  if (may) spx_burst_written(c);
  if (!c->full) return;
  c->full = false;
  spx_net_watch(c->fd, EPOLLIN, EPOLL_CTL_MOD, c->peer);
  /* another thread, which sleeps, may wait for the room */
  if (spx_txs[c->peer].active) spx_ring_self();
}

/* As spx_net_push, and nothing is handed over. */
static void push(spx_conn *c)
{
  const spx_tx *tx = &spx_txs[c->peer];
  if (tx->conn != c) return; /* nothing was ever sent */
  spx_net_recall(c);
  if (c->fd >= 0) {
    c->used = ++spx_net.clock;
    if (SPX_LIKELY(!c->deaf))
      write_out(c);
    else
      spx_net_unheard(c, c->deaf);
  }
  if (c->fd < 0 && c->over) spx_net_done(c, tx->pos - c->flushed);
  if (c->fd < 0) spx_detours->pump(c);
  if (SPX_LIKELY(c->fd < 0 || !c->farewell || c->must_answer || c->done != c->stop)) return;
  if (spx_byway_unsent(c) == 0)
    spx_net_finish(c);
  else
    c->full = true; /* until all has come there */
}

void spx_net_push(spx_conn *c)
{
  push(c);
  if (SPX_UNLIKELY(spx_net_hand_over(c))) spx_arrivals_join();
}

static spx_rec *reserve_room(spx_tx *tx, uint32_t bytes)
{
  spx_conn *c = tx->conn;
  push(c);
  if (tx->pos + bytes > tx->size && c->flushed > tx->size / 4) { /* what is written makes room */
    uint32_t aligned = c->flushed / SPX_LINE * SPX_LINE;
    SPX_ASSERT(c->flushed <= c->sent && c->sent <= tx->pos);
    spx_net_reached(c, &c->out_high, SPX_NET_OUT);
    memmove(c->out, c->out + aligned, tx->pos - aligned);
    tx->pos -= aligned;
    c->flushed -= aligned;
    c->sent -= aligned;
    if (c->long_out.left) c->long_out.at -= aligned;
  }
  if (tx->pos + bytes <= tx->size) return (spx_rec *)(c->out + tx->pos);
  if (spx_net_hand_over(c)) spx_arrivals_join();
  return NULL;
}

bool spx_net_flush(uint32_t peer)
{
  if (!spx_net_peer(peer)) return false;
  spx_lock();
  spx_conn *c = spx_net.conns[peer];
  if (c && spx_net.gathering) {
    if (!c->gathered) spx_net.gathered[spx_net.n_gathered++] = c;
    c->gathered = true;
  } else if (c)
    spx_net_push(c);
  spx_unlock();
  return true;
}

/* Sends what was written while gathering. */
static void spread(void)
{
  for (uint32_t i = 0; i < spx_net.n_gathered;
       i++) /* relayed messages are written to the relays' connections: these join the list */
    if (spx_net.gathered[i]->fd < 0) spx_net_push(spx_net.gathered[i]);
  for (uint32_t i = 0; i < spx_net.n_gathered; i++) {
    spx_net.gathered[i]->gathered = false;
    if (spx_net.gathered[i]->fd >= 0) spx_net_push(spx_net.gathered[i]);
  }
  spx_net.n_gathered = 0;
}

void spx_net_batch(int change)
{
  if ((spx_net.gathering += change) != 0 || !spx_net.n_gathered) return;
  spx_net.gathering = 1;
  spread();
  spx_net.gathering = 0;
}

void spx_net_together(int change)
{
  if (!spx_beyond_host()) return;
  spx_lock();
  spx_net_batch(change);
  spx_unlock();
}

static void gather(int change)
{
  if (spx_net.relays) spx_net_together(change);
}

void spx_net_credit(uint32_t peer, uint64_t matched)
{
  spx_tx_put(peer, SPX_REC_CREDIT, SPX_REC_PLAIN, &matched, sizeof matched);
}

/* ---- receiving ---- */

static void listen_to(uint32_t peer)
{
  spx_rx *rx = &spx_rxs[peer];
  spx_conn *c = spx_net_conn(peer);
  if (!c) spx_fatal(MPI_ERR_NO_MEM, "no memory for a connection with process %u", peer);
  rx->conn = c;
  rx->chan = &c->in_chan;
  rx->proc = &c->bell;
  rx->base = (uint8_t *)nothing;
  rx->size = sizeof nothing;
  rx->cma = 2;
  rx->epoch = (uint16_t)spx_proc_of(peer)->incarnation;
  rx->consumed = rx->published = rx->matched = rx->matched_published = spx_position_first();
  rx->seq = spx_first_record();
}

static int poll_all(void);

const spx_transport spx_tcp = {.name = "tcp",
                               .reaches = spx_net_peer,
                               .open = open_pair,
                               .listen = listen_to,
                               .reserve = reserve_room,
                               .recall = spx_long_recall,
                               .poll = poll_all,
                               .gather = gather,
                               .together = spx_net_together};

void spx_net_peer_failed(uint32_t peer)
{
  if (!spx_beyond_host()) return;
  spx_arrivals_join(); /* what it has sent may lie in one of them */
  spx_conn *c = spx_net.conns[peer];
  int n = 0;
  if (!c) return;
  spx_net.served = NULL;
  if (c->by_in) spx_byways->drain(c->by);
  for (uint32_t before = 1; (c->fd >= 0 && before) || spx_net.held == c;
       before = (uint32_t)n, n = 0)
    if (spx_net.held == c)
      spx_net_resume(&n);
    else
      spx_net_pull(c, &n);
  spx_net_broken(c);
}

bool spx_net_is_new(uint32_t peer)
{
  const spx_conn *c = spx_net.conns[peer];
  return (c && c->life != spx_proc_of(peer)->incarnation) || spx_rx_stale(peer, &spx_rxs[peer]);
}

static void met(uint32_t peer)
{
  if (!spx_beyond_host()) return;
  spx_conn *c = spx_net.conns[peer];
  if (c && c->life != spx_proc_of(peer)->incarnation) {
    spx_txs[peer].conn = NULL;
    spx_rxs[peer].conn = NULL;
    drop(c);
  } else if (!spx_arrivals_early)
    return;
  spx_arrivals_join();
}

const spx_peer_observer spx_net_peers = {.met = met};

static void poll_few(int *n)
{
  /* from the end: a connection that ends is replaced by the last */
  for (uint32_t i = spx_net.n_open; i-- > 0;) {
    if (i >= spx_net.n_open) continue;
    spx_conn *c = spx_net.open_ones[i];
    if (c->full) spx_net_push(c);
    spx_net_pull(c, n);
  }
}

static void poll_many(int *n)
{
  spx_further_sweep();
  struct epoll_event events[EVENTS];
  int ready = spx_net_events(events, EVENTS);
  for (int i = 0; i < ready; i++) {
    if (events[i].data.u64 == UINT64_MAX) continue; /* the bell: heard when going to sleep */
    if (events[i].data.u64 & SPX_FURTHER_BIT) {
      spx_further_event(events[i].data.u64, events[i].events, n);
      continue;
    }
    spx_conn *c = spx_net.conns[events[i].data.u64];
    if (!c || c->fd < 0) continue;
    if (events[i].events & EPOLLOUT) spx_net_push(c);
    if (c->fd >= 0 && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) spx_net_pull(c, n);
  }
}

static void reap_all(int *n)
{
  for (uint32_t i = spx_net.n_open; i-- > 0;) *n += spx_zero_reap(spx_net.open_ones[i]);
}

static int poll_all(void)
{
  static uint32_t turns; /* now and then the other connections are read, too */
  int n = 0;
  spx_conn *held = spx_net.held;
  if (held && spx_net_resume(&n)) {
    if (++turns % HELD_TURNS != 0) return n;
    spx_net.served = held;
  }
  gather(1);
  if (SPX_UNLIKELY(spx_arrivals_early ||
                   atomic_load_explicit(&spx_arrivals, memory_order_relaxed) != NULL))
    n = spx_arrivals_take();
  if (SPX_UNLIKELY(spx_byways != NULL)) spx_byway_poll(&n);
  spx_poll_calls = spx_net.n_open > FEW || spx_n_further ? 1 : spx_net.n_open;
  if (spx_net.n_open > FEW || spx_n_further)
    poll_many(&n);
  else if (spx_net.n_open)
    poll_few(&n);
  spx_net.served = NULL;
  if (SPX_UNLIKELY(spx_zero_writes)) reap_all(&n);
  look_round();
  spx_net_pressed();
  spx_net_make_room();
  if (SPX_UNLIKELY(spx_net.n_answers)) spx_net_answers();
  if (SPX_UNLIKELY(spx_net.n_by_todo)) spx_byway_turn();
  if (SPX_UNLIKELY(spx_net.relays || spx_net.n_busy || spx_net.many)) n += spx_detours->poll();
  gather(-1);
  return n;
}

/* ---- the end ---- */

bool spx_net_may_read(uint32_t peer)
{
  const spx_proc *p = spx_proc_of(peer);
  return __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_STARTED &&
         !spx_proc_dead(peer);
}

bool spx_net_gone(uint32_t peer)
{
  uint32_t state = __atomic_load_n(&spx_proc_of(peer)->agent_state, __ATOMIC_ACQUIRE);
  return state == SPX_AGENT_DEAD || state == SPX_AGENT_EXITED || spx_proc_dead(peer);
}

uint64_t spx_net_unsent(void)
{
  uint64_t n = 0;
  if (SPX_UNLIKELY(spx_byways != NULL)) spx_byways->settle();
  for (uint32_t i = 0; spx_beyond_host() && i < spx_map.nprocs; i++) {
    spx_conn *c = spx_net.conns[i];
    int queued = 0;
    if (c) spx_net_recall(c);
    if (c && c->fd >= 0) spx_burst_let_go(c);
    if (!c || c->over || spx_txs[i].conn != c || !spx_net_may_read(i)) continue;
    if (c->fd >= 0 && ioctl(c->fd, SIOCOUTQ, &queued) != 0) queued = 0;
    n += spx_net_end(c) - c->done + (uint64_t)queued + spx_further_unsent(c) + spx_byway_unsent(c);
  }
  if (spx_beyond_host()) n += spx_detours->unsent();
  return n;
}
