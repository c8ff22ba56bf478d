/* part.c - partitioned communication over messages. MPI-5.0, chapter 5.
 *
 * MPI_Psend_init announces itself to the receiver in one short message (context SPX_CTX_PART, the
 * user's tag), which MPI_Precv_init receives: so the order of the initializations decides which
 * belong together, by the matching rules of all messages. It has a number that no other partitioned
 * send of the process has, which is in the tags of the data (context SPX_CTX_PART_DATA): message m
 * holds partitions [m * group, (m + 1) * group) of the sender. group is 1 up to MESSAGES_MAX
 * partitions. A message leaves when its last partition is ready, whether the receiver has started
 * or not. The receiver, whose partitions may be others, derives from the bytes which of its own are
 * whole. The messages are persistent requests, started again by each MPI_Start. */
#include <stdlib.h>
#include "dp.h"
#include "part.h"

#define MESSAGES_BITS 12
#define MESSAGES_MAX  (1 << MESSAGES_BITS)
#define SERIAL_MASK   ((1u << (31 - MESSAGES_BITS)) - 1)

typedef struct {
  uint64_t serial;
  uint64_t bytes; /* of a partition of the sender */
  uint64_t partitions;
} intro;

typedef struct {
  spx_request *r; /* NULL: there is no peer */
  int32_t left;   /* send: partitions that are not ready yet */
  /* receive: where the message goes when it does not end with an element; else NULL */
  char *bounce;
} message;

typedef struct part {
  spx_poller poller;
  struct part *next; /* sends: list of all of the process */
  spx_request *user;
  spx_request *hello; /* receive: of the intro, until it has come */
  intro *from;        /* receive: the intro's memory */
  int polling;        /* the poller is registered */
  uint64_t bytes;     /* of one of our partitions */
  int32_t partitions;
  int32_t unready; /* send: partitions that are not ready yet */
  uint8_t *ready;  /* send: by partition */
  int32_t n;       /* messages; 0: not known yet */
  int32_t settled; /* messages below this one are over */
  int32_t group;   /* partitions of the sender in a message */
  uint64_t step;   /* bytes of a message, but the last may have less */
  message *m;
  int failed; /* message whose error is the operation's, or -1 */
} part;

static uint64_t serials; /* given out so far */
static part *sends;

static spx_type *byte_type(void) { return (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE); }

/* ---- messages ---- */

static void plan_messages(part *p, uint64_t partitions, uint64_t bytes)
{
  uint64_t group = (partitions + MESSAGES_MAX - 1) / MESSAGES_MAX;
  p->group = (int32_t)group;
  p->n = (int32_t)((partitions + group - 1) / group);
  p->step = group * bytes;
}

static int no_memory(void)
{
  spx_detail("no memory for a partitioned operation");
  return MPI_ERR_NO_MEM;
}

/* The message's request, prepared. */
static int make_message(part *p, int32_t i, spx_req_kind kind, void *buf, int64_t count,
                        spx_type *t)
{
  spx_request *u = p->user;
  int32_t tag = (int32_t)(p->from->serial << MESSAGES_BITS) | i;
  int err = spx_persistent(kind, buf, count, t, u->want_src, tag, u->comm, SPX_CTX_PART_DATA,
                           SPX_M_STANDARD, &p->m[i].r);
  if (err == MPI_SUCCESS) p->m[i].r->flags |= SPX_RF_INTERNAL;
  return err;
}

static int make_sends(part *p)
{
  spx_request *u = p->user;
  if (!(p->m = calloc((size_t)p->n, sizeof *p->m))) return no_memory();
  int64_t each = u->count / p->partitions;
  for (int32_t i = 0; i < p->n && u->want_src != MPI_PROC_NULL; i++) {
    int64_t first = (int64_t)i * p->group;
    int64_t parts = first + p->group <= p->partitions ? p->group : p->partitions - first;
    char *at = (char *)u->buf + first * each * u->type->extent;
    int err = make_message(p, i, SPX_R_SEND, at, parts * each, u->type);
    if (err != MPI_SUCCESS) return err;
  }
  return MPI_SUCCESS;
}

