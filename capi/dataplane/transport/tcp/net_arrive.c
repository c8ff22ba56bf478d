/* net_arrive.c - connections that the engine has made: its threads hand them over (spx_net_adopt),
 * and the thread with the lock joins each to its pair. What comes before its pair can have it, as
 * of a process that is not known yet, waits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "net_conn.h"
#include "net_streams.h"

#define FIRST_NS                                                                                   \
  20000000 /* how long the first message to a process waits for its connection, before it is left  \
              to later calls */

struct spx_arrival {
  spx_arrival *next;
  int fd;
  uint32_t peer, life;
  uint8_t kind;
};
enum { FIRST, FURTHER_IN, FURTHER_OUT, DECLINED };

spx_arrival *_Atomic spx_arrivals;
/* Those that were taken. Threads of the engine give them back to malloc, as they took them: the
 * program's thread would be given their memory for blocks of its own, and programs exist (the lists
 * of hosts of ROMIO) that keep the distance of two blocks in an int. */
static spx_arrival *_Atomic used;
spx_arrival *spx_arrivals_early;
static uint32_t arrived; /* futex: changes with every arrival */

/* By process: connections that are being made. It stays: the engine counts as long as a call of its
 * is under way. */
static _Atomic uint32_t *coming;
static uint32_t n_coming;

bool spx_arrivals_attach(void)
{
  if (n_coming >= spx_map.nprocs) return true;
  coming = calloc(spx_map.nprocs, sizeof *coming);
  n_coming = coming ? spx_map.nprocs : 0;
  return coming != NULL;
}

void spx_net_coming(uint32_t peer, int change)
{
  if (peer < n_coming) atomic_fetch_add(&coming[peer], (uint32_t)change);
}

/* Takes one into a list. Any thread. */
static void put(spx_arrival *_Atomic *list, spx_arrival *a)
{
  spx_arrival *first = atomic_load(list);
  do a->next = first;
  while (!atomic_compare_exchange_weak(list, &first, a));
}

/* Sockets that were handed over and not taken. */
static void drop_arrivals(spx_arrival *a)
{
  for (spx_arrival *next; a; a = next) {
    next = a->next;
    if (a->fd >= 0) spx_net_shut(a->fd);
    put(&used, a);
  }
}

void spx_net_arrives(spx_arrival *a) { put(&spx_arrivals, a); }

bool spx_net_arrivals_wait(void) { return atomic_load(&spx_arrivals) != NULL; }

static void arrive(int fd, uint32_t peer, uint32_t life, uint8_t kind)
{
  spx_arrival *a = malloc(sizeof *a);
  for (spx_arrival *old = atomic_exchange(&used, NULL), *next; old; old = next) {
    next = old->next;
    free(old);
  }
  if (!a) {
    if (fd >= 0) spx_net_shut(fd);
    return;
  }
  *a = (spx_arrival){.fd = fd, .peer = peer, .life = life, .kind = kind};
  bool carry = false;
  if (kind == FIRST)
    carry = spx_net_carry_first(fd, peer, life, a);
  else
    spx_net_arrives(a);
  __atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &arrived, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
  spx_ring_self();
  if (carry) spx_net_tell(SPX_NET_HANDED, 0);
}

void spx_net_adopt(int fd, uint32_t peer, uint32_t life) { arrive(fd, peer, life, FIRST); }

void spx_net_adopt_further(int fd, uint32_t peer, uint32_t life, bool out)
{
  arrive(fd, peer, life, out ? FURTHER_OUT : FURTHER_IN);
}

void spx_net_declined(uint32_t peer, uint32_t life) { arrive(-1, peer, life, DECLINED); }

bool spx_net_takes_further(void)
{
  spx_lock();
  bool takes = spx_further_room();
  spx_unlock();
  return takes;
}

static bool is_known(const spx_arrival *a)
{
  return a->peer < spx_map.nprocs && a->life == spx_proc_of(a->peer)->incarnation;
}

/* The same for a further stream: one that came before the connection waits for it. */
static bool join_further(const spx_arrival *a)
{
  spx_conn *c = is_known(a) ? spx_net.conns[a->peer] : NULL;
  bool waits =
      is_known(a) && !spx_proc_dead(a->peer) && a->kind == FURTHER_IN && (!c || c->life != a->life);
  if (waits) return false;
  if (c && c->life == a->life)
    spx_further_join(c, a->fd, a->kind == FURTHER_OUT);
  else if (a->fd >= 0)
    spx_net_shut(a->fd);
  return true;
}

/* False: what there was with an earlier process of the number, over a connection or in memory if it
 * was on this host, or a connection that ends, is not forgotten yet. */
