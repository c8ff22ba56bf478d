/* net_streams.c - further streams of a pair: one TCP stream is bounded by its window, or by the
 * network's limit for each flow.
 *
 * The records of a pair, and with them the order of its messages, stay on its connection. From a
 * long message the sender cuts portions off its end, for streams that have nothing to write, while
 * the connection continues at its beginning: the faster one takes more. So the connection always
 * has the last record of its part, and of the rest only that the message's end has come nearer. The
 * receiver counts the bytes of both ways.
 *
 *   head: receive, offset, length    bytes of the message    seal: good, or aborted
 *
 * - A portion counts when its seal has come. If the send is over before all is written, zeros take
 * the place of what was announced, and the seal marks that.
 * - A portion for a receive that is over is read and dropped. One that is not within the receive,
 * or is more than what is missing, ends the connection.
 * - A stream goes one way: the sender makes it, writes to it, and closes it between two portions
 * whenever it likes. So no agreement is needed, and the pair's connection may be closed and made
 * again meanwhile.
 * - One that ends within a portion, or that cannot be written to, is a connection that has broken
 * (net.c, lost). */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "net_conn.h"
#include "pack.h"

#define MOST      (1u << 20)   /* bytes of a portion */
#define LEAST     (64u << 10)  /* shorter ones are not worth a head */
#define OPEN_MIN  (512u << 10) /* left of a message: a stream is made for it */
#define AGAIN_NS  1000000000ull
#define BOUNCE    (64u << 10)
#define SHORT_RUN 1024 /* as in net_long.c */
#define MAGIC     0x50585053u
#define ALL       16          /* streams of a pair, the connection with them */
#define LOOK      (32u << 10) /* bytes between two thoughts about their number */
#define LOOK_REST (1u << 20)

typedef struct {
  uint32_t magic, n, index, gen;
  uint64_t at, none;
} head;

enum { GOOD = 1, ABORTED = 2 };

typedef struct {
  uint64_t seal;
  head next;
} between; /* separates the bytes of two portions */

struct spx_further {
  spx_further *next;
  spx_conn *c;
  int fd;
  bool out, copies, full;
  /* the portion: written, or read */
  spx_request *r; /* out: the send; NULL: it is over */
  uint64_t at;    /* the next byte's place in the message */
  uint32_t left;  /* bytes of the message */
  bool under_way; /* out */
  head of;        /* the portion's */
  between b;      /* out: its seal; in: what has come of that, and of the next head */
  spx_socket_seen seen;
  /* out: bytes of the head that are written, and of the seal; in: bytes of b that have come */
  uint32_t b_n;
};

uint32_t spx_n_further;
static spx_further *ended; /* freed by the next sweep */
static uint8_t bounce[BOUNCE];

static void close_one(spx_further *s)
{
  spx_further **p = s->out ? &s->c->further.out : &s->c->further.in;
  while (*p != s) p = &(*p)->next;
  *p = s->next;
  if (s->out) s->c->further.n_out--;
  spx_net_shut(s->fd);
  s->fd = -1;
  s->next = ended;
  ended = s;
  spx_n_further--;
}

void spx_further_sweep(void)
{
  while (ended) {
    spx_further *s = ended;
    ended = s->next;
    free(s);
  }
}

static void broke(spx_further *s, int why)
{
  spx_conn *c = s->c;
  close_one(s);
  if (!c->over) spx_net_lost(c, why);
}

/* ---- writing ---- */

/* The next bytes of the message, in memory. */
static int source(const spx_further *s, struct iovec *v, uint64_t *covered)
{
  const spx_request *r = s->r;
  uint64_t n = s->left;
  int64_t done = 0;
  if (r && !s->copies && (r->type->flags & SPX_T_CONTIG)) {
    *v = (struct iovec){(char *)r->buf + s->at, n};
    *covered = n;
    return 1;
  }
  if (r && !s->copies) {
    int runs = spx_iovecs(r->buf, r->count, r->type, (int64_t)s->at, (int64_t)(s->at + n), v,
                          SPX_LONG_RUNS, &done);
    *covered = (uint64_t)done;
    if (runs > 0) return runs;
  }
  n = spx_least(n, BOUNCE);
  if (r)
    spx_pack(r->buf, r->count, r->type, (int64_t)s->at, (int64_t)(s->at + n), bounce);
  else
    memset(bounce, 0, n);
  *v = (struct iovec){bounce, n};
  *covered = n;
  return 1;
}

