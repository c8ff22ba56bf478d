/* rma_far.c - window memory that is reached over the network. MPI-5.0, chapter 12;
 * docs/decisions/rma.md, "Between hosts".
 *
 * An origin sends a request on the window's own communicator and waits for the answer; the target
 * does what it is asked for in its progress, so that operations are complete when they return, as
 * on a host. What a request needs of the target's memory is rows of runs (rma_rows.h), whose
 * addresses count from the beginning of the window unless it is dynamic; no datatype is sent but
 * the number of a predefined one. Long runs travel as messages of their own, from and to the users'
 * memory.
 *
 * Locks stay where they are, in the memory of the target's host (rma_memory.c): the target takes
 * them for who is elsewhere.
 */
#include <stdlib.h>
#include "basic.h"
#include "dp.h"
#include "plan.h"
#include "reduce.h"
#include "rma_rows.h"

#define ROWS   512    /* of a request */
#define PIECE  65536u /* bytes of data in a request or an answer */
#define LONG   32768  /* from so many bytes on one run is a message of its own */
#define PAIR   64u    /* the longest predefined datatype, and room to spare */
#define SLOTS  4      /* requests that can come at a time without waiting for memory */
#define DEEP   4      /* requests of one operation on their way */
#define SERIES (1 << 20)
enum {
  TAG_ASK = 4,
  TAG_ANSWER = 16 /* and SERIES more; SERIES above it the data of a put: target and origin number by
                     themselves */
};

typedef enum { PUT, GET, PUT_LONG, GET_LONG, ACCUMULATE, FETCH, SWAP, LOCK, UNLOCK, KINDS } kind;

/* A request: n rows and then bytes of data follow. */
typedef struct {
  uint32_t what;  /* kind */
  int32_t tag;    /* of the answer, and of what a long get brings */
  uint32_t n;     /* rows */
  uint32_t bytes; /* data that follow; SWAP: the new value and the one that is expected */
  int32_t element,
      /* accumulates: number of the predefined datatype; a pair without a name: of its value and
         index */
      index;
  int32_t op; /* accumulates: handle; LOCK, UNLOCK: spx_held */
  uint32_t pad;
} ask;
#define ASK_MOST (sizeof(ask) + ROWS * sizeof(spx_rma_row) + PIECE)

/* An answer: bytes of data follow. */
typedef struct {
  int32_t error;
  uint32_t bytes;
} answer;

/* Something that this process has to send, or to receive, for an origin. */
typedef struct job {
  struct job *next;
  spx_request *r;
  int32_t rank, tag;
  bool put; /* data on the way here: the answer is sent when they are here */
  _Alignas(8) answer a;
  char data[];
} job;

/* A lock that an origin waits for. */
typedef struct lock_request {
  struct lock_request *next;
  int32_t rank, tag;
  spx_held how;
} lock_request;

struct spx_win_far {
  spx_poller poller;
  spx_win *w;
  int32_t series; /* of tags */
  spx_request *slot[SLOTS];
  char *buf[SLOTS]; /* ASK_MOST each */
  job *jobs;
  lock_request *lock_requests;
  bool granting, again; /* lock requests are being looked at; and they are to be, once more */
};

static spx_type *bytes_type(void) { return &spx_basic_types[SPX_B_BYTE]; }

/* ---- the target: answers ---- */

static job *new_job(int rank, int tag, uint64_t room)
{
  job *j = malloc(sizeof *j + room);
  if (j) *j = (job){.rank = rank, .tag = tag};
  return j;
}

static void add_job(struct spx_win_far *f, job *j)
{
  j->next = f->jobs;
  f->jobs = j;
}

/* Sends j's answer with the data behind it; j goes when that is done. */
static void send_answer(struct spx_win_far *f, job *j, int error, uint64_t bytes)
{
  j->a = (answer){error, (uint32_t)bytes};
  j->put = false;
  int err = spx_isend(&j->a, (int64_t)(sizeof j->a + bytes), bytes_type(), j->rank, j->tag,
                      f->w->comm, SPX_CTX_P2P, SPX_M_STANDARD, SPX_RF_INTERNAL, &j->r);
  if (err != MPI_SUCCESS)
    free(j);
  else if (spx_is_done(j->r)) {
    spx_request_free(j->r);
    free(j);
  } else
    add_job(f, j);
}

/* What is on its way, and what has come. Jobs that are put in meanwhile are looked at the next
 * time. */