/* The receive of bytes [at, at + n) of the whole. */
static int make_receive(part *p, int32_t i, uint64_t at, uint64_t n)
{
  spx_request *u = p->user;
  spx_type *t = u->type;
  char *to = (char *)u->buf;
  int64_t count = (int64_t)n;
  uint64_t size = (uint64_t)t->size;
  if (t->flags & SPX_T_CONTIG) {
    to += at;
    t = byte_type();
  } else if (size && at % size == 0 && n % size == 0) {
    to += (int64_t)(at / size) * t->extent;
    count = (int64_t)(n / size);
  } else {
    if (!(to = p->m[i].bounce = malloc(n ? n : 1))) return no_memory();
    t = byte_type();
  }
  return make_message(p, i, SPX_R_RECV, to, count, t);
}

static void too_large(const part *p)
{
  const intro *in = p->from;
  spx_detail("the sender's buffer has %llu bytes (%llu partitions), the receiver's %llu (%d "
             "partitions): they must be "
             "of one size",
             (unsigned long long)(in->partitions * in->bytes), (unsigned long long)in->partitions,
             (unsigned long long)spx_capacity(p->user), p->partitions);
}

static uint64_t sent(const part *p) { return p->from->partitions * p->from->bytes; }

/* The intro has come. Both buffers ought to be of one size (5.2.1). If the sender's is smaller,
 * what it has comes, as in a plain receive; if it is larger, messages are cut off or come to
 * nothing, so that the sender can complete. */
static int make_receives(part *p)
{
  const intro *in = p->from;
  bool sound = p->hello->full == sizeof *in && in->serial <= SERIAL_MASK && in->partitions > 0 &&
               in->partitions <= INT32_MAX && in->bytes <= (uint64_t)INT64_MAX / in->partitions;
  if (!sound) {
    spx_detail("what the sender says of its partitions makes no sense: is libspx of the same "
               "version on all hosts?");
    return MPI_ERR_OTHER;
  }
  uint64_t theirs = sent(p), room = spx_capacity(p->user);
  plan_messages(p, in->partitions, in->bytes);
  p->settled = p->n;
  if (!(p->m = calloc((size_t)p->n, sizeof *p->m))) return no_memory();
  for (int32_t i = 0; i < p->n; i++) {
    uint64_t at = (uint64_t)i * p->step;
    uint64_t end = at + p->step <= theirs ? at + p->step : theirs;
    int err = make_receive(p, i, at <= room ? at : room,
                           end <= room  ? end - at
                           : at <= room ? room - at
                                        : 0);
    if (err != MPI_SUCCESS) return err;
  }
  return MPI_SUCCESS;
}

static void free_messages(part *p)
{
  for (int32_t i = 0; p->m && i < p->n; i++) {
    if (p->m[i].r) spx_request_free(p->m[i].r);
    free(p->m[i].bounce);
  }
  free(p->m);
  p->m = NULL;
}

/* ---- progress; all of it with the lock held ---- */

/* Processes completed messages, in order: true when all are complete. */
static bool settle(part *p)
{
  while (p->settled < p->n) {
    message *m = &p->m[p->settled];
    if (m->r && !spx_is_done(m->r)) return false;
    if (m->r && m->r->error != MPI_SUCCESS && p->failed < 0) p->failed = p->settled;
    p->settled++;
  }
  return true;
}

/* A message that went through a bounce buffer is put where it belongs; once. */
static void unload(part *p, int32_t i)
{
  message *m = &p->m[i];
  if (!m->bounce || m->left == 0) return;
  uint64_t at = (uint64_t)i * p->step;
  spx_unpack(p->user->buf, p->user->count, p->user->type, (int64_t)at, (int64_t)at + m->r->bytes,
             m->bounce);
  m->left = 0;
}

static void end(part *p)
{
  spx_request *u = p->user;
  if (p->polling) spx_poller_del(&p->poller);
  p->polling = 0;
  if (u->kind == SPX_R_PART_RECV)
    for (int32_t i = 0; p->failed < 0 && i < p->n; i++) unload(p, i);
  u->bytes = u->want_src == MPI_PROC_NULL || p->failed >= 0
                 ? 0
                 : (int64_t)(u->kind == SPX_R_PART_RECV ? sent(p) : spx_capacity(u));
  if (u->want_src == MPI_PROC_NULL) u->tag = MPI_ANY_TAG;
  spx_complete(u, p->failed >= 0 ? p->m[p->failed].r->error : MPI_SUCCESS);
}

