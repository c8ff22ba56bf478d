/* messages.c - a pair's stream as messages: cut, numbered, put back into order, acknowledged; and
 * what libfabric reports of them. fabric.h has the rules. Called under the mutex, but for send and
 * receive, which take it. */
#include "fabric.h"
#include "fabric_start.h"
#ifdef SPX_HAS_FABRIC
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define WINDOW    SPX_FABRIC_WINDOW
#define AT_ONCE   16  /* completions read by one call */
#define MOST_READ 256 /* by one poll */

static spx_fabric_state *const f = &spx_fabric_moving;

void spx_fabric_enqueue(spx_byway_pair *p)
{
  if (p->queued || p->dropped) return;
  p->queued = true;
  p->next_queued = NULL;
  *f->last = p;
  f->last = &p->next_queued;
  f->n_queued++;
}

void spx_fabric_dequeue(const spx_byway_pair *p)
{
  spx_byway_pair **at = &f->first;
  while (*at != p) at = &(*at)->next_queued;
  *at = p->next_queued;
  if (f->last == &p->next_queued) f->last = at;
  f->n_queued--;
  if (f->round_left > f->n_queued) f->round_left = f->n_queued;
}

void spx_fabric_fail(spx_byway_pair *p, int error)
{
  if (p->failed || p->dropped) return;
  p->failed = error ? error : FI_EOTHER;
  spx_fabric_say("%s, domain %s: %s", spx_fabric.info->fabric_attr->prov_name,
                 spx_fabric.info->domain_attr->name, spx_fabric_text(p->failed));
  spx_fabric_enqueue(p);
}

static void fail_all(int error)
{
  f->broken = error;
  for (uint32_t i = 0; i < f->n_pairs; i++)
    if (f->pairs[i]) spx_fabric_fail(f->pairs[i], error);
}

/* ---- buffers to be received into ---- */

bool spx_fabric_post(spx_fabric_buffer *b)
{
  b->sends = false;
  b->read = 0;
  ssize_t rc =
      fi_recv(spx_fabric.ep, b->head, SPX_FABRIC_MESSAGE, b->desc, FI_ADDR_UNSPEC, &b->context);
  if (rc == 0) return true;
  if (rc != -FI_EAGAIN) fail_all((int)-rc);
  b->next = f->unposted;
  f->unposted = b;
  f->n_unposted++;
  return false;
}

static void post_again(void)
{
  for (uint32_t n = f->n_unposted; n > 0; n--) {
    spx_fabric_buffer *b = f->unposted;
    f->unposted = b->next;
    f->n_unposted--;
    if (!spx_fabric_post(b)) return;
  }
}