static int look_at_jobs(struct spx_win_far *f)
{
  int n = 0;
  for (job **at = &f->jobs, *j; (j = *at) != NULL;) {
    if (!spx_is_done(j->r)) {
      at = &j->next;
      continue;
    }
    *at = j->next;
    n++;
    int err = j->r->error;
    spx_request_free(j->r);
    if (j->put)
      send_answer(f, j, err, 0); /* at the head of the list */
    else
      free(j);
  }
  return n;
}

/* ---- the target: locks ---- */

static void grant(spx_win *w)
{
  for (lock_request **at = &w->far->lock_requests, *x; (x = *at) != NULL;) {
    bool gone = spx_ndead && spx_proc_dead(w->targets[x->rank].proc);
    job *j = gone ? NULL : new_job(x->rank, x->tag, 0);
    if (!gone && !(j && spx_win_try_lock(w, w->rank, x->rank, x->how))) {
      free(j);
      at = &x->next;
      continue;
    }
    *at = x->next;
    free(x);
    if (j) send_answer(w->far, j, MPI_SUCCESS, 0);
  }
}

/* Lets those have their locks whose turn it is. Who waits for the word that guards a lock makes
 * progress meanwhile, and so comes here again from within, or lets another thread come: lock
 * requests are taken out of the list by the outer one alone. */
void spx_rma_far_grant(spx_win *w)
{
  struct spx_win_far *f = w->far;
  spx_lock();
  f->again = true;
  while (f->again && !f->granting) {
    f->again = false;
    f->granting = true;
    grant(w);
    f->granting = false;
  }
  spx_unlock();
}

/* Those who ask first are first: others_first looks at tickets, which spx_win_try_lock draws. */
static int want_lock(struct spx_win_far *f, int rank, const ask *a)
{
  if (a->op != SPX_HELD_SHARED && a->op != SPX_HELD_EXCLUSIVE) return MPI_ERR_LOCKTYPE;
  lock_request *x = malloc(sizeof *x), **last = &f->lock_requests;
  if (!x) return MPI_ERR_NO_MEM;
  *x = (lock_request){NULL, rank, a->tag, (spx_held)a->op};
  for (; *last; last = &(*last)->next)
    if ((*last)->rank == rank) { /* who waits for the lock cannot ask for it */
      free(x);
      return MPI_ERR_OTHER;
    }
  *last = x;
  spx_rma_far_grant(f->w);
  return MPI_SUCCESS;
}

/* ---- the target: operations ---- */

/* The predefined datatype that a request names, and the operation, when they go together; else
 * 0. */
static int element_of(const ask *a, const spx_op **op)
{
  int e = a->element;
  if (e > 0 && a->index > 0 && e < SPX_B_COUNT_OF && a->index < SPX_B_COUNT_OF)
    e = spx_basic_pair(e, a->index);
  *op = (const spx_op *)spx_get(SPX_K_OP, (const void *)(intptr_t)a->op);
  if (e <= 0 || e >= SPX_BASIC_MAX || !*op || !(*op)->predef || !spx_basics[e].size) return 0;
  bool plain =
      (*op)->predef == (int)(intptr_t)MPI_REPLACE || (*op)->predef == (int)(intptr_t)MPI_NO_OP;
  return plain || spx_op_valid(*op, &spx_basic_types[e]) ? e : 0;
}

/* data: at the origin. old: what was there, and then what is there. */
static int accumulate(const ask *a, const spx_rma_row *row, const char *data, uint64_t bytes,
                      char *old, char *now)
{
  const spx_op *op;
  int e = element_of(a, &op);
  if (!e || bytes % spx_basics[e].size) return MPI_ERR_OP;
  spx_rma_rows_move(row, a->n, false, old);
  if (op->predef == (int)(intptr_t)MPI_NO_OP) return MPI_SUCCESS;
  const char *put = data;
  int err = MPI_SUCCESS;
  if (op->predef != (int)(intptr_t)MPI_REPLACE) {
    memcpy(now, old, bytes);
    err = spx_rma_reduce(data, now, (int64_t)(bytes / spx_basics[e].size), &spx_basic_types[e], op);
    put = now;
  }
  if (err == MPI_SUCCESS) spx_rma_rows_move(row, a->n, true, (void *)(uintptr_t)put);
  return err;
}

