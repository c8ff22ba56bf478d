/* net_read.c - what comes from sockets: read ahead into a connection's buffer, or past it into the
 * buffer of a long message's receive, and delivered from there, record by record.
 *
 * What comes is believed only as far as it can do no harm: a record that does not fit ends the
 * connection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "net_conn.h"

#define IN_BYTES   SPX_NET_IN
#define MAX_RECORD ((64u << 10) + SPX_LINE) /* SPX_NET_EAGER_MAX and a header */

const char *spx_refusal = "";
static bool refused; /* the record that is being delivered was refused */

void spx_refuse(uint32_t peer, const char *why)
{
  if (!spx_rxs[peer].conn)
    spx_fatal(MPI_ERR_INTERN,
              "process %u, which shares memory with this one, has sent a record with %s", peer,
              why);
  spx_refusal = why;
  refused = true;
}

/* The other end's announcement of the credit that it has given back. It never takes any back. */
static void on_credit(const spx_conn *c, const spx_rec *rec)
{
  spx_tx *tx = &spx_txs[c->peer];
  uint64_t word;
  memcpy(&word, rec->data, sizeof word);
  bool ours = tx->conn == c && word >> SPX_POSITION_BITS == tx->epoch;
  uint64_t matched = ours ? spx_position_of(word, tx->sent) : 0;
  if (ours && tx->sent - matched <= tx->sent - tx->matched)
    ((spx_conn *)(uintptr_t)c)->out_chan.matched = word;
  else
    spx_refuse(c->peer, "credit for what was not sent");
}

/* A record that has arrived whole; false: no memory for it. */
static bool take(spx_conn *c, spx_rx *rx, const spx_rec *rec)
{
  if (rec->kind == SPX_REC_LONG) {
    c->burst.prompt = false;
    return true;
  }
  if (rec->kind == SPX_REC_PROMPT) {
    c->burst.prompt = rec->as.flag.on == 1;
    /* it may have been read long ago */
    if (c->burst.prompt && c->fd >= 0) spx_burst_acknowledge(c);
    return true;
  }
  if (rec->kind == SPX_REC_BYWAY) {
    spx_byway_heard(c, rec);
    return true;
  }
  if (rec->kind != SPX_REC_CREDIT) return spx_arrived(c->peer, rx, rec, rec->kind);
  on_credit(c, rec);
  return true;
}

/* A record's head, behind what is left of a long message. */
static bool has_record(spx_conn *c)
{
  if (SPX_UNLIKELY(c->long_in.left))
    c->in_at += spx_long_take(&c->long_in, c->peer, c->in + c->in_at, c->in_end - c->in_at);
  return c->in_end - c->in_at >= SPX_REC_HEADER;
}

/* Whether the record's description of a long message is valid. It has arrived whole. */
static bool sane(const spx_rec *rec)
{
  if (rec->kind != SPX_REC_RTS) return true;
  spx_rec_rts rts;
  memcpy(&rts, rec->data, sizeof rts);
  return (rts.bytes & ~SPX_RTS_APART) <= SPX_MESSAGE_MOST;
}

/* Whether the payload is as long as its kind needs. It need not have arrived yet: the head alone
 * decides. */
static bool sound(const spx_rec *rec)
{
  switch (rec->kind) {
  case SPX_REC_EAGER_SYNC: return rec->len >= 16;
  case SPX_REC_RTS: return rec->len == sizeof(spx_rec_rts);
  case SPX_REC_ACK:
  case SPX_REC_DONE:
  case SPX_REC_CANCELLED:
  case SPX_REC_ABORTED: return rec->len == sizeof(spx_rec_id);
  case SPX_REC_CTS: return rec->len == sizeof(spx_rec_cts);
  case SPX_REC_CANCEL: return rec->len == sizeof(spx_rec_cancel);
  case SPX_REC_CREDIT:
  case SPX_REC_MCAST_ACK: return rec->len == sizeof(uint64_t);
  case SPX_REC_MCAST_ASK: return rec->len == sizeof(spx_rec_ask);
  case SPX_REC_MCAST_HAVE: return rec->len >= sizeof(spx_rec_have);
  case SPX_REC_BYWAY: return rec->len == 0 || rec->len == sizeof(spx_byway_offer);
  case SPX_REC_CHECK: return rec->len == sizeof(spx_diag_check);
  case SPX_REC_CLOSE:
  case SPX_REC_LONG:
  case SPX_REC_PROMPT: return rec->len == 0;
  default: return true;
  }
}

/* Is this the record that must come next? */
static bool fits(const spx_rx *rx, const spx_rec *rec)
{
  return rec->valid >= SPX_LINE && rec->valid % SPX_LINE == 0 && rec->valid <= MAX_RECORD &&
         rec->seq == rx->seq && rec->epoch == rx->epoch &&
         rec->len <= rec->valid - SPX_REC_HEADER && rec->kind > SPX_REC_SWITCH &&
         rec->kind <= SPX_REC_LAST && sound(rec);
}

