/* rma_am.c - window memory that is reached through its owner. MPI-5.0, 12.3.
 *
 * A request is written into the target's mailbox (one per process and window), and the target does
 * it in its progress. Where the kernel forbids reading and writing other processes, that is the
 * only way. Else it is for many short runs, which cost the kernel a look-up each: then a request
 * that the target does not take while the kernel would have done it is taken back.
 */
#define _GNU_SOURCE
#include <time.h>
#include "dp.h"
#include "rma_rows.h"

#define ROWS      64  /* of a request */
#define LOOKUP_NS 400 /* assumed time of the kernel for a run */

enum { MAIL_NONE = 0, MAIL_ASKED, MAIL_TAKEN, MAIL_DONE };
typedef struct mailbox {
  uint32_t latch; /* of the origin that is served now */
  uint32_t state; /* the origin: ASKED, or NONE when it retracts that; the target: TAKEN, DONE */
  uint32_t from;  /* rank to wake */
  uint32_t put;
  int32_t error;
  uint32_t n;
  uint8_t pad[40];
  spx_rma_row row[ROWS];
  uint8_t data[SPX_MAILBOX_BYTES - 64 - sizeof(spx_rma_row) * ROWS];
} mailbox;
_Static_assert(sizeof(mailbox) == SPX_MAILBOX_BYTES, "mailbox");

static mailbox *box_of(const spx_win *w, int rank)
{
  return (mailbox *)(w->boxes + (uint64_t)rank * SPX_MAILBOX_BYTES);
}

static int serve(spx_poller *p)
{
  spx_win *w = (spx_win *)((char *)p - offsetof(spx_win, server.poller));
  mailbox *b = box_of(w, w->rank);
  uint32_t asked = MAIL_ASKED;
  if (SPX_LIKELY(__atomic_load_n(&b->state, __ATOMIC_RELAXED) != MAIL_ASKED)) return 0;
  if (!__atomic_compare_exchange_n(&b->state, &asked, MAIL_TAKEN, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED))
    return 0;
  uint32_t n = b->n, from = b->from;
  /* the checked copy is executed, whatever the origin writes meanwhile */
  spx_rma_row row[ROWS];
  memcpy(row, b->row, sizeof row);
  if (n > ROWS || spx_rma_rows_bytes(w, row, n, sizeof b->data) < 0)
    b->error = MPI_ERR_RMA_RANGE;
  else {
    b->error = MPI_SUCCESS;
    spx_rma_rows_move(row, n, b->put, b->data);
  }
  __atomic_store_n(&b->state, MAIL_DONE, __ATOMIC_RELEASE);
  if (from < (uint32_t)w->size) spx_ring_bell(w->targets[from].proc);
  return 1;
}

void spx_rma_serve(spx_win *w)
{
  w->server.poller.poll = serve;
  spx_poller_add(&w->server.poller);
}

void spx_rma_serve_end(spx_win *w) { spx_poller_del(&w->server.poller); }

static bool pending(const mailbox *b)
{
  uint32_t s = __atomic_load_n(&b->state, __ATOMIC_ACQUIRE);
  return s == MAIL_ASKED || s == MAIL_TAKEN;
}

/* Waits until the box is not being read or written by its owner. False: the owner is dead, or the
 * window is not there for all. */
static bool await_answer(const spx_win *w, int target, const mailbox *b)
{
  for (;;) {
    uint32_t ticket = spx_ticket();
    if (!pending(b)) return true;
    if (spx_ndead && spx_proc_dead(w->targets[target].proc)) return false;
    if (spx_rma_given_up(w)) return false;
    spx_wait_event(ticket, 0);
  }
}

/* Waits so long that the kernel could have looked up these runs; then takes back what was not
 * taken. False: it was. */
static bool await_taking(mailbox *b, int64_t runs)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  uint64_t deadline =
      (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + (uint64_t)runs * LOOKUP_NS;
  for (;;) {
    uint32_t ticket = spx_ticket(), asked = MAIL_ASKED;
    if (__atomic_load_n(&b->state, __ATOMIC_ACQUIRE) != MAIL_ASKED) return true;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec >= deadline)
      return !__atomic_compare_exchange_n(&b->state, &asked, MAIL_NONE, false, __ATOMIC_ACQUIRE,
                                          __ATOMIC_ACQUIRE);
    spx_wait_event(ticket, deadline);
  }
}

/* Writes down the runs of as many bytes as a request has room for, at most m. Returns the bytes. */
static int64_t describe(mailbox *b, uint64_t raddr, const spx_type *rtype, int64_t at, int64_t m,
                        int64_t *runs)
{
  if (m > (int64_t)sizeof b->data) m = (int64_t)sizeof b->data;
  return spx_rma_describe(b->row, ROWS, &b->n, raddr, rtype, at, m, runs);
}

int spx_rma_by_am(spx_win *w, int target, bool put, uint64_t raddr, const spx_type *rtype,
                  int64_t at, void *lbuf, const spx_type *ltype, int64_t lat, int64_t m,
                  int64_t *moved)
{
  mailbox *b = box_of(w, target);
  int err = MPI_SUCCESS;
  *moved = 0;
  spx_latch(w, &b->latch);
  for (int64_t done = 0, n, runs; done < m && err == MPI_SUCCESS; *moved = done += n) {
    if (!await_answer(w, target, b)) {
      err = spx_rma_lost(w, target);
      break;
    }
    n = describe(b, raddr, rtype, at + done, m - done, &runs);
    b->put = put;
    b->from = (uint32_t)w->rank;
    if (put) spx_pack(lbuf, 0, ltype, lat + done, lat + done + n, b->data);
    __atomic_store_n(&b->state, MAIL_ASKED, __ATOMIC_RELEASE);
    spx_ring_bell(w->targets[target].proc);
    if (!w->am && !await_taking(b, runs)) break;
    if (!await_answer(w, target, b))
      err = spx_rma_lost(w, target);
    else if (b->error != MPI_SUCCESS)
      err = spx_rma_no_memory(target, b->row[0].base);
    else if (!put)
      spx_unpack(lbuf, 0, ltype, lat + done, lat + done + n, b->data);
  }
  spx_unlatch(&b->latch);
  return err;
}
