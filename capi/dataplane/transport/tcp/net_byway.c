/* net_byway.c - pairs whose bytes go over a by-way (net_byway.h): how they come to it, and how they
 * end. */
#include "net_byway.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "net_conn.h"

/* Calls of spx_net_pull for each look at the socket, on which nothing comes but its end. */
#define LOOK_EACH 32

const spx_byway *spx_byways;

static void to_do(spx_conn *c, uint8_t what)
{
  if (c->by_todo == 0 && what) spx_net.n_by_todo++;
  c->by_todo |= what;
}

static void done(spx_conn *c, uint8_t what)
{
  if (c->by_todo == 0) return;
  c->by_todo &= (uint8_t)~what;
  if (c->by_todo == 0) spx_net.n_by_todo--;
}

enum {
  OFFER = 1u << SPX_BYWAY_OFFER,
  ACCEPT = 1u << SPX_BYWAY_ACCEPT,
  SWITCH = 1u << SPX_BYWAY_SWITCH
};

void spx_byway_join(spx_conn *c)
{
  if (SPX_LIKELY(!spx_byways) || spx_net.relays || spx_proc_of(c->peer)->home_job != 0) return;
  to_do(c, OFFER);
}

void spx_byway_end(spx_conn *c)
{
  done(c, OFFER | ACCEPT | SWITCH);
  if (SPX_LIKELY(!c->by)) return;
  spx_byways->drop(c->by);
  c->by = NULL;
  c->by_theirs = c->by_mine = c->by_in = c->by_out = c->by_over = false;
  c->by_left = 0;
}

void spx_byway_declined(const spx_conn *c) { spx_net_tell(SPX_NET_BYWAY | c->peer, c->life); }

/* Writes a record. False: there is no room for it now. */
static bool say(spx_conn *c, int32_t what, const void *payload, uint32_t n)
{
  return spx_net_ready(c->peer) &&
         spx_tx_write(c->peer, SPX_REC_BYWAY, (spx_rec_words){.flag.on = what}, payload, n) &&
         c->by;
}

static void offer(spx_conn *c)
{
  spx_byway_offer o;
  if (!c->by) c->by = spx_byways->begin(c);
  if (!c->by) {
    done(c, OFFER);
    return;
  }
  spx_byways->describe(c->by, &o);
  if (say(c, SPX_BYWAY_OFFER, &o, sizeof o)) done(c, OFFER);
}

/* From here on this direction's bytes go over the by-way. */
static void change_over(spx_conn *c)
{
  if (c->long_out.left || !say(c, SPX_BYWAY_SWITCH, NULL, 0)) return;
  done(c, SWITCH);
  spx_burst_let_go(c);
  c->burst.may = false;
  c->zero.may = false;
  c->by_left = spx_net_end(c) - c->done;
  c->by_out = true;
  spx_net_push(c);
}

void spx_byway_turn(void)
{
  for (uint32_t i = spx_net.n_open; i-- > 0;) {
    spx_conn *c = i < spx_net.n_open ? spx_net.open_ones[i] : NULL;
    if (!c || !c->by_todo || c->closing || c->must_answer || c->deaf) continue;
    if (c->by_todo & OFFER) offer(c);
    if (c->by_todo & ACCEPT && say(c, SPX_BYWAY_ACCEPT, NULL, 0)) done(c, ACCEPT);
    if ((c->by_todo & (SWITCH | ACCEPT | OFFER)) == SWITCH) change_over(c);
    if (c->fd >= 0) spx_net_push(c);
  }
}

static void agreed(spx_conn *c)
{
  if (c->by_mine && c->by_theirs) to_do(c, SWITCH);
}

void spx_byway_heard(spx_conn *c, const spx_rec *rec)
{
  spx_byway_offer o;
  bool is_offer = rec->as.flag.on == SPX_BYWAY_OFFER;
  if (is_offer != (rec->len == sizeof o)) {
    spx_refuse(c->peer, "a malformed record of a by-way");
    return;
  }
  switch (rec->as.flag.on) {
  case SPX_BYWAY_OFFER:
    memcpy(&o, rec->data, sizeof o);
    if (!spx_byways || c->closing || c->by_theirs || c->greets) return;
    if (!c->by && c->by_todo & OFFER) c->by = spx_byways->begin(c);
    if (!c->by || !spx_byways->accept(c->by, &o)) return;
    c->by_theirs = true;
    to_do(c, ACCEPT);
    agreed(c);
    return;
  case SPX_BYWAY_ACCEPT:
    if (!c->by || c->by_mine)
      spx_refuse(c->peer, "a by-way that was not offered");
    else
      c->by_mine = true, agreed(c);
    return;
  case SPX_BYWAY_SWITCH:
    if (!c->by || !c->by_theirs || c->by_in || c->in_at + rec->valid != c->in_end)
      spx_refuse(c->peer, "bytes that should have come by a by-way");
    else
      c->by_in = true, c->burst.prompt = false;
    return;
  default: spx_refuse(c->peer, "a malformed record of a by-way");
  }
}

ssize_t spx_byway_write(spx_conn *c, uint32_t n)
{
  spx_long_out *o = &c->long_out;
  struct iovec v[SPX_LONG_IOVECS];
  uint32_t before = o->left ? o->at - c->flushed : n;
  uint64_t covered = 0;
  int runs = 0;
  if (before) v[runs++] = (struct iovec){c->out + c->flushed, before < n ? before : n};
  if (n > before) {
    runs += spx_long_source(o, v + runs, &covered);
    if (covered == o->left && n > before + o->left)
      v[runs++] = (struct iovec){c->out + o->at, n - before - o->left};
  }
  return spx_byways->send(c->by, v, runs);
}

bool spx_byway_looks(spx_conn *c, int *why)
{
  char byte;
  if (SPX_UNLIKELY(spx_byways->failed(c->by)) && !c->deaf) spx_net_unheard(c, ECOMM);
  if (c->fd < 0 || (!c->by_over && ++c->by_looks % LOOK_EACH != 0)) return false;
  ssize_t got = c->by_over ? 0 : recv(c->fd, &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  *why = got < 0 ? errno : got > 0 ? EBADMSG : 0;
  if (got > 0) {
    spx_refusal = "bytes beside a by-way";
    spx_stat.net_refused++;
  }
  c->by_over = true;
  /* what was sent before the socket was closed may come later than its end */
  return got > 0 || !spx_byways->drain(c->by);
}

void spx_byway_poll(int *n)
{
  *n += spx_byways->poll();
  for (spx_conn *c; (c = spx_byways->next()) != NULL;) {
    if (c->fd < 0) continue;
    if (c->full) spx_net_push(c);
    if (c->fd >= 0 && c->by_in) spx_net_pull(c, n);
    if (c->by) spx_byways->again(c->by);
  }
}
