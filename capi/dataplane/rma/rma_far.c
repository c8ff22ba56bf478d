/* rma_far.c - window memory that is reached over the network. MPI-5.0, chapter 12;
 * docs/decisions/rma.md, "Between hosts".
 *
 * An origin sends a request on the window's own communicator and waits for the answer; the target
 * performs it in its progress, so that operations are complete when they return, as on a host. A
 * request describes the target's memory as rows of runs (rma_rows.h), whose addresses are relative
 * to the beginning of the window unless it is dynamic; no datatype is sent but the number of a
 * predefined one. Long runs travel as messages of their own, from and to the users' memory.
 *
 * Locks stay in the memory of the target's host (rma_memory.c): the target acquires them for
 * origins on other hosts. This file is the origin; the target is rma_far_target.c.
 */
#include "plan.h"
#include "rma_far.h"
#define DEEP 4 /* requests of one operation on their way */

/* The outcome of an exchange with target, from the error of a message or from its answer. */
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