/* Writes some of what is left of the portion. */
static ssize_t write_some(spx_further *s)
{
  struct iovec v[SPX_LONG_IOVECS];
  int runs = 0;
  uint64_t covered = 0;
  if (s->b_n < sizeof s->of)
    v[runs++] = (struct iovec){(char *)&s->of + s->b_n, sizeof s->of - s->b_n};
  if (s->left) runs += source(s, v + runs, &covered);
  uint32_t sealed = s->b_n > sizeof s->of ? s->b_n - (uint32_t)sizeof s->of : 0;
  if (covered == s->left)
    v[runs++] = (struct iovec){(char *)&s->b.seal + sealed, sizeof s->b.seal - sealed};
  struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)runs};
  return sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void count_written(spx_further *s, uint32_t n)
{
  uint32_t before = s->b_n < sizeof s->of ? (uint32_t)spx_least(n, sizeof s->of - s->b_n) : 0;
  s->b_n += before;
  uint32_t part = (uint32_t)spx_least(n - before, s->left);
  s->at += part;
  s->left -= part;
  s->b_n += n - before - part;
  if (s->r) spx_stat.net_direct += part;
  spx_stat.net_further += part;
  if (spx_set.streams == 0 && part) spx_further_wrote(s->c, part);
  if (s->b_n < sizeof s->b) return;
  s->under_way = false;
  s->r = NULL;
  spx_txs[s->c->peer].full = 0; /* the message goes on, or is sent */
}

static void watch(spx_further *s, bool full)
{
  if (s->full == full) return;
  s->full = full;
  spx_net_watch(s->fd, EPOLLIN | (full ? EPOLLOUT : 0), EPOLL_CTL_MOD,
                SPX_FURTHER_BIT | (uintptr_t)s);
}

