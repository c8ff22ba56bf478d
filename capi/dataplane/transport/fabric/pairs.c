/* pairs.c - the pairs of this process that go over the fabric, or are about to: their offers, what
 * may be under way for each, and the table that tcp calls. */
#include "fabric_start.h"
#include "fabric.h"
#ifdef SPX_HAS_FABRIC
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define WINDOW     SPX_FABRIC_WINDOW
#define EACH       3       /* buffers for each message of a window */
#define QUESTIONS  2       /* without an answer, at most */
#define MISSED     10      /* watches for which messages may be missing */
#define NARROW     4       /* the window where many pairs share the endpoint */
#define IDLE_POLLS 16      /* then what has come is acknowledged */
#define LOOK_NS    1000000 /* ns to sleep where nothing wakes this process */
#define LATE_NS    1000000 /* what was under way has come by then, or never will */
#define FINISH_NS  1000000000

spx_fabric_state spx_fabric_moving = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                      .last = &spx_fabric_moving.first};
static spx_fabric_state *const f = &spx_fabric_moving;
static uint32_t room_pairs, used_pairs;
static uint32_t idle;
static _Atomic uint32_t polls;
static char said[256];

void spx_fabric_say(const char *fmt, ...)
{
  va_list list;
  va_start(list, fmt);
  vsnprintf(said, sizeof said, fmt, list);
  va_end(list);
}

const char *spx_fabric_said(void) { return said; }

static uint32_t buffers_of(uint32_t window) { return EACH * window + QUESTIONS; }

static int poll_all(void)
{
  pthread_mutex_lock(&f->mutex);
  atomic_fetch_add_explicit(&polls, 1, memory_order_relaxed);
  int n = spx_fabric_advance();
  idle = n ? 0 : idle + 1;
  if (f->n_owing && idle >= IDLE_POLLS) spx_fabric_acknowledge_all();
  for (uint32_t i = 0; f->n_waiting && i < f->n_pairs; i++)
    if (f->pairs[i] && f->pairs[i]->waits) spx_fabric_enqueue(f->pairs[i]);
  f->round_left = f->n_queued;
  pthread_mutex_unlock(&f->mutex);
  return n;
}

static spx_conn *next(void)
{
  pthread_mutex_lock(&f->mutex);
  spx_byway_pair *p = f->round_left ? f->first : NULL;
  if (p) {
    f->round_left--;
    uint32_t left = f->round_left;
    spx_fabric_dequeue(p);
    f->round_left = left;
    p->queued = false;
  }
  spx_conn *c = p ? p->c : NULL;
  pthread_mutex_unlock(&f->mutex);
  return c;
}

static void again(spx_byway_pair *p)
{
  if (!spx_fabric_has_come(p)) return;
  pthread_mutex_lock(&f->mutex);
  spx_fabric_enqueue(p);
  pthread_mutex_unlock(&f->mutex);
}

static uint64_t sleep_most(void)
{
  struct fid *fids[] = {&spx_fabric.cq->fid};
  pthread_mutex_lock(&f->mutex);
  spx_fabric_acknowledge_all();
  uint64_t most = LOOK_NS;
  if (f->n_held)
    most = 0;
  else if (spx_fabric.waits && !f->n_owing && !f->n_waiting && !f->n_unposted && !f->broken)
    most = fi_trywait(spx_fabric.fabric, fids, 1) == FI_SUCCESS ? UINT64_MAX : 0;
  pthread_mutex_unlock(&f->mutex);
  return most;
}

static void settle(void)
{
  pthread_mutex_lock(&f->mutex);
  spx_fabric_acknowledge_all();
  pthread_mutex_unlock(&f->mutex);
}

void spx_fabric_tick(void)
{
  static uint32_t before;
  uint32_t now = atomic_load_explicit(&polls, memory_order_relaxed);
  bool polled = now != before;
  before = now;
  if (polled || pthread_mutex_trylock(&f->mutex) != 0) return;
  int n = 0;
  if (spx_fabric.ep && used_pairs) {
    n = spx_fabric_advance();
    spx_fabric_acknowledge_all();
  }
  bool wakes = n && f->n_queued;
  pthread_mutex_unlock(&f->mutex);
  if (wakes) spx_ring_self();
}