/* The operation can not go on at all. */
static void break_off(part *p, int error)
{
  if (p->polling) spx_poller_del(&p->poller);
  p->polling = 0;
  free_messages(p);
  p->n = 0;
  spx_complete(p->user, error);
}

static void start_receives(part *p)
{
  p->settled = 0;
  for (int32_t i = 0; i < p->n; i++) {
    p->m[i].left = 1;
    spx_start(p->m[i].r);
  }
}

/* One step of a receive; the number of events. */
static int go_on(part *p)
{
  if (p->n == 0) {
    if (!spx_is_done(p->hello)) return 0;
    int err = p->hello->error;
    if (err == MPI_SUCCESS) err = make_receives(p);
    if (err != MPI_SUCCESS) {
      break_off(p, err);
      return 1;
    }
    start_receives(p);
  }
  int32_t before = p->settled;
  if (settle(p)) {
    end(p);
    return 1;
  }
  return p->settled != before;
}

static int poll_part(spx_poller *poller)
{
  return go_on((part *)((char *)poller - offsetof(part, poller)));
}

static void poll_from_now(part *p)
{
  p->polling = 1;
  p->poller.poll = poll_part;
  spx_poller_add(&p->poller);
}

/* ---- requests ---- */

static void start_send(part *p)
{
  memset(p->ready, 0, (size_t)p->partitions);
  p->unready = p->partitions;
  p->settled = 0;
  for (int32_t i = 0; i < p->n; i++) {
    int32_t rest = p->partitions - i * p->group;
    p->m[i].left = rest < p->group ? rest : p->group;
  }
}

static int start(spx_request *r)
{
  part *p = r->priv;
  spx_lock();
  atomic_store_explicit(&r->done, 0, memory_order_relaxed);
  r->flags |= SPX_RF_ACTIVE;
  r->error = MPI_SUCCESS;
  r->bytes = 0;
  p->failed = -1;
  if (r->kind == SPX_R_PART_SEND)
    start_send(p);
  else if (r->want_src == MPI_PROC_NULL)
    end(p);
  else {
    if (p->n) start_receives(p);
    go_on(p);
    if (!spx_is_done(r)) poll_from_now(p);
  }
  spx_unlock();
  return MPI_SUCCESS;
}

static int finish(spx_request *r, MPI_Status *st)
{
  part *p = r->priv;
  if (r->want_src == MPI_PROC_NULL)
    spx_status_set(st, MPI_PROC_NULL, MPI_ANY_TAG, SPX_KEEP_ERROR, 0, 0);
  else
    spx_status_set(st, r->want_src, r->want_tag, SPX_KEEP_ERROR, r->bytes, 0);
  if (r->error == MPI_ERR_TRUNCATE)
    too_large(p);
  else if (r->error != MPI_SUCCESS && p->failed >= 0)
    spx_request_detail(p->m[p->failed].r);
  else if (r->error != MPI_SUCCESS && p->hello)
    spx_request_detail(p->hello);
  return r->error;
}

/* An intro goes its way, or is awaited, whatever becomes of its operation: the next one of the same
 * envelope must not get it. */
static void free_intro(spx_request *r) { free(r->priv); }

static void let_go_of_hello(part *p)
{
  if (!p->hello) {
    free(p->from);
    return;
  }
  p->hello->priv = p->from;
  p->hello->release = free_intro;
  if (spx_is_done(p->hello))
    spx_request_free(p->hello);
  else
    p->hello->flags |= SPX_RF_FREED;
  p->hello = NULL;
}

static void release(spx_request *r)
{
  part *p = r->priv;
  if (!p) return;
  spx_lock();
  r->priv = NULL;
  for (part **q = &sends; *q; q = &(*q)->next)
    if (*q == p) {
      *q = p->next;
      break;
    }
  free_messages(p);
  let_go_of_hello(p);
  free(p->ready);
  free(p);
  spx_unlock();
}

/* ---- initialization ---- */

/* A number that no other send of this process has. */
static uint32_t new_serial(void)
{
  for (;;) {
    uint64_t n = serials++;
    uint32_t s = (uint32_t)(n + spx_count_from(32, 3)) & SERIAL_MASK;
    const part *p = n <= SERIAL_MASK ? NULL : sends; /* none has been given out twice so far */
    while (p && p->from->serial != s) p = p->next;
    if (!p) return s;
  }
}

