/* pairs.c - the streams of pairs as messages of one endpoint.
 *
 * A stream is cut into messages of up to SPX_FABRIC_BODY bytes, each with a number, and with the
 * secret that its receiver has given the sender over the authenticated connection. A message with
 * no secret of now, a stranger's or one of a connection that has ended, is counted and dropped.
 * Providers may deliver in any order: numbers put them back into it.
 *
 * For each pair a process posts three times as many buffers as it lets the other end have messages
 * under way: the others are for acknowledgements, two for each message at most (that it has arrived,
 * that it was read), and a few for questions. So whoever sends never finds the receiver without a
 * buffer.
 *
 * A provider that has taken a message delivers it, or reports an error. So that one which does
 * neither ends as an error, and not as a job that hangs, a sender whose messages do not arrive says
 * now and then how many it has sent, and a receiver that misses some for long gives the pair up.
 *
 * All of it is under one mutex: threads of the engine send what the program has left behind
 * (net_hand_over.c), and move messages while it makes no calls (spx_fabric_tick). */
#include "fabric_start.h"
#include "fabric.h"
#ifdef SPX_HAS_FABRIC
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>

#define WINDOW     SPX_FABRIC_WINDOW
#define EACH       3   /* buffers for each message of a window */
#define QUESTIONS  2   /* without an answer, at most */
#define MISSED     10  /* watches for which messages may be missing */
#define NARROW     4   /* the window where many pairs share the endpoint */
#define AT_ONCE    16  /* completions read by one call */
#define MOST_READ  256 /* by one poll */
#define IDLE_POLLS 16  /* then what has come is acknowledged */
#define LOOK_NS    1000000 /* ns to sleep where nothing wakes this process */
#define LATE_NS    1000000 /* what was under way has come by then, or never will */
#define FINISH_NS  1000000000