/* So many are posted, or will be. False: no memory. */
bool spx_fabric_post_for(uint32_t n)
{
  while (f->posted < n) {
    spx_fabric_buffer *b = spx_fabric_take();
    if (!b) return false;
    f->posted++;
    spx_fabric_post(b);
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
  ssize_t rc =
      fi_send(spx_fabric.ep, b->head, sizeof *b->head + bytes, b->desc, p->to, &b->context);
  if (rc == 0) {
    p->in_flight++;
    f->n_flying++;
    p->acked_read = p->read;
    p->acked_arrived = p->arrived;
    return true;
  }
  spx_fabric_put(b);
  if (rc != -FI_EAGAIN) spx_fabric_fail(p, (int)-rc);
  return false;
}

void spx_fabric_owes(spx_byway_pair *p, bool owes)
{
  if (p->owes == owes) return;
  p->owes = owes;
  if (owes)
    f->n_owing++;
  else
    f->n_owing--;
}

void spx_fabric_acknowledge(spx_byway_pair *p)
{
  if (p->failed || f->broken) {
    spx_fabric_owes(p, false);
    return;
  }
  spx_fabric_buffer *b = p->accepted ? spx_fabric_take() : NULL;
  if (b && launch(p, b, SPX_FABRIC_ACK, 0)) spx_fabric_owes(p, false);
}

void spx_fabric_acknowledge_all(void)
{
  for (uint32_t i = 0; f->n_owing && i < f->n_pairs; i++)
    if (f->pairs[i] && f->pairs[i]->owes) spx_fabric_acknowledge(f->pairs[i]);
}

void spx_fabric_waits(spx_byway_pair *p, bool waits)
{
  if (p->waits == waits) return;
  p->waits = waits;
  if (waits)
    f->n_waiting++;
  else
    f->n_waiting--;
}

/* Copies up to n bytes from behind *at of the pieces. */
static uint32_t gather(uint8_t *to, uint32_t n, const struct iovec **v, int *left, size_t *at)
{
  uint32_t done = 0;
  while (done<n && * left> 0) {
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
  spx_fabric_waits(p, false);
  while (n > 0 && !p->failed && p->sent - p->read_there < p->to_window) {
    spx_fabric_buffer *b = spx_fabric_take();
    if (!b) {
      spx_fabric_waits(p, true);
      break;
    }
    uint32_t bytes = gather((uint8_t *)(b->head + 1), SPX_FABRIC_BODY, &v, &n, &at);
    if (!launch(p, b, SPX_FABRIC_DATA, bytes)) {
      spx_fabric_waits(p, !p->failed);
      break;
    }
    p->sent++;
    spx_fabric_owes(p, false);
    all += bytes;
  }
  if (all > 0) return all;
  errno = p->failed ? ECOMM : EAGAIN;
  return -1;
}

ssize_t spx_fabric_send(spx_byway_pair *p, const struct iovec *v, int n)
{
  pthread_mutex_lock(&f->mutex);
  ssize_t sent = send_some(p, v, n);
  int why = errno;
  pthread_mutex_unlock(&f->mutex);
  errno = why;
  return sent;
}

/* ---- receiving ---- */

/* What the other end has, as it reports. False: it can not be. */
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
  spx_byway_pair *p = bytes >= sizeof *h && h->index < f->n_pairs ? f->pairs[h->index] : NULL;
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
    spx_fabric_post(b);
    return;
  }
  spx_fabric_enqueue(p);
  if (!data) {
    spx_fabric_post(b);
    return;
  }
  spx_stat.fabric_received++;
  p->come[h->number % WINDOW] = b;
  f->n_held++;
  while (p->arrived - p->read < p->window && p->come[p->arrived % WINDOW]) p->arrived++;
  if (p->arrived != p->acked_arrived) spx_fabric_owes(p, true);
}

bool spx_fabric_has_come(const spx_byway_pair *p)
{
  return __atomic_load_n(&p->come[p->read % WINDOW], __ATOMIC_RELAXED) != NULL;
}

/* Copies from the messages into one piece of memory. */
static size_t scatter(spx_byway_pair *p, uint8_t *to, size_t n)
{
  size_t done = 0;
  while (done < n && spx_fabric_has_come(p)) {
    spx_fabric_buffer *b = p->come[p->read % WINDOW];
    size_t part = b->head->bytes - b->read;
    if (part > n - done) part = n - done;
    memcpy(to + done, (uint8_t *)(b->head + 1) + b->read, part);
    done += part;
    b->read += (uint32_t)part;
    if (b->read < b->head->bytes) continue;
    p->come[p->read % WINDOW] = NULL;
    p->read++;
    f->n_held--;
    spx_fabric_post(b);
  }
  return done;
}

ssize_t spx_fabric_receive(spx_byway_pair *p, const struct iovec *v, int n)
{
  size_t all = 0;
  if (!spx_fabric_has_come(p)) {
    errno = EAGAIN;
    return -1;
  }
  pthread_mutex_lock(&f->mutex);
  for (; n > 0; v++, n--) {
    size_t part = scatter(p, v->iov_base, v->iov_len);
    all += part;
    if (part < v->iov_len) break;
  }
  if (p->read != p->acked_read) spx_fabric_owes(p, true);
  if (p->read - p->acked_read >= p->window / 2) spx_fabric_acknowledge(p);
  pthread_mutex_unlock(&f->mutex);
  return (ssize_t)all;
}

/* ---- completions ---- */

void spx_fabric_forget(spx_byway_pair *p)
{
  if (p->dropped && p->in_flight == 0) free(p);
}

static void sent_is_over(spx_fabric_buffer *b, int error)
{
  spx_byway_pair *p = b->pair;
  p->in_flight--;
  f->n_flying--;
  if (error) spx_fabric_fail(p, error);
  spx_fabric_put(b);
  spx_fabric_forget(p);
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
    spx_fabric_post(b); /* too long a message, a stranger's; nothing of a pair is */
  else
    fail_all(e.err);
  return true;
}

/* Moves what can be moved now; the number of completions. */
int spx_fabric_advance(void)
{
  struct fi_cq_msg_entry list[AT_ONCE];
  int all = 0;
  if (SPX_UNLIKELY(f->broken != 0)) return 0;
  if (SPX_UNLIKELY(f->unposted != NULL)) post_again();
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
#endif