/* Messages of one direction that do not arrive, and of the other one that are missing. */
static void watch(spx_byway_pair *p)
{
  bool waits = p->sent != p->arrived_there, moves = p->arrived_there != p->seen_there;
  p->seen_there = p->arrived_there;
  p->asked = waits && !moves ? p->asked : 0;
  if (waits && !moves && p->asked < QUESTIONS) {
    p->asked++;
    spx_fabric_acknowledge(p);
  }
  bool misses = (int32_t)(p->sent_there - p->arrived) > 0 && p->arrived == p->seen_arrived;
  p->seen_arrived = p->arrived;
  p->missed = misses ? p->missed + 1 : 0;
  if (p->missed >= MISSED) spx_fabric_fail(p, FI_ETIMEDOUT);
}

void spx_fabric_watch(void)
{
  bool wakes = false;
  pthread_mutex_lock(&f->mutex);
  for (uint32_t i = 0; !f->broken && spx_fabric.ep && i < f->n_pairs; i++) {
    if (!f->pairs[i] || !f->pairs[i]->accepted || f->pairs[i]->failed) continue;
    watch(f->pairs[i]);
    wakes |= f->pairs[i]->failed != 0;
  }
  pthread_mutex_unlock(&f->mutex);
  if (wakes) spx_ring_self();
}

/* ---- pairs ---- */

static uint32_t free_index(void)
{
  uint32_t i = 0;
  while (i < f->n_pairs && f->pairs[i]) i++;
  if (i < f->n_pairs || i < room_pairs) return i;
  uint32_t room = room_pairs ? 2 * room_pairs : 64;
  spx_byway_pair **more = realloc(f->pairs, room * sizeof(spx_byway_pair *));
  if (!more) return UINT32_MAX;
  f->pairs = more;
  room_pairs = room;
  return i;
}

/* How many messages may be under way to this end of one more pair; 0: there is no room for one. */
static uint32_t window_now(void)
{
  uint32_t most = (uint32_t)spx_fabric.info->rx_attr->size;
  if (f->needed + buffers_of(WINDOW) <= most / 2) return WINDOW;
  return f->needed + buffers_of(NARROW) <= most ? NARROW : 0;
}

static spx_byway_pair *make(spx_conn *c)
{
  uint32_t i = free_index(), window = window_now();
  spx_byway_pair *p = i < UINT32_MAX && window && !f->broken ? calloc(1, sizeof *p) : NULL;
  if (!p) {
    spx_fabric_say("%u pairs of processes have all buffers that the provider can have posted",
                   used_pairs);
    return NULL;
  }
  bool random = getrandom(p->token, sizeof p->token, 0) == (ssize_t)sizeof p->token;
  if (!random || !spx_fabric_post_for(f->needed + buffers_of(window))) {
    spx_fabric_say("no memory that devices can read and write: %s",
                   spx_fabric_text(spx_fabric_shortage()));
    free(p);
    return NULL;
  }
  f->needed += buffers_of(window);
  p->c = c;
  p->index = i;
  p->window = window;
  f->pairs[i] = p;
  if (i == f->n_pairs) f->n_pairs++;
  used_pairs++;
  return p;
}

static spx_byway_pair *begin(spx_conn *c)
{
  pthread_mutex_lock(&f->mutex);
  spx_byway_pair *p = make(c);
  pthread_mutex_unlock(&f->mutex);
  if (!p) spx_byway_declined(c);
  return p;
}

static void describe(const spx_byway_pair *p, spx_byway_offer *o)
{
  const spx_fabric_end *e = &spx_fabric;
  memset(o, 0, sizeof *o);
  o->form = SPX_FABRIC_FORM;
  o->protocol = e->info->ep_attr->protocol;
  o->format = e->info->addr_format;
  o->address_bytes = e->address_bytes;
  o->index = p->index;
  o->window = p->window;
  memcpy(o->token, p->token, sizeof o->token);
  snprintf(o->provider, sizeof o->provider, "%s", e->info->fabric_attr->prov_name);
  memcpy(o->address, e->address, e->address_bytes);
}