struct spx_byway_pair {
  spx_conn *c;
  uint32_t index;
  uint64_t token[2];
  /* the other end */
  fi_addr_t to;
  uint32_t to_index, to_window;
  uint64_t to_token[2];
  bool accepted;
  bool dropped; /* freed when nothing of it is under way */
  bool queued, waits, owes;
  spx_byway_pair *next_queued;
  int failed; /* an errno of libfabric */
  uint32_t in_flight; /* sends that libfabric has not completed */
  /* numbers of messages, modulo 2^32 */
  uint32_t sent, read_there, arrived_there;
  uint32_t window, read, arrived, told_read, told_arrived;
  spx_fabric_buffer *come[WINDOW]; /* by number */
  /* the watch: the other end has sent so many; what it was at the last look; looks since then */
  uint32_t sent_there;
  uint32_t seen_there, seen_arrived, asked, missed;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static spx_byway_pair **pairs;
static uint32_t n_pairs, room_pairs, used_pairs;
static uint32_t needed, posted;   /* buffers to be received into */
static spx_fabric_buffer *unposted;
static uint32_t n_unposted;
static spx_byway_pair *first, **last = &first; /* for next() */
static uint32_t n_queued, round_left;
static uint32_t n_waiting, n_owing, n_held, n_flying;
static uint32_t idle;
static _Atomic uint32_t polls;
static int broken; /* the endpoint: an errno of libfabric */
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

static void enqueue(spx_byway_pair *p)
{
  if (p->queued || p->dropped) return;
  p->queued = true;
  p->next_queued = NULL;
  *last = p;
  last = &p->next_queued;
  n_queued++;
}

static void dequeue(const spx_byway_pair *p)
{
  spx_byway_pair **at = &first;
  while (*at != p) at = &(*at)->next_queued;
  *at = p->next_queued;
  if (last == &p->next_queued) last = at;
  n_queued--;
  if (round_left > n_queued) round_left = n_queued;
}

static void fail(spx_byway_pair *p, int error)
{
  if (p->failed || p->dropped) return;
  p->failed = error ? error : FI_EOTHER;
  spx_fabric_say("%s, domain %s: %s", spx_fabric.info->fabric_attr->prov_name,
                 spx_fabric.info->domain_attr->name, spx_fabric_text(p->failed));
  enqueue(p);
}

static void fail_all(int error)
{
  broken = error;
  for (uint32_t i = 0; i < n_pairs; i++)
    if (pairs[i]) fail(pairs[i], error);
}

/* ---- buffers to be received into ---- */

static bool post(spx_fabric_buffer *b)
{
  b->sends = false;
  b->read = 0;
  ssize_t rc = fi_recv(spx_fabric.ep, b->head, SPX_FABRIC_MESSAGE, b->desc, FI_ADDR_UNSPEC,
                       &b->context);
  if (rc == 0) return true;
  if (rc != -FI_EAGAIN) fail_all((int)-rc);
  b->next = unposted;
  unposted = b;
  n_unposted++;
  return false;
}

static void post_again(void)
{
  for (uint32_t n = n_unposted; n > 0; n--) {
    spx_fabric_buffer *b = unposted;
    unposted = b->next;
    n_unposted--;
    if (!post(b)) return;
  }
}

/* So many are posted, or will be. False: no memory. */
static bool post_for(uint32_t n)
{
  while (posted < n) {
    spx_fabric_buffer *b = spx_fabric_take();
    if (!b) return false;
    posted++;
    post(b);
  }
  return true;
}

/* ---- sending ---- */

/* Sends the message in b, of which all but the head is written. False: not now, or never. */
static bool launch(spx_byway_pair *p, spx_fabric_buffer *b, uint32_t kind, uint32_t bytes)
{
  *b->head = (spx_fabric_head){.token = {p->to_token[0], p->to_token[1]},
                               .index = p->to_index,
                               .kind = kind,
                               .number = p->sent,
                               .read = p->read,
                               .arrived = p->arrived,
                               .bytes = bytes};
  b->sends = true;
  b->pair = p;
  ssize_t rc = fi_send(spx_fabric.ep, b->head, sizeof *b->head + bytes, b->desc, p->to, &b->context);
  if (rc == 0) {
    p->in_flight++;
    n_flying++;
    p->told_read = p->read;
    p->told_arrived = p->arrived;
    return true;
  }
  spx_fabric_put(b);
  if (rc != -FI_EAGAIN) fail(p, (int)-rc);
  return false;
}

static void set_owing(spx_byway_pair *p, bool owes)
{
  if (p->owes == owes) return;
  p->owes = owes;
  if (owes)
    n_owing++;
  else
    n_owing--;
}

static void acknowledge(spx_byway_pair *p)
{
  if (p->failed || broken) {
    set_owing(p, false);
    return;
  }
  spx_fabric_buffer *b = p->accepted ? spx_fabric_take() : NULL;
  if (b && launch(p, b, SPX_FABRIC_ACK, 0)) set_owing(p, false);
}

static void acknowledge_all(void)
{
  for (uint32_t i = 0; n_owing && i < n_pairs; i++)
    if (pairs[i] && pairs[i]->owes) acknowledge(pairs[i]);
}

static void set_waiting(spx_byway_pair *p, bool waits)
{
  if (p->waits == waits) return;
  p->waits = waits;
  if (waits)
    n_waiting++;
  else
    n_waiting--;
}

/* Copies up to n bytes from behind *at of the pieces. */
static uint32_t gather(uint8_t *to, uint32_t n, const struct iovec **v, int *left, size_t *at)
{
  uint32_t done = 0;
  while (done < n && *left > 0) {
    size_t part = (*v)->iov_len - *at;
    if (part > n - done) part = n - done;
    memcpy(to + done, (const uint8_t *)(*v)->iov_base + *at, part);
    done += (uint32_t)part;
    *at += part;
    if (*at == (*v)->iov_len) ++*v, --*left, *at = 0;
  }
  return done;
}

static ssize_t send_some(spx_byway_pair *p, const struct iovec *v, int n)
{
  size_t at = 0;
  ssize_t all = 0;
  while (n > 0 && v->iov_len == 0) v++, n--;
  set_waiting(p, false);
  while (n > 0 && !p->failed && p->sent - p->read_there < p->to_window) {
    spx_fabric_buffer *b = spx_fabric_take();
    if (!b) {
      set_waiting(p, true);
      break;
    }
    uint32_t bytes = gather((uint8_t *)(b->head + 1), SPX_FABRIC_BODY, &v, &n, &at);
    if (!launch(p, b, SPX_FABRIC_DATA, bytes)) {
      set_waiting(p, !p->failed);
      break;
    }
    p->sent++;
    set_owing(p, false);
    all += bytes;
  }
  if (all > 0) return all;
  errno = p->failed ? ECOMM : EAGAIN;
  return -1;
}

static ssize_t send_bytes(spx_byway_pair *p, const struct iovec *v, int n)
{
  pthread_mutex_lock(&mutex);
  ssize_t sent = send_some(p, v, n);
  int why = errno;
  pthread_mutex_unlock(&mutex);
  errno = why;
  return sent;
}

/* ---- receiving ---- */

/* What the other end has, as it says. False: it can not be. */
static bool hear(spx_byway_pair *p, const spx_fabric_head *h)
{
  uint32_t read = h->read - p->read_there, arrived = h->arrived - p->arrived_there;
  /* an older message may come later */
  bool older_read = (int32_t)read < 0, older_arrived = (int32_t)arrived < 0;
  if (!older_read && h->read - p->read_there > p->sent - p->read_there) return false;
  if (!older_arrived && h->arrived - p->arrived_there > p->sent - p->arrived_there) return false;
  uint32_t sent = h->number + (h->kind == SPX_FABRIC_DATA);
  if ((int32_t)(sent - p->sent_there) > 0) p->sent_there = sent;
  if (!older_read) p->read_there = h->read;
  if (!older_arrived) p->arrived_there = h->arrived;
  return true;
}

/* The pair that a message of so many bytes is for; NULL: none. */
static spx_byway_pair *whose(const spx_fabric_head *h, size_t bytes)
{
  spx_byway_pair *p = bytes >= sizeof *h && h->index < n_pairs ? pairs[h->index] : NULL;
  bool ours = p && ((h->token[0] ^ p->token[0]) | (h->token[1] ^ p->token[1])) == 0;
  return ours && h->bytes == bytes - sizeof *h ? p : NULL;
}

static void on_message(spx_fabric_buffer *b, size_t bytes)
{
  const spx_fabric_head *h = b->head;
  spx_byway_pair *p = whose(h, bytes);
  bool data = p && h->kind == SPX_FABRIC_DATA && h->number - p->read < p->window && h->bytes > 0 &&
              !p->come[h->number % WINDOW];
  bool sound = data || (p && h->kind == SPX_FABRIC_ACK && h->bytes == 0);
  if (!sound || !hear(p, h)) {
    spx_stat.fabric_refused++;
    post(b);
    return;
  }
  enqueue(p);
  if (!data) {
    post(b);
    return;
  }
  spx_stat.fabric_received++;
  p->come[h->number % WINDOW] = b;
  n_held++;
  while (p->arrived - p->read < p->window && p->come[p->arrived % WINDOW]) p->arrived++;
  if (p->arrived != p->told_arrived) set_owing(p, true);
}

static bool has_come(const spx_byway_pair *p)
{
  return __atomic_load_n(&p->come[p->read % WINDOW], __ATOMIC_RELAXED) != NULL;
}

/* Copies from the messages into one piece of memory. */
static size_t scatter(spx_byway_pair *p, uint8_t *to, size_t n)
{
  size_t done = 0;
  while (done < n && has_come(p)) {
    spx_fabric_buffer *b = p->come[p->read % WINDOW];
    size_t part = b->head->bytes - b->read;
    if (part > n - done) part = n - done;
    memcpy(to + done, (uint8_t *)(b->head + 1) + b->read, part);
    done += part;
    b->read += (uint32_t)part;
    if (b->read < b->head->bytes) continue;
    p->come[p->read % WINDOW] = NULL;
    p->read++;
    n_held--;
    post(b);
  }
  return done;
}

static ssize_t receive_bytes(spx_byway_pair *p, const struct iovec *v, int n)
{
  size_t all = 0;
  if (!has_come(p)) {
    errno = EAGAIN;
    return -1;
  }
  pthread_mutex_lock(&mutex);
  for (; n > 0; v++, n--) {
    size_t part = scatter(p, v->iov_base, v->iov_len);
    all += part;
    if (part < v->iov_len) break;
  }
  if (p->read != p->told_read) set_owing(p, true);
  if (p->read - p->told_read >= p->window / 2) acknowledge(p);
  pthread_mutex_unlock(&mutex);
  return (ssize_t)all;
}

/* ---- completions ---- */

static void forget(spx_byway_pair *p)
{
  if (p->dropped && p->in_flight == 0) free(p);
}

static void sent_is_over(spx_fabric_buffer *b, int error)
{
  spx_byway_pair *p = b->pair;
  p->in_flight--;
  n_flying--;
  if (error) fail(p, error);
  spx_fabric_put(b);
  forget(p);
}

/* One that ended with an error. */
static bool read_error(void)
{
  struct fi_cq_err_entry e = {.op_context = NULL};
  if (fi_cq_readerr(spx_fabric.cq, &e, 0) <= 0) return false;
  spx_fabric_buffer *b = e.op_context;
  if (b && b->sends)
    sent_is_over(b, e.err);
  else if (b)
    post(b); /* too long a message, a stranger's; nothing of a pair is */
  else
    fail_all(e.err);
  return true;
}

/* Moves what can be moved now; the number of completions. */
static int advance(void)
{
  struct fi_cq_msg_entry list[AT_ONCE];
  int all = 0;
  if (SPX_UNLIKELY(broken != 0)) return 0;
  if (SPX_UNLIKELY(unposted != NULL)) post_again();
  while (all < MOST_READ) {
    ssize_t n = fi_cq_read(spx_fabric.cq, list, AT_ONCE);
    if (n == -FI_EAVAIL && read_error()) {
      all++;
      continue;
    }
    if (n < 0 && n != -FI_EAGAIN && n != -FI_EAVAIL) fail_all((int)-n);
    if (n <= 0) break;
    for (ssize_t i = 0; i < n; i++) {
      spx_fabric_buffer *b = list[i].op_context;
      if (b->sends)
        sent_is_over(b, 0);
      else
        on_message(b, list[i].len);
    }
    all += (int)n;
    if (n < AT_ONCE) break;
  }
  return all;
}

static int poll_all(void)
{
  pthread_mutex_lock(&mutex);
  atomic_fetch_add_explicit(&polls, 1, memory_order_relaxed);
  int n = advance();
  idle = n ? 0 : idle + 1;
  if (n_owing && idle >= IDLE_POLLS) acknowledge_all();
  for (uint32_t i = 0; n_waiting && i < n_pairs; i++)
    if (pairs[i] && pairs[i]->waits) enqueue(pairs[i]);
  round_left = n_queued;
  pthread_mutex_unlock(&mutex);
  return n;
}

static spx_conn *next(void)
{
  pthread_mutex_lock(&mutex);
  spx_byway_pair *p = round_left ? first : NULL;
  if (p) {
    round_left--;
    uint32_t left = round_left;
    dequeue(p);
    round_left = left;
    p->queued = false;
  }
  spx_conn *c = p ? p->c : NULL;
  pthread_mutex_unlock(&mutex);
  return c;
}

static void again(spx_byway_pair *p)
{
  if (!has_come(p)) return;
  pthread_mutex_lock(&mutex);
  enqueue(p);
  pthread_mutex_unlock(&mutex);
}

static uint64_t sleep_most(void)
{
  struct fid *fids[] = {&spx_fabric.cq->fid};
  pthread_mutex_lock(&mutex);
  acknowledge_all();
  uint64_t most = LOOK_NS;
  if (n_held)
    most = 0;
  else if (spx_fabric.waits && !n_owing && !n_waiting && !n_unposted && !broken)
    most = fi_trywait(spx_fabric.fabric, fids, 1) == FI_SUCCESS ? UINT64_MAX : 0;
  pthread_mutex_unlock(&mutex);
  return most;
}

static void settle(void)
{
  pthread_mutex_lock(&mutex);
  acknowledge_all();
  pthread_mutex_unlock(&mutex);
}

void spx_fabric_tick(void)
{
  static uint32_t before;
  uint32_t now = atomic_load_explicit(&polls, memory_order_relaxed);
  bool polled = now != before;
  before = now;
  if (polled || pthread_mutex_trylock(&mutex) != 0) return;
  int n = 0;
  if (spx_fabric.ep && used_pairs) {
    n = advance();
    acknowledge_all();
  }
  bool wakes = n && n_queued;
  pthread_mutex_unlock(&mutex);
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
    acknowledge(p);
  }
  bool misses = (int32_t)(p->sent_there - p->arrived) > 0 && p->arrived == p->seen_arrived;
  p->seen_arrived = p->arrived;
  p->missed = misses ? p->missed + 1 : 0;
  if (p->missed >= MISSED) fail(p, FI_ETIMEDOUT);
}