static void push(spx_further *s)
{
  while (s->under_way) {
    ssize_t sent = write_some(s);
    if (sent >= 0) {
      count_written(s, (uint32_t)sent);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EFAULT && !s->copies) {
      s->copies = true;
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
      watch(s, true);
    else
      broke(s, errno);
    return;
  }
  watch(s, false);
}

/* The writer of a stream reads nothing from it: only its end can arrive. */
static void look(spx_further *s)
{
  char c;
  ssize_t got = recv(s->fd, &c, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  int why = got < 0 ? errno : got > 0 ? EBADMSG : 0;
  if (why || s->under_way)
    broke(s, why);
  else
    close_one(s);
}

static void give(spx_further *s, spx_request *r, uint32_t n)
{
  SPX_ASSERT(!s->under_way && n <= r->out.end - r->out.at);
  r->out.end -= n;
  s->r = r;
  s->at = r->out.end;
  s->left = n;
  s->copies = !(r->type->flags & SPX_T_CONTIG) && !spx_has_long_runs(r);
  s->under_way = true;
  s->b.seal = GOOD;
  s->of = (head){
      .magic = MAGIC, .n = n, .index = r->out.to.index, .gen = r->out.to.gen, .at = r->out.end};
  s->b_n = 0;
  push(s);
}

/* The bytes of r that no stream has begun to write. */
static uint64_t free_of(const spx_conn *c, const spx_request *r)
{
  const spx_long_out *o = &c->long_out;
  uint64_t from = o->left == 0 || o->r != r ? r->out.at : o->ends ? o->to : r->out.at + o->left;
  return r->out.end > from ? r->out.end - from : 0;
}

bool spx_further_room(void)
{
  uint32_t most = spx_net.most ? spx_net.most : 256;
  return spx_set.streams != 1 && !spx_net_sealed && !spx_net.most_before && !spx_net_full() &&
         spx_net.n_open + spx_n_further < most / 2;
}

/* Streams that long messages go over, the connection with them; and those that may stay open. */
static uint32_t used(const spx_conn *c)
{
  if (SPX_UNLIKELY(c->by_out)) return 1;
  return spx_set.streams ? spx_set.streams : spx_number_use(&c->further.number);
}
static uint32_t kept(const spx_conn *c)
{
  return spx_set.streams ? spx_set.streams : spx_number_keeps(&c->further.number);
}

/* Requests the missing streams from the engine. */
static void want(spx_conn *c)
{
  spx_furthers *f = &c->further;
  if (f->n_out + f->asked + 1 >= used(c) || c->over) return;
  uint64_t now = spx_now_ns();
  while (now >= f->not_before && f->n_out + f->asked + 1 < used(c) && spx_further_room()) {
    f->asked++;
    spx_net_tell(SPX_NET_STREAM | c->peer, c->life);
  }
}

/* How much of what is left of a message a stream takes: all are to be done at about the same time,
 * though none is as fast as the next. 0: nothing, the connection is done as soon by itself. */
static uint64_t portion(const spx_conn *c, uint64_t left)
{
  uint64_t part = left / (2 * spx_least(c->further.n_out + 1, used(c))) / SPX_LINE * SPX_LINE;
  return left < 2 * LEAST ? 0 : part < LEAST ? LEAST : spx_least(part, MOST);
}

uint64_t spx_further_share(const spx_conn *c, const spx_request *r, uint64_t left)
{
  if (!(r->flags & SPX_RF_FURTHER) || !c->further.out || used(c) < 2) return left;
  uint64_t part = portion(c, left);
  return part ? part : left;
}

/* Those that are too many are closed when they have nothing to write. */
static void close_surplus(spx_conn *c)
{
  uint32_t n = 1;
  for (spx_further *s = c->further.out, *next; s; s = next, n++) {
    next = s->next;
    if (n >= kept(c) && !s->under_way) close_one(s);
  }
}

void spx_further_give(spx_conn *c, spx_request *r)
{
  if (!(r->flags & SPX_RF_FURTHER) || c->fd < 0 || c->closing || c->must_answer) return;
  c->further.may = true;
  if (SPX_LIKELY(used(c) < 2 && !c->further.out)) return;
  if (free_of(c, r) >= OPEN_MIN) want(c);
  if (c->further.n_out >= kept(c)) close_surplus(c);
  uint32_t n = 1;
  for (spx_further *s = c->further.out, *next; s && n < used(c); s = next, n++) {
    next = s->next;
    if (s->under_way) continue;
    uint64_t part = portion(c, free_of(c, r));
    if (!part) return;
    give(s, r, (uint32_t)part);
    if (c->fd < 0) return; /* it has broken */
  }
}

/* ---- their number ---- */

/* Samples what a socket has done since the last sample. False: that is not available. */
static bool look_at(int fd, spx_socket_seen *before, spx_streams_seen *seen, struct tcp_info *i)
{
  socklen_t n = sizeof *i;
  memset(i, 0, sizeof *i);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, i, &n) != 0) return false;
  spx_socket_seen now = {i->tcpi_bytes_acked, i->tcpi_busy_time,
                         i->tcpi_rwnd_limited + i->tcpi_sndbuf_limited};
  if (now.acked < before->acked) *before = (spx_socket_seen){0}; /* another socket */
  seen->acked += now.acked - before->acked;
  seen->busy += now.busy > before->busy ? now.busy - before->busy : 0;
  seen->held += now.held > before->held ? now.held - before->held : 0;
  *before = now;
  return true;
}

static void look_at_all(spx_conn *c, uint64_t now)
{
  spx_furthers *f = &c->further;
  struct tcp_info of, other;
  spx_streams_seen seen = {.open = f->n_out + 1, .moving = 1};
  if (!look_at(c->fd, &f->seen, &seen, &of)) of.tcpi_rtt = of.tcpi_min_rtt = 0;
  for (spx_further *s = f->out; s; s = s->next) {
    look_at(s->fd, &s->seen, &seen, &other);
    seen.moving += s->under_way;
  }
  seen.trip = of.tcpi_rtt;
  seen.near = of.tcpi_min_rtt;
  bool more = f->n_out + 1 < ALL && spx_further_room();
  spx_number_saw(&f->number, now, &seen, more ? ALL : f->n_out + 1);
}

