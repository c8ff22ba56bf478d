/* rma_far_target.c - the target of what is done to window memory over the network (rma_far.c): it
 * answers requests in its progress, does to its memory what they ask for, and takes locks for those
 * elsewhere. What is not whole, or asks for memory that is not the window's, is answered with an
 * error.
 */
#include <stdlib.h>
#include "reduce.h"
#include "rma_far.h"

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

/* Grants the locks whose turn it is. A wait for the word that guards a lock makes progress, and so
 * enters this function again from within, or lets another thread enter it: the outermost call alone
 * removes lock requests from the list. */
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

/* Requests are granted in order: others_first compares tickets, which spx_win_try_lock draws. */
static int want_lock(struct spx_win_far *f, int rank, const ask *a)
{
  if (a->op != SPX_HELD_SHARED && a->op != SPX_HELD_EXCLUSIVE) return MPI_ERR_LOCKTYPE;
  lock_request *x = malloc(sizeof *x), **last = &f->lock_requests;
  if (!x) return MPI_ERR_NO_MEM;
  *x = (lock_request){NULL, rank, a->tag, (spx_held)a->op};
  for (; *last; last = &(*last)->next)
    if ((*last)->rank == rank) { /* an origin that waits for the lock cannot request it again */
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

/* Performs the request; false: not now, since another process accumulates on this memory. */
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
  if (length < sizeof *a) return true; /* there is no origin to answer */
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

/* Is the request from the process whose rank it names? Else it gets no answer. */
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
    /* also for what has to wait: no bell rings when the latch is free, so this process must not go
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