void spx_fabric_watch(void)
{
  bool wakes = false;
  pthread_mutex_lock(&mutex);
  for (uint32_t i = 0; !broken && spx_fabric.ep && i < n_pairs; i++) {
    if (!pairs[i] || !pairs[i]->accepted || pairs[i]->failed) continue;
    watch(pairs[i]);
    wakes |= pairs[i]->failed != 0;
  }
  pthread_mutex_unlock(&mutex);
  if (wakes) spx_ring_self();
}

/* ---- pairs ---- */

static uint32_t free_index(void)
{
  uint32_t i = 0;
  while (i < n_pairs && pairs[i]) i++;
  if (i < n_pairs || i < room_pairs) return i;
  uint32_t room = room_pairs ? 2 * room_pairs : 64;
  spx_byway_pair **more = realloc(pairs, room * sizeof(spx_byway_pair *));
  if (!more) return UINT32_MAX;
  pairs = more;
  room_pairs = room;
  return i;
}

/* How many messages may be under way to this end of one more pair; 0: there is no room for one. */
static uint32_t window_now(void)
{
  uint32_t most = (uint32_t)spx_fabric.info->rx_attr->size;
  if (needed + buffers_of(WINDOW) <= most / 2) return WINDOW;
  return needed + buffers_of(NARROW) <= most ? NARROW : 0;
}