static int swap(const ask *a, const spx_rma_row *row, const char *data, uint64_t bytes, char *old)
{
  if (a->bytes != 2 * bytes || bytes > PAIR) return MPI_ERR_RMA_RANGE;
  spx_rma_rows_move(row, a->n, false, old);
  if (memcmp(old, data + bytes, bytes) == 0)
    spx_rma_rows_move(row, a->n, true, (void *)(uintptr_t)data);
  return MPI_SUCCESS;
}

/* The one run of a long transfer. */
static bool is_one_run(const ask *a, const spx_rma_row *row)
{
  return a->n == 1 && row->count == 1 && a->bytes == 0;
}

static void put_long(struct spx_win_far *f, const spx_rma_row *row, job *j)
{
  void *to = (void *)(uintptr_t)row->base;
  job *go = new_job(j->rank, j->tag, 0);
  int err = MPI_ERR_NO_MEM;
  if (go)
    err = spx_irecv(to, (int64_t)row->size, bytes_type(), j->rank, j->tag + SERIES, f->w->comm,
                    SPX_CTX_P2P, SPX_RF_INTERNAL, &j->r);
  if (err != MPI_SUCCESS) {
    free(go);
    send_answer(f, j, err, 0);
    return;
  }
  j->put = true;
  add_job(f, j);
  send_answer(f, go, MPI_SUCCESS, 0);
}

static void get_long(struct spx_win_far *f, const spx_rma_row *row, job *j)
{
  job *data = new_job(j->rank, j->tag, 0);
  int rank = j->rank, tag = j->tag;
  send_answer(f, j, data ? MPI_SUCCESS : MPI_ERR_NO_MEM, 0);
  if (!data) return;
  int err = spx_isend((void *)(uintptr_t)row->base, (int64_t)row->size, bytes_type(), rank, tag,
                      f->w->comm, SPX_CTX_P2P, SPX_M_STANDARD, SPX_RF_INTERNAL, &data->r);
  if (err == MPI_SUCCESS)
    add_job(f, data);
  else
    free(data);
}

/* Does what is asked for; false: not now, as somebody else accumulates on our memory. */
static bool act(struct spx_win_far *f, int rank, const ask *a, const spx_rma_row *row,
                const char *data, uint64_t bytes)
{
  spx_win *w = f->w;
  uint32_t *latch = &w->cells[w->rank].accumulate;
  bool latched = a->what >= ACCUMULATE && a->what <= SWAP;
  uint64_t here = a->what == GET || latched ? bytes : 0;
  job *j = new_job(rank, a->tag, 2 * here);
  if (!j || (latched && !spx_latch_try(w, latch))) {
    free(j);
    return false;
  }
  int err = MPI_SUCCESS;
  switch (a->what) {
  case PUT: spx_rma_rows_move(row, a->n, true, (void *)(uintptr_t)data); break;
  case GET: spx_rma_rows_move(row, a->n, false, j->data); break;
  case PUT_LONG: put_long(f, row, j); return true;
  case GET_LONG: get_long(f, row, j); return true;
  case SWAP: err = swap(a, row, data, bytes, j->data); break;
  default: err = accumulate(a, row, data, bytes, j->data, j->data + bytes); break;
  }
  if (latched) spx_unlatch(latch);
  send_answer(f, j, err, err == MPI_SUCCESS && a->what != PUT && a->what != ACCUMULATE ? bytes : 0);
  return true;
}

