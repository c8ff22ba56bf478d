/* net_hand_over.c - bytes that are sent, but in no socket yet, when a program makes no more calls
 * of MPI.
 *
 * A send is over when its bytes are in the connection's buffer. They are to arrive whatever the
 * program does then (MPI-5.0 3.5: the receive that matches a send that is over completes). So bytes
 * that a call leaves in a buffer, because the connection is not made yet or because its socket is
 * full, are handed over to the engine, whose threads write them; the next user of the buffer takes
 * it back first. The bytes that are handed over do not change and do not move; no lock is taken
 * where nothing waits, which is almost always.
 *
 * Not handed over: frames that go through relays (the relays' own calls move them), and bytes
 * behind a long message, whose send is not over. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "net_conn.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static spx_conn *first; /* under lock, as next_handed, handed_fd and handed_done of each */
/* under lock: the engine is processing them; something was handed over since it began */
static bool told, again;

/* The part of the unwritten bytes whose sends are over. */
static uint32_t over_part(const spx_conn *c)
{
  uint32_t end = c->long_out.left ? c->long_out.at : spx_txs[c->peer].pos;
  return end - c->flushed;
}

bool spx_net_hand_over(spx_conn *c)
{
  bool idle = c->fd < 0 ? spx_net.relays || c->over : !c->full || c->closing || c->must_answer;
  if (SPX_LIKELY(idle || c->handed || spx_txs[c->peer].conn != c)) return false;
  uint32_t n = over_part(c);
  if (n == 0) return false;
  pthread_mutex_lock(&lock);
  c->handed = n;
  c->handed_done = 0;
  c->handed_fd = c->fd;
  c->next_handed = first;
  first = c;
  bool tell = !told && c->fd >= 0; /* else the engine is about to make the connection */
  again = true;
  told |= tell;
  bool there = c->fd < 0 && spx_net_arrivals_wait();
  pthread_mutex_unlock(&lock);
  if (tell) spx_net_tell(SPX_NET_HANDED, 0);
  return there;
}

void spx_net_reclaim(spx_conn *c)
{
  pthread_mutex_lock(&lock);
  spx_conn **p = &first;
  while (*p != c) p = &(*p)->next_handed;
  *p = c->next_handed;
  uint32_t n = c->handed_done;
  c->handed = 0;
  pthread_mutex_unlock(&lock);
  if (n && spx_txs[c->peer].conn == c) spx_net_done(c, n); /* else it is of an earlier process */
}

/* Writes what the socket takes. An error is left to the program's next call, which meets it,
 * too. */
static bool carry(spx_conn *c)
{
  uint32_t before = c->handed_done;
  while (c->handed_done < c->handed) {
    uint32_t left = c->handed - c->handed_done;
    uint8_t *from = c->out + c->flushed + c->handed_done;
    ssize_t n;
    if (SPX_LIKELY(!c->by_out))
      n = send(c->handed_fd, from, left, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (c->handed_done < c->by_left)
      n = send(c->handed_fd, from,
               c->by_left - c->handed_done < left ? c->by_left - c->handed_done : left,
               MSG_DONTWAIT | MSG_NOSIGNAL);
    else
      n = spx_byways->send(c->by, &(struct iovec){from, left}, 1);
    if (n <= 0) break;
    c->handed_done += (uint32_t)n;
  }
  return c->handed_done != before;
}

int spx_net_carry(void)
{
  bool moved = false, left = false;
  pthread_mutex_lock(&lock);
  for (spx_conn *c = first; c; c = c->next_handed) {
    if (c->handed_fd < 0) continue;
    moved |= carry(c);
    left |= c->handed_done < c->handed;
  }
  told = left || again;
  again = false;
  int result = !told ? SPX_CARRY_ALL : moved ? SPX_CARRY_SOME : SPX_CARRY_NONE;
  pthread_mutex_unlock(&lock);
  return result;
}

bool spx_net_carry_first(int fd, uint32_t peer, uint32_t life, spx_arrival *a)
{
  bool tell = false;
  pthread_mutex_lock(&lock);
  for (spx_conn *c = first; c; c = c->next_handed) {
    if (c->peer != peer || c->life != life || c->handed_fd >= 0) continue;
    c->handed_fd = fd;
    carry(c);
    tell = !told && c->handed_done < c->handed;
    told |= tell;
  }
  spx_net_arrives(a); /* a hand-over after that sees it */
  pthread_mutex_unlock(&lock);
  return tell;
}