static spx_byway_pair *make(spx_conn *c)
{
  uint32_t i = free_index(), window = window_now();
  spx_byway_pair *p = i < UINT32_MAX && window && !broken ? calloc(1, sizeof *p) : NULL;
  if (!p) {
    spx_fabric_say("%u pairs of processes have all buffers that the provider can have posted",
                   used_pairs);
    return NULL;
  }
  bool random = getrandom(p->token, sizeof p->token, 0) == (ssize_t)sizeof p->token;
  if (!random || !post_for(needed + buffers_of(window))) {
    spx_fabric_say("no memory that devices can read and write: %s",
                   spx_fabric_text(spx_fabric_shortage()));
    free(p);
    return NULL;
  }
  needed += buffers_of(window);
  p->c = c;
  p->index = i;
  p->window = window;
  pairs[i] = p;
  if (i == n_pairs) n_pairs++;
  used_pairs++;
  return p;
}

static spx_byway_pair *begin(spx_conn *c)
{
  pthread_mutex_lock(&mutex);
  spx_byway_pair *p = make(c);
  pthread_mutex_unlock(&mutex);
  if (!p) spx_net_tell(SPX_NET_BYWAY | c->peer, c->life);
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
  pthread_mutex_lock(&mutex);
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
  pthread_mutex_unlock(&mutex);
  if (!p->accepted) spx_net_tell(SPX_NET_BYWAY | p->c->peer, p->c->life);
  return p->accepted;
}

