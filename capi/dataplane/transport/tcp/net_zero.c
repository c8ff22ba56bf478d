/* net_zero.c - long messages that the kernel sends out of the program's memory (MSG_ZEROCOPY),
 * without a copy into the socket's buffers.
 *
 * The kernel may read such bytes until the other end's kernel has acknowledged them, and the driver
 * has released them: it then reports that in the socket's queue of errors, naming writes by their
 * number. Until then a send is not complete, be it sent, cancelled, revoked, or its peer dead: the
 * owner of a released buffer may write to it.
 *
 * - Each write of at least LEAST bytes of a contiguous buffer is one; records before and behind it
 * go by plain writes, since their buffer is used again at once.
 * - Pinning pages and reading the reports costs more than copying, unless a copy is saved. Where
 * the other end is on this machine (loopback, veth), and with drivers that cannot, the kernel
 * copies after all, and reports that: then the connection stops (SPX_ZEROCOPY=auto). So it does
 * when the kernel has no memory for it (net.core.optmem_max, RLIMIT_MEMLOCK), or does not support
 * it: sockets that encrypt.
 * - A connection that breaks is reset if bytes wait that are not acknowledged: with its queues they
 * are gone, and none of them is read later. One that is closed in order has been read to its
 * end. */
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>
#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "net_conn.h"
#include "settings.h"

#ifndef SO_EE_CODE_ZEROCOPY_COPIED
#define SO_EE_CODE_ZEROCOPY_COPIED 1
#endif

/* bytes of a write: shorter ones are copied in less time than pages are looked up */
enum { LEAST = 32 << 10 };
enum { OFF, AUTO, ON }; /* SPX_ZEROCOPY */

uint32_t spx_zero_writes;

static uint64_t way(void) { return spx_setting_value(SPX_SET_ZEROCOPY); }

static spx_zero_write *write_of(spx_zero *z, uint32_t number)
{
  return &z->writes[number % SPX_ZERO_WRITES];
}

void spx_zero_join(spx_conn *c)
{
  int one = 1;
  c->zero.first = c->zero.next = 0;
  c->zero.may = way() != OFF && setsockopt(c->fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0;
}

bool spx_zero_takes(const spx_conn *c)
{
  const spx_long_out *o = &c->long_out;
  const spx_request *r = o->r;
  if (o->left < LEAST || !r || o->copies || c->zero.next - c->zero.first >= SPX_ZERO_WRITES)
    return false;
  /* Sends not requested by the program are taken back without waiting. */
  if (r->flags & (SPX_RF_PASS | SPX_RF_INTERNAL | SPX_RF_KEPT)) return false;
  return r->type->flags & SPX_T_CONTIG;
}

ssize_t spx_zero_send(spx_conn *c)
{
  spx_long_out *o = &c->long_out;
  spx_zero *z = &c->zero;
  struct iovec v = {(char *)o->r->buf + o->r->out.at, o->left};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
  ssize_t sent = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_ZEROCOPY);
  if (sent > 0) {
    SPX_ASSERT(!write_of(z, z->next)->r && z->next - z->first < SPX_ZERO_WRITES);
    *write_of(z, z->next++) = (spx_zero_write){.r = o->r, .bytes = (uint32_t)sent};
    o->r->flags |= SPX_RF_HANDED;
    spx_zero_writes++;
    spx_stat.net_zerocopy += (uint64_t)sent;
    return sent;
  }
  if (errno == ENOBUFS && way() == ON)
    sent = send(c->fd, v.iov_base, v.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return sent;
  bool unknown = errno == ENOBUFS || errno == EOPNOTSUPP || errno == EINVAL;
  if (unknown) z->may = false;
  if (errno == EFAULT) o->copies = true;
  if (unknown || o->copies) errno = EINTR; /* again, in another way */
  return sent;
}

/* Does the kernel still read what belongs to r? */
static bool is_handed(const spx_zero *z, const spx_request *r)
{
  for (uint32_t i = z->first; i != z->next; i++)
    if (z->writes[i % SPX_ZERO_WRITES].r == r) return true;
  return false;
}

/* The kernel has released a write. */
static void let_go(spx_zero *z, uint32_t number)
{
  spx_request *r = write_of(z, number)->r;
  SPX_ASSERT(r->flags & SPX_RF_HANDED && spx_zero_writes > 0);
  *write_of(z, number) = (spx_zero_write){.r = NULL};
  spx_zero_writes--;
  if (is_handed(z, r)) return;
  bool over = r->flags & SPX_RF_OVER;
  r->flags &= ~(uint32_t)(SPX_RF_HANDED | SPX_RF_OVER);
  if (over) spx_complete(r, r->error);
}

/* The writes from `from` to `to`, as far as they are known. */
static void let_all_go(spx_conn *c, uint32_t from, uint32_t to, bool copied)
{
  spx_zero *z = &c->zero;
  for (uint32_t i = z->first, end = z->next; i != end; i++) {
    if (i - from > to - from || !write_of(z, i)->r) continue;
    if (copied) spx_stat.net_zerocopy_copied += write_of(z, i)->bytes;
    let_go(z, i);
  }
  while (z->first != z->next && !write_of(z, z->first)->r) z->first++;
  if (copied && way() != ON) z->may = false;
}

int spx_zero_reap(spx_conn *c)
{
  spx_zero *z = &c->zero;
  int n = 0;
  while (z->first != z->next) {
    union {
      struct cmsghdr head;
      char room[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
    } control;
    struct msghdr m = {.msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(c->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
      struct sock_extended_err e;
      if (h->cmsg_len < CMSG_LEN(sizeof e)) continue;
      memcpy(&e, CMSG_DATA(h), sizeof e);
      if (e.ee_origin != SO_EE_ORIGIN_ZEROCOPY || e.ee_errno != 0) continue;
      let_all_go(c, e.ee_info, e.ee_data, e.ee_code & SO_EE_CODE_ZEROCOPY_COPIED);
      n++;
    }
  }
  return n;
}

bool spx_zero_keeps(spx_request *r, int error)
{
  const spx_conn *c = spx_net.conns ? spx_net.conns[r->peer] : NULL;
  if (!c || !is_handed(&c->zero, r)) {
    r->flags &= ~(uint32_t)SPX_RF_HANDED;
    return false;
  }
  r->error = error;
  r->flags |= SPX_RF_OVER;
  return true;
}

void spx_zero_reset(spx_conn *c)
{
  int waits = 0;
  struct linger at_once = {.l_onoff = 1};
  if (SPX_LIKELY(c->zero.first == c->zero.next)) return;
  spx_zero_reap(c);
  bool in_order = c->closing && c->farewell;
  if (c->zero.first == c->zero.next || in_order || ioctl(c->fd, SIOCOUTQ, &waits) != 0 ||
      waits == 0)
    return;
  setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void spx_zero_end(spx_conn *c)
{
  if (SPX_UNLIKELY(c->zero.first != c->zero.next))
    let_all_go(c, c->zero.first, c->zero.next - 1, false);
  c->zero.may = false;
}
