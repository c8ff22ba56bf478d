/* net_burst.c - many short messages in a row, over a connection within a host, go by few segments.
 *
 * Sending a short message within a host takes a system call, and the way down to the other end's
 * socket and the process that waits at it, all in that call. While the other end has not read the
 * messages before, the second part is wasted. So a process that writes short messages one after the
 * other, and receives nothing from the other end in between, has the system keep them until its
 * former data are acknowledged (Nagle's rule: TCP_NODELAY is off). The other end has the system
 * acknowledge what it has read at once (TCP_QUICKACK), which within a host delivers the kept data,
 * before that call returns.
 *
 * - The sender requests this of the other end in a PROMPT record, before it lets anything be kept,
 * and ends it by another. Without, a message could wait for a delayed acknowledgement, for 40 ms:
 * the system expects that one goes with an answer. The beginning of a long message ends it without
 * a record.
 * - Nothing is kept by libspx: written data arrive though the process makes no more calls.
 * MPI_Finalize and the end of a connection send it first (spx_burst_let_go). Data that a killed
 * process had the system keep are lost if it has not read all that was sent to it, as data in its
 * own buffer are.
 * - Between hosts an acknowledgement takes as long as the network does, and connections that carry
 * relayed frames have acknowledgements of their own (net_relay.c): there each message is sent when
 * it is written. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include "net_conn.h"

#define SHORT (20u << 10) /* bytes written at once: of more, the copy is most of the work */
/* A write soon after another one, with nothing read in between, counts one; any other one takes
 * FIRST away. */
#define SOON   50000 /* cycles: some 20 us */
#define FIRST  4
#define ENOUGH 12
#define MOST   20

static void set(const spx_conn *c, int option, int value)
{
  setsockopt(c->fd, IPPROTO_TCP, option, &value, sizeof value); /* where it fails, it is slower */
}

/* Both ends have the same address. */
static bool within_host(int fd)
{
  struct sockaddr_storage a, b;
  socklen_t n = sizeof a, m = sizeof b;
  if (getsockname(fd, (struct sockaddr *)&a, &n) != 0 ||
      getpeername(fd, (struct sockaddr *)&b, &m) != 0)
    return false;
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET)
    return ((struct sockaddr_in *)&a)->sin_addr.s_addr ==
           ((struct sockaddr_in *)&b)->sin_addr.s_addr;
  const struct in6_addr *x = &((struct sockaddr_in6 *)&a)->sin6_addr,
                        *y = &((struct sockaddr_in6 *)&b)->sin6_addr;
  return a.ss_family == AF_INET6 && memcmp(x, y, sizeof *x) == 0;
}

void spx_burst_join(spx_conn *c)
{
  c->burst = (spx_burst){.may = !spx_net.relays && within_host(c->fd)};
}

/* Notifies the other end, behind the bytes written now. False: there is no room for it. */
static bool tell(const spx_conn *c, int32_t prompt)
{
  spx_tx *tx = &spx_txs[c->peer];
  if (c->long_out.left || tx->pos + SPX_LINE > tx->size) return false;
  spx_rec *rec = (spx_rec *)(tx->base + tx->pos);
  spx_tx_fill(tx, rec, (spx_rec_words){.flag.on = prompt}, 0);
  spx_tx_commit(tx, rec, SPX_LINE, SPX_REC_PROMPT);
  return true;
}

void spx_burst_let_go(spx_conn *c)
{
  if (c->burst.keeps) set(c, TCP_NODELAY, 1); /* which sends it */
  c->burst.keeps = false;
}

void spx_burst_long(spx_conn *c)
{
  spx_burst_let_go(c);
  c->burst.told = false;
  c->burst.level = 0;
}

void spx_burst_write(spx_conn *c, uint32_t bytes)
{
  spx_burst *b = &c->burst;
  bool first = b->heard || spx_cycles() - b->wrote > SOON;
  b->heard = false;
  if (bytes > SHORT)
    b->level = 0;
  else if (first)
    b->level = b->level < FIRST ? 0 : (uint8_t)(b->level - FIRST);
  else if (b->level < MOST)
    b->level++;
  if (SPX_LIKELY(b->told ? b->level > 0 : b->level < ENOUGH)) return;
  if (b->told) spx_burst_let_go(c);
  if (tell(c, !b->told)) b->told = !b->told;
}

void spx_burst_written(spx_conn *c)
{
  spx_burst *b = &c->burst;
  b->wrote = spx_cycles();
  if (SPX_LIKELY(b->keeps || !b->told || b->level == 0)) return;
  set(c, TCP_NODELAY, 0);
  b->keeps = true;
  spx_stat.net_bursts++;
}

void spx_burst_acknowledge(const spx_conn *c) { set(c, TCP_QUICKACK, 1); }