void spx_further_wrote(spx_conn *c, uint32_t n)
{
  spx_furthers *f = &c->further;
  f->wrote += n;
  if (SPX_LIKELY(f->wrote < (f->number.phase == SPX_NUMBER_RESTS ? LOOK_REST : LOOK)) || !f->may ||
      c->fd < 0)
    return;
  f->wrote = 0;
  uint64_t now = spx_now_ns();
  if (!spx_number_looks(&f->number, now)) return;
  look_at_all(c, now);
  want(c);
}

bool spx_further_busy(const spx_conn *c, const spx_request *r)
{
  for (const spx_further *s = c->further.out; s; s = s->next)
    if (s->r == r) return true;
  return false;
}

void spx_further_recall(spx_conn *c, const spx_request *r)
{
  for (spx_further *s = c->further.out; s; s = s->next)
    if (s->r == r) {
      s->r = NULL;
      if (s->left) s->b.seal = ABORTED;
    }
}

uint64_t spx_further_unsent(const spx_conn *c)
{
  uint64_t n = 0;
  for (const spx_further *s = c->further.out; s; s = s->next) {
    int queued = 0;
    if (ioctl(s->fd, SIOCOUTQ, &queued) != 0) queued = 0;
    n += (uint64_t)queued + s->under_way;
  }
  return n;
}

/* ---- reading ---- */

static spx_request *receive_of(const spx_further *s, const head *h)
{
  spx_request *r = spx_carries->sink(h->index, h->gen);
  return r && r->peer == s->c->peer && r->flags & SPX_RF_FURTHER ? r : NULL;
}

/* Whether the head is valid. */
static bool fits(const spx_further *s)
{
  const head *h = &s->b.next;
  if (h->magic != MAGIC || h->n == 0 || h->n > MOST || h->none) return false;
  const spx_request *r = receive_of(s, h);
  return !r || (h->at <= (uint64_t)r->bytes && h->n <= (uint64_t)r->bytes - h->at &&
                h->n <= (uint64_t)r->bytes - r->in.at - r->in.beside);
}

/* Where the next bytes belong, as in net_long.c; 0: into bounce. */
static int target(const spx_further *s, const spx_request *r, struct iovec *v, uint64_t *covered)
{
  int64_t done = 0;
  if (!r || s->copies) return 0;
  if (r->type->flags & SPX_T_CONTIG) {
    *v = (struct iovec){(char *)r->buf + s->at, s->left};
    *covered = s->left;
    return 1;
  }
  int runs = spx_iovecs(r->buf, r->count, r->type, (int64_t)s->at, (int64_t)(s->at + s->left), v,
                        SPX_LONG_RUNS, &done);
  if (runs == 0 || done / runs < SHORT_RUN) return 0;
  *covered = (uint64_t)done;
  return runs;
}

static ssize_t read_some(spx_further *s)
{
  struct iovec v[SPX_LONG_IOVECS];
  uint64_t covered = 0;
  int runs = 0;
  const spx_request *r = s->left ? receive_of(s, &s->of) : NULL;
  if (s->left) runs = target(s, r, v, &covered);
  bool copied = s->left && runs == 0;
  if (copied) {
    covered = spx_least(s->left, BOUNCE);
    v[runs++] = (struct iovec){bounce, covered};
  }
  if (!s->left) v[runs++] = (struct iovec){(char *)&s->b + s->b_n, sizeof s->b - s->b_n};
  struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)runs};
  ssize_t got = recvmsg(s->fd, &m, MSG_DONTWAIT);
  if (got > 0 && copied && r)
    spx_unpack(r->buf, r->count, r->type, (int64_t)s->at, (int64_t)(s->at + (uint64_t)got), bounce);
  return got;
}