/* Is the request whole, and all of its memory ours? An error class. Addresses are made ours. */
static int check(const spx_win *w, ask *a, uint64_t length, uint64_t *bytes)
{
  if (a->what >= KINDS || a->n > ROWS || a->bytes > PIECE) return MPI_ERR_OTHER;
  if (length != sizeof *a + a->n * sizeof(spx_rma_row) + a->bytes) return MPI_ERR_OTHER;
  spx_rma_row *row = (spx_rma_row *)(a + 1);
  bool is_long = a->what == PUT_LONG || a->what == GET_LONG;
  if (is_long && !is_one_run(a, row)) return MPI_ERR_OTHER;
  for (uint32_t i = 0; i < a->n && w->flavor != MPI_WIN_FLAVOR_DYNAMIC; i++)
    row[i].base += (uint64_t)(uintptr_t)w->base;
  int64_t n = spx_rma_rows_bytes(w, row, a->n, is_long ? INT64_MAX : PIECE);
  if (n < 0) return MPI_ERR_RMA_RANGE;
  *bytes = (uint64_t)n;
  bool looks = a->what == FETCH && a->op == (int)(intptr_t)MPI_NO_OP;
  bool brings = a->what == PUT || a->what == ACCUMULATE || (a->what == FETCH && !looks);
  return brings && a->bytes != *bytes ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* An operation on our memory; false: not now. *err: why it is none, and is to be answered. */
static bool operate(struct spx_win_far *f, int rank, ask *a, uint64_t length, int *err)
{
  spx_rma_row *row = (spx_rma_row *)(a + 1);
  uint64_t bytes = 0;
  *err = check(f->w, a, length, &bytes);
  if (*err != MPI_SUCCESS || act(f, rank, a, row, (const char *)(row + a->n), bytes)) return true;
  for (uint32_t i = 0; i < a->n && f->w->flavor != MPI_WIN_FLAVOR_DYNAMIC;
       i++) /* as they came, for the next time */
    row[i].base -= (uint64_t)(uintptr_t)f->w->base;
  return false;
}

/* Does what is asked for, and answers; false: not now, as the latch is taken or memory is out. Then
 * it is tried again. */
static bool handle(struct spx_win_far *f, int rank, ask *a, uint64_t length)
{
  int err = MPI_SUCCESS;
  if (length < sizeof *a) return true; /* nobody who could be answered */
  if (a->what != LOCK && a->what != UNLOCK) {
    if (!operate(f, rank, a, length, &err)) return false;
    if (err == MPI_SUCCESS) return true;
  }
  if (a->what == LOCK && (err = want_lock(f, rank, a)) == MPI_SUCCESS) return true;
  if (a->what == UNLOCK) spx_win_drop_lock(f->w, f->w->rank, rank);
  job *j = new_job(rank, a->tag, 0);
  if (!j) return false;
  send_answer(f, j, err, 0);
  if (a->what == UNLOCK) spx_rma_far_grant(f->w);
  return true;
}

static int post(struct spx_win_far *f, int i)
{
  return spx_irecv(f->buf[i], ASK_MOST, bytes_type(), MPI_ANY_SOURCE, TAG_ASK, f->w->comm,
                   SPX_CTX_P2P, SPX_RF_INTERNAL, &f->slot[i]);
}

/* Is the request from the process whose rank it says? Else there is no answer. */
static bool is_origin(const spx_win *w, const spx_request *r)
{
  if (r->error != MPI_SUCCESS) return true; /* it is not looked at */
  return r->src >= 0 && r->src < w->size && w->targets[r->src].proc == r->peer;
}

static int serve(spx_poller *p)
{
  struct spx_win_far *f = (struct spx_win_far *)((char *)p - offsetof(struct spx_win_far, poller));
  int n = f->jobs ? look_at_jobs(f) : 0;
  for (int i = 0; i < SLOTS; i++) {
    spx_request *r = f->slot[i];
    if (!r || !spx_is_done(r)) continue;
    if (SPX_UNLIKELY(!is_origin(f->w, r))) {
      spx_request_free(r);
      if (post(f, i) != MPI_SUCCESS) f->slot[i] = NULL;
      continue;
    }
    /* also for what has to wait: nobody rings when the latch is free, so this process must not go
     * to sleep */
    n++;
    if (r->error == MPI_SUCCESS && !handle(f, r->src, (ask *)(void *)f->buf[i], (uint64_t)r->bytes))
      continue;
    spx_request_free(r);
    if (post(f, i) != MPI_SUCCESS) f->slot[i] = NULL;
  }
  if (SPX_UNLIKELY(f->lock_requests != NULL)) spx_rma_far_grant(f->w);
  return n;
}

int spx_rma_far_serve(spx_win *w)
{
  struct spx_win_far *f = calloc(1, sizeof *f);
  if (!f) return MPI_ERR_NO_MEM;
  w->far = f;
  f->w = w;
  /* goes round, below and above 0: the low bits are used */
  f->series = (int32_t)spx_count_from(31, 2);
  int err = MPI_SUCCESS;
  for (int i = 0; i < SLOTS && err == MPI_SUCCESS; i++) {
    f->buf[i] = malloc(ASK_MOST);
    err = f->buf[i] ? post(f, i) : MPI_ERR_NO_MEM;
  }
  f->poller.poll = serve;
  spx_poller_add(&f->poller);
  return err;
}

void spx_rma_far_end(spx_win *w)
{
  struct spx_win_far *f = w->far;
  if (!f) return;
  spx_poller_del(&f->poller);
  for (int i = 0; i < SLOTS; i++) {
    if (f->slot[i]) {
      if (!spx_is_done(f->slot[i])) spx_cancel(f->slot[i]);
      spx_wait(f->slot[i]); /* one that was being received goes on */
      spx_request_free(f->slot[i]);
    }
    free(f->buf[i]);
  }
  /* answers that have been taken: all have been in MPI_Win_free */
  for (job *j = f->jobs, *next; j; j = next) {
    next = j->next;
    spx_wait(j->r);
    spx_request_free(j->r);
    free(j);
  }
  for (lock_request *x = f->lock_requests, *next; x; x = next) {
    next = x->next;
    free(x);
  }
  free(f);
  w->far = NULL;
}

/* ---- the origin ---- */

/* What became of an exchange with target, which a message error says, or its answer. */
static int outcome(int target, int err, int told)
{
  if (err == MPI_SUCCESS) err = told;
  if (err == MPIX_ERR_PROC_FAILED) spx_detail("rank %d of the window has failed", target);
  if (err == MPIX_ERR_REVOKED) spx_detail(SPX_RMA_GIVEN_UP);
  if (err == MPI_ERR_NO_MEM) spx_detail("rank %d of the window has no memory left", target);
  if (err == MPI_ERR_OTHER)
    spx_detail("rank %d of the window does not understand this process: is libspx of the same "
               "version on all hosts?",
               target);
  return err;
}

static int next_tag(spx_win *w)
{
  return TAG_ANSWER + (__atomic_fetch_add(&w->far->series, 1, __ATOMIC_RELAXED) & (SERIES - 1));
}

/* A request on its way. */
typedef struct {
  ask *a;
  char *said; /* the answer: its head and room bytes */
  uint64_t room;
  int64_t at, m; /* the part of an operation that it is */
  spx_request *out, *in;
} flight;

static int begin(spx_win *w, int target, flight *f)
{
  ask *a = f->a;
  a->tag = next_tag(w);
  int64_t length = (int64_t)(sizeof *a + a->n * sizeof(spx_rma_row) + a->bytes);
  int err = spx_irecv(f->said, (int64_t)(sizeof(answer) + f->room), bytes_type(), target, a->tag,
                      w->comm, SPX_CTX_P2P, SPX_RF_INTERNAL, &f->in);
  if (err != MPI_SUCCESS) return err;
  err = spx_isend(a, length, bytes_type(), target, TAG_ASK, w->comm, SPX_CTX_P2P, SPX_M_STANDARD,
                  SPX_RF_INTERNAL, &f->out);
  if (err == MPI_SUCCESS) return err;
  spx_cancel(f->in);
  spx_wait(f->in);
  spx_request_free(f->in);
  return err;
}

/* Waits for the answer. An error class, with a detail text. */
static int end(int target, flight *f)
{
  int err = spx_wait(f->out), e = MPI_SUCCESS;
  if (err != MPI_SUCCESS) spx_cancel(f->in);
  e = spx_wait(f->in);
  if (err == MPI_SUCCESS) err = e;
  spx_request_free(f->out);
  spx_request_free(f->in);
  answer said = {MPI_SUCCESS, 0};
  if (err == MPI_SUCCESS) memcpy(&said, f->said, sizeof said);
  if (said.error == MPI_SUCCESS && err == MPI_SUCCESS && said.bytes != f->room)
    said.error = MPI_ERR_OTHER;
  return outcome(target, err, said.error);
}

/* A request without much data, and its answer: room bytes into into. */
static int exchange(spx_win *w, int target, ask *a, void *into, uint64_t room)
{
  char said[sizeof(answer) + PAIR];
  flight f = {.a = a, .said = said, .room = room};
  int err = begin(w, target, &f);
  if (err != MPI_SUCCESS) return outcome(target, err, 0);
  err = end(target, &f);
  if (err == MPI_SUCCESS && room) memcpy(into, said + sizeof(answer), room);
  return err;
}

static spx_rma_row *rows_of(ask *a) { return (spx_rma_row *)(a + 1); }
static char *data_of(ask *a) { return (char *)(rows_of(a) + a->n); }

/* One run of m bytes as a message of its own. */
static int move_long(spx_win *w, int target, bool put, uint64_t raddr, void *lbuf, spx_type *ltype,
                     int64_t m)
{
  struct {
    ask a;
    spx_rma_row row;
  } q = {{.what = put ? PUT_LONG : GET_LONG, .n = 1}, {raddr, (uint64_t)m, 0, 1}};
  int err = exchange(w, target, &q.a, NULL, 0);
  if (err != MPI_SUCCESS) {
    if (err == MPI_ERR_RMA_RANGE) return spx_rma_no_memory(target, raddr);
    return err;
  }
  int64_t count = m / ltype->size;
  if (!put) {
    err = spx_recv(lbuf, count, ltype, target, q.a.tag, w->comm, SPX_CTX_P2P, MPI_STATUS_IGNORE);
    return outcome(target, err, 0);
  }
  err =
      spx_send(lbuf, count, ltype, target, q.a.tag + SERIES, w->comm, SPX_CTX_P2P, SPX_M_STANDARD);
  answer said = {MPI_SUCCESS, 0};
  if (err == MPI_SUCCESS)
    err = spx_recv(&said, sizeof said, bytes_type(), target, q.a.tag, w->comm, SPX_CTX_P2P,
                   MPI_STATUS_IGNORE);
  return outcome(target, err, said.error);
}

/* An operation in as many requests as its data and the runs of the target's memory need; some are
 * on their way at a time. */
typedef struct transfer {
  /* Writes the request for the part from at on, with most rows and room bytes at most; the bytes of
   * the part. */
  int64_t (*part)(const struct transfer *x, ask *a, int64_t at, uint32_t most, int64_t room);
  /* NULL: no data come back */
  void (*take)(const struct transfer *x, const char *data, int64_t at, int64_t m);
  int64_t n; /* bytes */
  bool put;  /* and the arguments of spx_rma_move */
  uint64_t raddr;
  const spx_type *rtype, *ltype;
  int64_t rat, lat;
  void *lbuf;
  const spx_accumulate *acc;
} transfer;

static int64_t part_of_move(const transfer *x, ask *a, int64_t at, uint32_t most, int64_t room)
{
  int64_t runs, m = x->n - at < room ? x->n - at : room;
  *a = (ask){.what = x->put ? PUT : GET};
  m = spx_rma_describe(rows_of(a), most, &a->n, x->raddr, x->rtype, x->rat + at, m, &runs);
  if (!x->put) return m;
  a->bytes = (uint32_t)m;
  spx_pack(x->lbuf, 0, x->ltype, x->lat + at, x->lat + at + m, data_of(a));
  return m;
}

static void take_move(const transfer *x, const char *data, int64_t at, int64_t m)
{
  spx_unpack(x->lbuf, 0, x->ltype, x->lat + at, x->lat + at + m, data);
}

/* Whole elements. */
static int64_t part_of_accumulate(const transfer *x, ask *a, int64_t at, uint32_t most,
                                  int64_t room)
{
  const spx_accumulate *acc = x->acc;
  const spx_type *t = spx_rma_element(acc->type);
  bool no_op = acc->op->predef == (int)(intptr_t)MPI_NO_OP, named = t->basic < SPX_B_COUNT_OF;
  int64_t runs, m = x->n - at < room ? x->n - at : room - room % t->size;
  *a = (ask){.what = acc->result_type ? FETCH : ACCUMULATE, .op = acc->op->predef};
  a->element = named ? (int)t->basic : spx_basics[t->basic].value;
  a->index = named ? 0 : spx_basics[t->basic].index;
  m = spx_rma_describe(rows_of(a), most, &a->n, acc->addr, acc->type, at, m, &runs);
  if (m % t->size)
    m = spx_rma_describe(rows_of(a), most, &a->n, acc->addr, acc->type, at, m - m % t->size, &runs);
  if (no_op) return m;
  a->bytes = (uint32_t)m;
  spx_pack(acc->origin, 0, acc->origin_type, at, at + m, data_of(a));
  return m;
}

static void take_result(const transfer *x, const char *data, int64_t at, int64_t m)
{
  spx_unpack(x->acc->result, 0, x->acc->result_type, at, at + m, data);
}

/* Requests one after the other, deep of them on their way; memory for each: most rows and room
 * bytes twice. */
static int in_flights(spx_win *w, int target, const transfer *x, flight *f, int deep, uint32_t most,
                      int64_t room)
{
  int err = MPI_SUCCESS;
  int64_t at = 0;
  for (int first = 0, flying = 0; flying > 0 || (at < x->n && err == MPI_SUCCESS);) {
    if (at < x->n && err == MPI_SUCCESS && flying < deep) {
      flight *g = &f[(first + flying) % deep];
      g->at = at;
      g->m = x->part(x, g->a, at, most, room);
      g->room = x->take ? (uint64_t)g->m : 0;
      err = outcome(target, begin(w, target, g), 0);
      flying += err == MPI_SUCCESS;
      at += g->m;
      continue;
    }
    flight *g = &f[first];
    uint64_t addr = rows_of(g->a)->base;
    int e = end(target, g);
    first = (first + 1) % deep;
    flying--;
    if (e == MPI_SUCCESS && x->take) x->take(x, g->said + sizeof(answer), g->at, g->m);
    if (e == MPI_ERR_RMA_RANGE) spx_rma_no_memory(target, addr);
    if (e == MPI_ERR_OP) spx_detail("rank %d of the window does not know the operation", target);
    if (err == MPI_SUCCESS) err = e;
  }
  return err;
}

static int carry_out(spx_win *w, int target, const transfer *x)
{
  enum { FEW = 8, LITTLE = 256 };
  if (x->n <= LITTLE) {
    _Alignas(16) char ask_room[sizeof(ask) + FEW * sizeof(spx_rma_row) + LITTLE],
        said[sizeof(answer) + LITTLE];
    flight f = {.a = (ask *)(void *)ask_room, .said = said};
    return in_flights(w, target, x, &f, 1, FEW, LITTLE);
  }
  flight f[DEEP];
  const uint64_t each = ASK_MOST + sizeof(answer) + PIECE;
  int deep = x->n <= PIECE ? 1 : DEEP;
  char *room = spx_temp_get((uint64_t)deep * each);
  if (!room) return outcome(w->rank, MPI_ERR_NO_MEM, 0);
  for (int i = 0; i < deep; i++) {
    char *at = room + (uint64_t)i * each;
    f[i] = (flight){.a = (ask *)(void *)at, .said = at + ASK_MOST};
  }
  int err = in_flights(w, target, x, f, deep, ROWS, PIECE);
  spx_temp_put(room, (uint64_t)deep * each);
  return err;
}

int spx_rma_far_move(spx_win *w, int target, bool put, uint64_t raddr, const spx_type *rtype,
                     int64_t at, void *lbuf, const spx_type *ltype, int64_t lat, int64_t m)
{
  if (m >= LONG && (rtype->flags & SPX_T_CONTIG) && lat == 0 && m % ltype->size == 0)
    return move_long(w, target, put, raddr + (uint64_t)at, lbuf, (spx_type *)(uintptr_t)ltype, m);
  transfer x = {.part = part_of_move,
                .take = put ? NULL : take_move,
                .n = m,
                .put = put,
                .raddr = raddr,
                .rtype = rtype,
                .ltype = ltype,
                .rat = at,
                .lat = lat,
                .lbuf = lbuf};
  return carry_out(w, target, &x);
}

int spx_rma_far_accumulate(spx_win *w, int target, const spx_accumulate *a)
{
  transfer x = {.part = part_of_accumulate,
                .take = a->result_type ? take_result : NULL,
                .n = a->count * a->type->size,
                .acc = a};
  return carry_out(w, target, &x);
}

int spx_rma_far_swap(spx_win *w, int target, uint64_t addr, const void *origin, const void *compare,
                     void *result, const spx_type *t)
{
  struct {
    ask a;
    spx_rma_row row;
    char data[2 * PAIR];
  } q = {.a = {.what = SWAP, .n = 1, .bytes = 2 * (uint32_t)t->size},
         .row = {addr, (uint64_t)t->size, 0, 1}};
  memcpy(q.data, origin, (size_t)t->size);
  memcpy(q.data + t->size, compare, (size_t)t->size);
  int err = exchange(w, target, &q.a, result, (uint64_t)t->size);
  return err == MPI_ERR_RMA_RANGE ? spx_rma_no_memory(target, addr) : err;
}

int spx_rma_far_lock(spx_win *w, int target, spx_held how)
{
  ask a = {.what = LOCK, .op = (int32_t)how};
  return exchange(w, target, &a, NULL, 0);
}

/* A target that has failed needs no unlocking. */
void spx_rma_far_unlock(spx_win *w, int target)
{
  ask a = {.what = UNLOCK};
  exchange(w, target, &a, NULL, 0);
}