/* Sends the intro, or prepares to get it. */
static int introduce(part *p)
{
  spx_request *u = p->user;
  if (u->want_src == MPI_PROC_NULL) return MPI_SUCCESS;
  if (u->kind == SPX_R_PART_SEND)
    return spx_isend(p->from, sizeof *p->from, byte_type(), u->want_src, u->want_tag, u->comm,
                     SPX_CTX_PART, SPX_M_STANDARD, SPX_RF_INTERNAL, &p->hello);
  return spx_irecv(p->from, sizeof *p->from, byte_type(), u->want_src, u->want_tag, u->comm,
                   SPX_CTX_PART, SPX_RF_INTERNAL, &p->hello);
}

static int init(part *p)
{
  if (!(p->from = calloc(1, sizeof *p->from))) return no_memory();
  if (p->user->kind == SPX_R_PART_SEND) {
    *p->from = (intro){new_serial(), p->bytes, (uint64_t)p->partitions};
    p->next = sends;
    sends = p;
    if (!(p->ready = calloc((size_t)p->partitions, 1))) return no_memory();
    plan_messages(p, (uint64_t)p->partitions, p->bytes);
    int err = make_sends(p);
    if (err != MPI_SUCCESS) return err;
  }
  return introduce(p);
}

int spx_part_init(spx_req_kind kind, void *buf, int partitions, int64_t count, spx_type *t,
                  int rank, int tag, spx_comm *c, spx_request **out)
{
  part *p = calloc(1, sizeof *p);
  if (!p) return no_memory();
  int err = spx_persistent(kind, buf, partitions * count, t, rank, tag, c, SPX_CTX_PART,
                           SPX_M_STANDARD, out);
  if (err != MPI_SUCCESS) {
    free(p);
    return err;
  }
  spx_request *r = *out;
  p->user = r;
  p->partitions = partitions;
  p->bytes = (uint64_t)(count * t->size);
  p->failed = -1;
  r->priv = p;
  r->start = start;
  r->finish = finish;
  r->release = release;
  spx_lock();
  err = init(p);
  spx_unlock();
  if (err != MPI_SUCCESS) spx_request_free(r);
  return err;
}

/* ---- partitions ---- */

static int bad_partition(const part *p, int i)
{
  spx_detail("partition = %d: the operation has %d partitions, numbered from 0", i, p->partitions);
  return MPI_ERR_ARG;
}

int spx_part_ready(spx_request *r, int low, int high)
{
  part *p = r->priv;
  if (low < 0 || low >= p->partitions) return bad_partition(p, low);
  if (high < 0 || high >= p->partitions) return bad_partition(p, high);
  int err = MPI_SUCCESS;
  spx_lock();
  for (int i = low; i <= high && err == MPI_SUCCESS; i++) {
    if (p->ready[i]) {
      spx_detail("partition %d was marked as ready before", i);
      err = MPI_ERR_ARG;
      break;
    }
    p->ready[i] = 1;
    p->unready--;
    message *m = &p->m[i / p->group];
    if (--m->left == 0 && m->r) spx_start(m->r);
  }
  if (err == MPI_SUCCESS && low <= high && p->unready == 0) {
    if (settle(p))
      end(p);
    else
      poll_from_now(p);
  }
  spx_unlock();
  return err;
}

/* Partition i of a receive whose messages are known. */
static int is_here(part *p, int i)
{
  int32_t first = 0, last = p->n - 1;
  if (p->bytes && p->step) {
    uint64_t at = (uint64_t)i * p->bytes;
    first = (int32_t)(at / p->step);
    last = (int32_t)((at + p->bytes - 1) / p->step);
    if (last >= p->n) last = p->n - 1; /* the sender has less */
    if (first >= p->n) first = 0;
  }
  for (int32_t k = first; k <= last; k++)
    if (!spx_is_done(p->m[k].r) || p->m[k].r->error != MPI_SUCCESS) return 0;
  for (int32_t k = first; k <= last; k++) unload(p, k);
  return 1;
}

int spx_part_arrived(spx_request *r, int i, int *flag)
{
  part *p = r->priv;
  if (i < 0 || i >= p->partitions) return bad_partition(p, i);
  for (int tries = 0; tries < 2; tries++) {
    spx_lock();
    *flag = spx_is_done(r) || (p->n && is_here(p, i));
    spx_unlock();
    if (*flag) break;
    if (tries == 0) spx_progress();
  }
  return MPI_SUCCESS;
}