/* The portion is here, and s->b.seal tells whether it is good. False: that is no seal. */
static bool sealed(const spx_further *s)
{
  if (s->b.seal != GOOD && s->b.seal != ABORTED) return false;
  spx_request *r = receive_of(s, &s->of);
  if (s->b.seal == ABORTED || !r) return true;
  /* with what came meanwhile */
  if (s->of.n > (uint64_t)r->bytes - r->in.at - r->in.beside) return false;
  r->in.beside += s->of.n;
  spx_carries->came(r, 0);
  return true;
}

/* n bytes have come. False: they are not sound. */
static bool count_read(spx_further *s, uint32_t n)
{
  if (s->left) {
    s->at += n;
    s->left -= n;
    if (s->left == 0) s->b_n = 0;
    return true;
  }
  uint32_t before = s->b_n;
  s->b_n += n;
  if (before < sizeof s->b.seal && s->b_n >= sizeof s->b.seal && !sealed(s)) return false;
  if (s->b_n < sizeof s->b) return true;
  if (!fits(s)) return false;
  s->of = s->b.next;
  /* one that gets this name meanwhile is not meant */
  if (!receive_of(s, &s->of)) s->of.index = UINT32_MAX;
  s->at = s->of.at;
  s->left = s->of.n;
  s->copies = false;
  return true;
}

static void pull(spx_further *s, int *n)
{
  for (int rounds = 0; rounds < 16; rounds++) {
    ssize_t got = read_some(s);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got < 0 && errno == EFAULT && !s->copies) {
      s->copies = true;
      continue;
    }
    if (got <= 0) {
      if (!s->left && s->b_n == sizeof s->b.seal)
        close_one(s);
      else
        broke(s, got < 0 ? errno : 0);
      return;
    }
    ++*n;
    if (!count_read(s, (uint32_t)got)) {
      spx_stat.net_refused++;
      spx_refusal = "a piece of a long message that does not fit";
      broke(s, EBADMSG);
      return;
    }
  }
}

/* ---- all of them ---- */

void spx_further_event(uint64_t what, uint32_t events, int *n)
{
  spx_further *s = (spx_further *)(uintptr_t)(what & ~SPX_FURTHER_BIT);
  if (s->fd < 0) return; /* ended meanwhile: it is freed later */
  if (!s->out) {
    pull(s, n);
    return;
  }
  bool waits = spx_txs[s->c->peer].active;
  if (events & EPOLLOUT) push(s);
  if (waits && !s->under_way) {
    spx_ring_self(); /* another thread, which sleeps, may wait for it */
    ++*n;
  }
  if (s->fd >= 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) look(s);
}

void spx_further_join(spx_conn *c, int fd, bool out)
{
  spx_furthers *f = &c->further;
  if (out && f->asked) f->asked--;
  spx_further *s = fd < 0 || c->over ? NULL : malloc(sizeof *s);
  if (!s || spx_net_watch(fd, EPOLLIN, EPOLL_CTL_ADD, SPX_FURTHER_BIT | (uintptr_t)s) != 0) {
    free(s);
    if (fd >= 0) spx_net_shut(fd);
    f->not_before = spx_now_ns() + AGAIN_NS;
    return;
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  spx_further **list = out ? &f->out : &f->in;
  *s = (spx_further){.next = *list, .c = c, .fd = fd, .out = out, .b_n = sizeof s->b.seal};
  *list = s;
  f->n_out += out;
  if (out && spx_set.streams == 0)
    look_at(fd, &s->seen, &(spx_streams_seen){0}, &(struct tcp_info){0});
  if (out) spx_txs[c->peer].full = 0; /* a message goes on over it, too */
  spx_n_further++;
  spx_stat.net_streams += out;
}

void spx_further_end(spx_conn *c, bool drain)
{
  int n = 0;
  while (c->further.out) close_one(c->further.out);
  while (c->further.in) {
    spx_further *s = c->further.in;
    for (int before = -1; drain && s->fd >= 0 && before != n;) {
      before = n;
      pull(s, &n);
    }
    if (s->fd >= 0) close_one(s);
  }
}

void spx_further_press(spx_conn *c)
{
  for (spx_further *s = c->further.out, *next; s; s = next) {
    next = s->next;
    if (!s->under_way) close_one(s);
  }
}
