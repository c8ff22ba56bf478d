/* net_lost.c - connections that have broken, though neither end has closed them in order: the peer
 * has ended, or the engine finds out why (capi/net_lost.go). What is sent afterwards has no
 * receiver.
 */
#include <errno.h>
#include <sys/socket.h>
#include "net_conn.h"
#include "net_streams.h"

/* The connection does not work any more. What is sent later has no receiver. */
void spx_net_broken(spx_conn *c)
{
  spx_net_disconnect(c);
  c->over = true;
  c->asked = false;
  c->long_out = (spx_long_out){.left = 0};
  spx_txs[c->peer].full = 0; /* what waited for the socket goes on */
  spx_further_end(c, true);
  spx_net_thin(c);
}

/* The connection has broken though neither end has closed it in order: the peer has ended, as a
 * rule, which its agent reports. Else the engine finds out. why: errno, or 0 where the other side
 * has closed it. */
static void lost(spx_conn *c, int why)
{
  if (c->deaf) why = c->deaf;
  bool runs =
      c->fd >= 0 && spx_net_may_read(c->peer) && c->life == spx_proc_of(c->peer)->incarnation;
  spx_net_broken(c);
  if (runs) spx_net_tell((uint32_t)SPX_NET_LOST + ((uint32_t)why << 24) + c->peer, c->life);
}

void spx_net_lost(spx_conn *c, int why)
{
  bool first = c->fd >= 0,
       runs = spx_net_may_read(c->peer) && c->life == spx_proc_of(c->peer)->incarnation;
  if (first) lost(c, why);
  if (first) return;
  spx_net_broken(c); /* it was closed in order, and is not missed by itself */
  if (runs) spx_net_tell((uint32_t)SPX_NET_LOST + ((uint32_t)why << 24) + c->peer, c->life);
}

/* A write has failed. Where the other end has closed its socket, what it sent before is in this
 * one's buffer, and is read before the connection ends. What is sent to it has no receiver. */
void spx_net_unheard(spx_conn *c, int why)
{
  const spx_tx *tx = &spx_txs[c->peer];
  if (why != EPIPE && why != ECONNRESET && why != ECOMM) {
    lost(c, why);
    return;
  }
  /* a by-way has failed: so the other end learns of it, and closes the socket */
  if (why == ECOMM) shutdown(c->fd, SHUT_WR);
  c->deaf = why;
  c->full = false;
  c->long_out = (spx_long_out){.left = 0};
  if (tx->conn != c) return;
  spx_txs[c->peer].full = 0;
  spx_net_done(c, tx->pos - c->flushed);
}