void spx_net_to_start(spx_conn *c)
{
  if (SPX_UNLIKELY(c->in_end > SPX_NET_KEEP)) spx_net_reached(c, &c->in_high, c->in_end);
  if (c->in_at < c->in_end) memmove(c->in, c->in + c->in_at, c->in_end - c->in_at);
  c->in_end -= c->in_at;
  c->in_at = 0;
}

/* May what has come stay in the buffer until the next poll? Where no other thread waits for some of
 * it, nor a relay's count of it. */
static bool may_hold(void)
{
  return !spx_net.held && !spx_mt && !spx_set.progress && !spx_net.relays;
}

/* Delivers what has come. When a receive that was posted has got its message, and none is posted
 * any more, the rest stays for the next poll: it is for receives that are posted then, as a rule,
 * and is copied once, where a message that comes before its receive is copied aside first. */
static bool deliver(spx_conn *c, int *n)
{
  spx_rx *rx = &spx_rxs[c->peer];
  bool wanted = spx_posted_count > 0 && may_hold();
  if (SPX_UNLIKELY(!rx->base)) spx_rx_init(c->peer);
  c->stalled = false;
  c->delivering = true;
  while (has_record(c)) {
    const spx_rec *rec = (const spx_rec *)(c->in + c->in_at);
    bool whole = c->in_end - c->in_at >= rec->valid;
    if (SPX_UNLIKELY(!fits(rx, rec))) {
      spx_refusal = "a record whose head is none that can come now";
      c->delivering = false;
      return false;
    }
    if (!whole) break;
    if (SPX_UNLIKELY(!sane(rec) ||
                     (rec->kind == SPX_REC_LONG && !spx_long_begins(&c->long_in, c->peer, rec)))) {
      spx_refusal = "a long message that can be none";
      c->delivering = false;
      return false;
    }
    uint32_t bytes = rec->valid;
    bool taken = take(c, rx, rec);
    if (SPX_UNLIKELY(refused)) {
      refused = false;
      c->delivering = false;
      return false;
    }
    if (!taken) {
      c->stalled = true;
      break;
    }
    rx->seq++;
    c->in_at += bytes;
    ++*n;
    if (wanted && spx_posted_count == 0 && c->in_at < c->in_end) {
      c->delivering = false;
      spx_net.held = c;
      return true;
    }
  }
  c->delivering = false;
  if (c->in_at == c->in_end || IN_BYTES - c->in_end < MAX_RECORD) spx_net_to_start(c);
  if (SPX_UNLIKELY(c->fd < 0)) spx_net_thin(c);
  return true;
}

/* Answers to what has come, such as requests for long messages, go together. */
bool spx_net_deliver(spx_conn *c, int *n)
{
  spx_net_batch(1);
  bool sound = deliver(c, n);
  spx_net_batch(-1);
  return sound;
}

/* The other end has closed its socket: after the last record of each direction, or because it
 * leaves. Or nothing comes any more, for a reason that the system has. */
static void ended(spx_conn *c, int why)
{
  /* by a by-way the other end's last record may have come, and its end before an acknowledgement */
  bool last = c->closing == SPX_CLOSING_ANSWERED || (c->by && c->closing && c->farewell);
  if (last && !c->must_answer && c->done == c->stop && !c->deaf)
    spx_net_finish(c);
  else
    spx_net_lost(c, why);
}

static const char greeting_word[4] = "spx>";