static bool accept_offer(spx_byway_pair *p, const spx_byway_offer *o)
{
  spx_byway_offer mine;
  describe(p, &mine);
  bool alike = o->form == mine.form && o->protocol == mine.protocol && o->format == mine.format &&
               o->address_bytes == mine.address_bytes &&
               strncmp(o->provider, mine.provider, sizeof o->provider) == 0;
  bool sound = o->address_bytes <= sizeof o->address && o->window > 0 && o->window <= WINDOW;
  pthread_mutex_lock(&f->mutex);
  int n = alike && sound ? fi_av_insert(spx_fabric.av, o->address, 1, &p->to, 0, NULL) : 0;
  p->accepted = n == 1;
  p->to_index = o->index;
  p->to_window = o->window;
  memcpy(p->to_token, o->token, sizeof p->to_token);
  if (!alike)
    spx_fabric_say("here it is %s, there %.*s (protocols %u and %u, addresses %u and %u)",
                   mine.provider, (int)sizeof o->provider, o->provider, mine.protocol, o->protocol,
                   mine.format, o->format);
  else if (n != 1)
    spx_fabric_say("the provider takes no further address (%s)", spx_fabric_text(n < 0 ? -n : 0));
  if (p->accepted) spx_stat.fabric_pairs++;
  pthread_mutex_unlock(&f->mutex);
  if (!p->accepted) spx_byway_declined(p->c);
  return p->accepted;
}

static void drop_pair(spx_byway_pair *p)
{
  pthread_mutex_lock(&f->mutex);
  if (p->queued) spx_fabric_dequeue(p);
  spx_fabric_waits(p, false);
  spx_fabric_owes(p, false);
  for (uint32_t i = 0; i < WINDOW; i++) {
    if (!p->come[i]) continue;
    f->n_held--;
    spx_fabric_post(p->come[i]);
  }
  f->needed -= buffers_of(p->window);
  f->pairs[p->index] = NULL;
  used_pairs--;
  p->dropped = true;
  spx_fabric_forget(p);
  pthread_mutex_unlock(&f->mutex);
}

static uint32_t unsent(const spx_byway_pair *p) { return p->sent - p->arrived_there; }
static bool has_failed(const spx_byway_pair *p) { return p->failed != 0; }

static bool drain(spx_byway_pair *p)
{
  pthread_mutex_lock(&f->mutex);
  for (uint64_t end = spx_now_ns() + LATE_NS; !spx_fabric_has_come(p) && spx_now_ns() < end;)
    spx_fabric_advance();
  bool come = spx_fabric_has_come(p);
  pthread_mutex_unlock(&f->mutex);
  return come;
}

static void finish(void)
{
  pthread_mutex_lock(&f->mutex);
  spx_fabric_acknowledge_all();
  for (uint64_t end = spx_now_ns() + FINISH_NS; f->n_flying && !f->broken && spx_now_ns() < end;)
    spx_fabric_advance();
  pthread_mutex_unlock(&f->mutex);
}

static void leave(void)
{
  pthread_mutex_lock(&f->mutex);
  spx_fabric_shut();
  free(f->pairs);
  f->pairs = NULL;
  f->n_pairs = room_pairs = used_pairs = f->needed = f->posted = f->n_unposted = f->n_flying =
      f->n_owing = 0;
  f->n_queued = f->round_left = f->n_waiting = f->n_held = 0;
  f->unposted = NULL;
  f->first = NULL;
  f->last = &f->first;
  f->broken = 0;
  pthread_mutex_unlock(&f->mutex);
}

const spx_byway spx_fabric_byway = {.begin = begin,
                                    .describe = describe,
                                    .accept = accept_offer,
                                    .send = spx_fabric_send,
                                    .receive = spx_fabric_receive,
                                    .unsent = unsent,
                                    .failed = has_failed,
                                    .drain = drain,
                                    .drop = drop_pair,
                                    .poll = poll_all,
                                    .next = next,
                                    .again = again,
                                    .sleep = sleep_most,
                                    .settle = settle,
                                    .finish = finish,
                                    .leave = leave};
#endif