static void drop_pair(spx_byway_pair *p)
{
  pthread_mutex_lock(&mutex);
  if (p->queued) dequeue(p);
  set_waiting(p, false);
  set_owing(p, false);
  for (uint32_t i = 0; i < WINDOW; i++) {
    if (!p->come[i]) continue;
    n_held--;
    post(p->come[i]);
  }
  needed -= buffers_of(p->window);
  pairs[p->index] = NULL;
  used_pairs--;
  p->dropped = true;
  forget(p);
  pthread_mutex_unlock(&mutex);
}

static uint32_t unsent(const spx_byway_pair *p) { return p->sent - p->arrived_there; }
static bool has_failed(const spx_byway_pair *p) { return p->failed != 0; }

static bool drain(spx_byway_pair *p)
{
  pthread_mutex_lock(&mutex);
  for (uint64_t end = spx_now_ns() + LATE_NS; !has_come(p) && spx_now_ns() < end;) advance();
  bool come = has_come(p);
  pthread_mutex_unlock(&mutex);
  return come;
}

static void finish(void)
{
  pthread_mutex_lock(&mutex);
  acknowledge_all();
  for (uint64_t end = spx_now_ns() + FINISH_NS; n_flying && !broken && spx_now_ns() < end;)
    advance();
  pthread_mutex_unlock(&mutex);
}

static void leave(void)
{
  pthread_mutex_lock(&mutex);
  spx_fabric_shut();
  free(pairs);
  pairs = NULL;
  n_pairs = room_pairs = used_pairs = needed = posted = n_unposted = n_flying = n_owing = 0;
  n_queued = round_left = n_waiting = n_held = 0;
  unposted = NULL;
  first = NULL;
  last = &first;
  broken = 0;
  pthread_mutex_unlock(&mutex);
}

const spx_byway spx_fabric_byway = {.begin = begin,
                                    .describe = describe,
                                    .accept = accept_offer,
                                    .send = send_bytes,
                                    .receive = receive_bytes,
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