static bool join(const spx_arrival *a)
{
  bool known = is_known(a);
  spx_conn *c = known ? spx_net.conns[a->peer] : NULL;
  if (c && (c->life != a->life || (c->fd >= 0 && c->closing))) return false;
  if (known && spx_rx_stale(a->peer, &spx_rxs[a->peer])) return false;
  c = known ? spx_net_conn(a->peer) : NULL;
  if (c) spx_net_recall(c);
  if (!c || c->fd >= 0 || spx_proc_dead(a->peer) ||
      spx_net_watch(a->fd, EPOLLIN, EPOLL_CTL_ADD, a->peer) != 0) {
    spx_net_shut(a->fd);
    return true;
  }
  fcntl(a->fd, F_SETFL, fcntl(a->fd, F_GETFL) | O_NONBLOCK);
  c->fd = a->fd;
  c->over = c->asked = c->told = false;
  c->opened_at = spx_now_ns();
  c->used = ++spx_net.clock;
  c->at = spx_net.n_open;
  SPX_ASSERT(c->at < spx_map.nprocs);
  spx_net.open_ones[spx_net.n_open++] = c;
  spx_stat.connections++;
  spx_stat.net_opened++;
  spx_stat.net_open = spx_net.n_open;
  spx_burst_join(c);
  spx_zero_join(c);
  spx_byway_join(c);
  if (spx_net.relays && spx_proc_of(c->peer)->home_job == 0 && !spx_net_greet(c))
    spx_net_unheard(c, errno); /* the processes of another job do not wait for a greeting */
  spx_net_push(c);
  spx_net_trim(c);
  return true;
}

/* The engine has stopped connecting: it may be asked again after a while, and waiting messages are
 * relayed. */
static bool join_none(const spx_arrival *a)
{
  spx_conn *c = is_known(a) ? spx_net.conns[a->peer] : NULL;
  if (!c || c->life != a->life || c->fd >= 0) return true;
  c->asked = false;
  spx_net_pause_shortcuts(spx_now_ns());
  spx_detours->pump(c);
  return true;
}

/* Takes one. False: it is for later. */
static bool join_any(const spx_arrival *a)
{
  if (a->kind == FIRST) return join(a);
  return a->kind == DECLINED ? join_none(a) : join_further(a);
}

int spx_arrivals_join(void)
{
  int n = 0;
  spx_arrival *list = atomic_exchange(&spx_arrivals, NULL), **last = &list;
  while (*last) last = &(*last)->next;
  *last = spx_arrivals_early;
  spx_arrivals_early = NULL;
  for (spx_arrival *a = list, *next; a; a = next) {
    next = a->next;
    if (join_any(a)) {
      put(&used, a);
      n++;
    } else {
      a->next = spx_arrivals_early;
      spx_arrivals_early = a;
    }
  }
  return n;
}

/* A process that is in no communicator of this one has connected, as the plan of connections has
 * it, or to use this one as a relay: the state of an earlier one is of no use any more. Else
 * spx_peer_hold meets it. */
static int meet_early(void)
{
  spx_arrival *a = spx_arrivals_early;
  while (a && (a->kind != FIRST || !is_known(a) || spx_peer_is_held(a->peer) ||
               !spx_net_is_new(a->peer)))
    a = a->next;
  if (!a) return 0;
  spx_peer_meet(a->peer); /* other peers are met with the next polls */
  return 1;
}

int spx_arrivals_take(void)
{
  int n = spx_arrivals_join();
  return n + meet_early();
}

void spx_arrivals_drop(void)
{
  drop_arrivals(atomic_exchange(&spx_arrivals, NULL));
  drop_arrivals(spx_arrivals_early);
  spx_arrivals_early = NULL;
}

void spx_net_ask(spx_conn *c)
{
  spx_net_want(c);
  /* other connections have to be closed first, which polls do */
  if (!c->asked || spx_net.hurry || spx_net_full()) return;
  for (uint64_t end = spx_now_ns() + FIRST_NS, now; c->fd < 0;) {
    uint32_t seen = __atomic_load_n(&arrived, __ATOMIC_SEQ_CST);
    spx_arrivals_join();
    if (c->fd >= 0 || (now = spx_now_ns()) >= end) break;
    struct timespec t = {0, (long)(end - now)};
    syscall(SYS_futex, &arrived, FUTEX_WAIT_PRIVATE, seen, &t, NULL, 0);
  }
}

/* In this order: a connection is among the arrivals before it comes no more. */
bool spx_net_silent(uint32_t peer)
{
  if (!spx_net.conns) return true;
  if (peer < n_coming && atomic_load(&coming[peer])) return false;
  spx_lock();
  if (spx_net_arrivals_wait()) spx_arrivals_join();
  const spx_conn *c = spx_net.conns[peer];
  bool silent = !c || c->fd < 0;
  for (const spx_arrival *a = spx_arrivals_early; a; a = a->next)
    if (a->kind == FIRST && a->peer == peer && is_known(a)) silent = false;
  spx_unlock();
  return silent;
}