bool spx_net_greet(spx_conn *c)
{
  uint8_t text[sizeof c->greeting] = {0};
  memcpy(text, greeting_word, sizeof greeting_word);
  memcpy(text + 4, &c->done, sizeof c->done);
  c->greets = true;
  c->greeting_n = 0;
  c->sent = c->flushed;
  c->owed = 0;
  c->refused = false;
  return send(c->fd, text, sizeof text, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof text;
}

static bool is_greeted(spx_conn *c)
{
  uint32_t position;
  if (memcmp(c->greeting, greeting_word, sizeof greeting_word) != 0) return false;
  memcpy(&position, c->greeting + 4, sizeof position);
  c->again = c->got - position;
  return c->again <= SPX_NET_OUT;
}

/* The first bytes of a connection. */
static void hear_greeting(spx_conn *c)
{
  ssize_t got =
      recv(c->fd, c->greeting + c->greeting_n, sizeof c->greeting - c->greeting_n, MSG_DONTWAIT);
  if (got > 0) {
    c->greeting_n += (uint8_t)got;
    if (c->greeting_n == sizeof c->greeting && !is_greeted(c)) {
      spx_stat.net_refused++;
      spx_net_lost(c, EBADMSG);
    }
  } else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
    spx_net_lost(c, got ? errno : 0);
}

/* Earlier bytes are dropped. */
static void skip(spx_conn *c)
{
  static uint8_t waste[16u << 10];
  while (c->fd >= 0 && c->again > 0) {
    ssize_t got =
        recv(c->fd, waste, c->again < sizeof waste ? c->again : sizeof waste, MSG_DONTWAIT);
    if (got > 0)
      c->again -= (uint32_t)got;
    else if (got == 0)
      spx_net_lost(c, 0);
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      return;
    else if (errno != EINTR)
      spx_net_lost(c, errno);
  }
}

/* Reads what has come: of a long message into its receive's buffer, the rest behind what is in
 * c->in. *room: for how much there was room; *direct: the first of them belong to the message. */
static ssize_t read_some(spx_conn *c, uint32_t *room, bool *direct)
{
  spx_long_in *l = &c->long_in;
  struct iovec v[SPX_LONG_IOVECS];
  uint64_t covered = 0;
  int runs = 0;
  if (SPX_UNLIKELY(l->left)) { /* all that was read before is delivered */
    runs = spx_long_target(l, c->peer, v, &covered);
    if (runs == 0) c->in_at = c->in_end = (0 - l->left) % SPX_LINE; /* records lie on lines */
  }
  *room = IN_BYTES - c->in_end;
  *direct = runs > 0;
  if (SPX_UNLIKELY(c->by_in) && runs == 0)
    return spx_byways->receive(c->by, &(struct iovec){c->in + c->in_end, *room}, 1);
  if (SPX_LIKELY(runs == 0)) return recv(c->fd, c->in + c->in_end, *room, MSG_DONTWAIT);
  if (covered == l->left)
    v[runs++] = (struct iovec){c->in, *room};
  else
    *room = 0;
  *room += (uint32_t)covered;
  if (SPX_UNLIKELY(c->by_in)) return spx_byways->receive(c->by, v, runs);
  struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)runs};
  ssize_t got = recvmsg(c->fd, &m, MSG_DONTWAIT);
  if (got < 0 && errno == EFAULT) {
    l->copies = true;
    errno = EINTR; /* again, in another way */
  }
  return got;
}

/* got bytes have come. */
static void count_read(spx_conn *c, uint32_t got, bool direct)
{
  uint32_t part = !direct ? 0 : got < c->long_in.left ? got : c->long_in.left;
  c->got += got;
  c->in_end += got - part;
  SPX_ASSERT(c->in_at <= c->in_end && c->in_end <= SPX_NET_IN);
  if (part) spx_long_read(&c->long_in, c->peer, part);
}

bool spx_net_resume(int *n)
{
  spx_conn *c = spx_net.held;
  bool wanted = spx_posted_count > 0;
  spx_net.held = NULL;
  if (!spx_net_deliver(c, n)) {
    spx_stat.net_refused++;
    spx_net_lost(c, EBADMSG);
  }
  return wanted && spx_posted_count == 0;
}

void spx_net_pull(spx_conn *c, int *n)
{
  if (c == spx_net.held || c == spx_net.served) return; /* until the next poll */
  if (SPX_UNLIKELY(c->greets && (c->greeting_n < sizeof c->greeting || c->again > 0))) {
    if (c->greeting_n < sizeof c->greeting) hear_greeting(c);
    if (c->greeting_n == sizeof c->greeting) skip(c);
    if (c->fd < 0 || c->greeting_n < sizeof c->greeting || c->again > 0) return;
  }
  for (int rounds = 0; rounds < 4 && c->fd >= 0; rounds++) {
    uint32_t room = IN_BYTES - c->in_end;
    bool direct = false;
    ssize_t got = c->stalled ? 0 : read_some(c, &room, &direct);
    if (got < 0) {
      if (errno == EINTR) continue;
      int why = errno;
      if ((why != EAGAIN && why != EWOULDBLOCK) ||
          (SPX_UNLIKELY(c->by_in) && spx_byway_looks(c, &why)))
        ended(c, why);
      return;
    }
    if (got == 0 && !c->stalled) {
      ended(c, 0);
      return;
    }
    count_read(c, (uint32_t)got, direct);
    c->used = ++spx_net.clock;
    c->burst.heard = true;
    if (!spx_net_deliver(c, n)) {
      spx_stat.net_refused++;
      spx_net_lost(c, EBADMSG);
      return;
    }
    if (c->burst.prompt && (uint32_t)got < room && c->fd >= 0) {
      spx_burst_acknowledge(c);
      /* what it brings is for receives that are posted then */
      if (c == spx_net.held || spx_posted_count == 0) return;
      continue;
    }
    if ((uint32_t)got < room || c == spx_net.held) return; /* that was all */
  }
}
