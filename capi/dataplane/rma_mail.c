/* rma_mail.c - window memory that is reached through its owner. MPI-5.0, 12.3.
 *
 * A request is written into the target's mailbox (one per process and window), and the target does it in its progress. Where the kernel
 * forbids reading and writing other processes, that is the only way. Else it is for many short runs, which cost the kernel a look-up
 * each: then a request that the target does not take while the kernel would have done it is taken back.
 */
#define _GNU_SOURCE
#include <sys/uio.h>
#include <time.h>
#include "dp.h"
#include "rma.h"

#define RUNS      512 /* that are looked at at a time */
#define ROWS      64  /* of a request: runs of one length and distance are one row */
#define LOOKUP_NS 400 /* that the kernel takes for a run */

enum { MAIL_NONE = 0, MAIL_ASKED, MAIL_TAKEN, MAIL_DONE };
typedef struct mailbox {
  uint32_t latch; /* of the origin whose turn it is */
  uint32_t state; /* the origin: ASKED, or NONE when it takes that back; the target: TAKEN, DONE */
  uint32_t from;  /* rank to wake */
  uint32_t put;
  int32_t error;
  uint32_t n;
  uint8_t pad[40];
  struct row {
    uint64_t base, size, stride, count;
  } row[ROWS];
  uint8_t data[SPX_MAILBOX_BYTES - 64 - 32 * ROWS];
} mailbox;
_Static_assert(sizeof(mailbox) == SPX_MAILBOX_BYTES, "mailbox");

static mailbox *box_of(const spx_win *w, int rank)
{
  return (mailbox *)(w->boxes + (uint64_t)rank * SPX_MAILBOX_BYTES);
}

bool spx_win_attached(const spx_win *w, uint64_t base, uint64_t size)
{
  while (size > 0) { /* pieces that were attached one by one may lie side by side */
    const spx_attached *a = w->attached;
    while (a && !(base >= a->base && base - a->base < a->size)) a = a->next;
    if (!a) return false;
    uint64_t part = a->size - (base - a->base);
    if (part >= size) return true;
    base += part;
    size -= part;
  }
  return true;
}

/* Is that our window's memory? */
static bool is_ours(const spx_win *w, uint64_t base, uint64_t size)
{
  if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) return spx_win_attached(w, base, size);
  uint64_t from = (uint64_t)(uintptr_t)w->base;
  return base >= from && base - from <= (uint64_t)w->bytes && size <= (uint64_t)w->bytes - (base - from);
}

static int do_as_asked(const spx_win *w, mailbox *b)
{
  char *d = (char *)b->data;
  uint64_t room = sizeof b->data;
  for (uint32_t i = 0; i < b->n && i < ROWS; i++) {
    struct row r = b->row[i];
    if (r.size > room || r.count == 0 || r.count > room / r.size) return MPI_ERR_RMA_RANGE;
    for (uint64_t k = 0; k < r.count; k++)
      if (!is_ours(w, r.base + k * r.stride, r.size)) return MPI_ERR_RMA_RANGE;
    char *mem = (char *)(uintptr_t)r.base;
    for (uint64_t k = 0; k < r.count; k++, mem += r.stride, d += r.size)
      if (b->put)
        spx_copy_short(mem, d, r.size);
      else
        spx_copy_short(d, mem, r.size);
    room -= r.size * r.count;
  }
  return MPI_SUCCESS;
}

static int serve(spx_poller *p)
{
  spx_win *w = (spx_win *)((char *)p - offsetof(spx_win, server.poller));
  mailbox *b = box_of(w, w->rank);
  uint32_t asked = MAIL_ASKED;
  if (SPX_LIKELY(__atomic_load_n(&b->state, __ATOMIC_RELAXED) != MAIL_ASKED)) return 0;
  if (!__atomic_compare_exchange_n(&b->state, &asked, MAIL_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return 0;
  b->error = do_as_asked(w, b);
  uint32_t from = b->from;
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

/* Waits until the box is not being read or written by its owner. False: the owner is dead. */
static bool await_answer(const spx_win *w, int target, const mailbox *b)
{
  for (;;) {
    uint32_t ticket = spx_ticket();
    if (!pending(b)) return true;
    if (spx_ndead && spx_proc_dead(w->targets[target].proc)) return false;
    spx_wait_event(ticket, 0);
  }
}

/* Waits so long that the kernel could have looked up these runs; then takes back what was not taken. False: it was. */
static bool await_taking(mailbox *b, int64_t runs)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  uint64_t deadline = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + (uint64_t)runs * LOOKUP_NS;
  for (;;) {
    uint32_t ticket = spx_ticket(), asked = MAIL_ASKED;
    if (__atomic_load_n(&b->state, __ATOMIC_ACQUIRE) != MAIL_ASKED) return true;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec >= deadline)
      return !__atomic_compare_exchange_n(&b->state, &asked, MAIL_NONE, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
    spx_wait_event(ticket, deadline);
  }
}

/* Adds a run to the rows; false when there is no room. */
static bool add_run(mailbox *b, uint64_t base, uint64_t size)
{
  struct row *r = b->n ? &b->row[b->n - 1] : NULL;
  if (r && r->size == size && base > r->base && (r->count == 1 || base - r->base == r->stride * r->count)) {
    if (r->count++ == 1) r->stride = base - r->base;
    return true;
  }
  if (b->n == ROWS) return false;
  b->row[b->n++] = (struct row){base, size, 0, 1};
  return true;
}

/* Writes down the runs of as many bytes as a request has room for, at most m. Returns the bytes. */
static int64_t describe(mailbox *b, uint64_t raddr, const spx_type *rtype, int64_t at, int64_t m, int64_t *runs)
{
  int64_t done = 0, n;
  b->n = 0;
  *runs = 0;
  if (m > (int64_t)sizeof b->data) m = (int64_t)sizeof b->data;
  while (done < m) {
    struct iovec run[RUNS];
    int k = spx_iovecs((void *)(uintptr_t)raddr, 0, rtype, at + done, at + m, run, RUNS, &n);
    for (int i = 0; i < k; i++, (*runs)++) {
      if (!add_run(b, (uint64_t)(uintptr_t)run[i].iov_base, run[i].iov_len)) return done;
      done += (int64_t)run[i].iov_len;
    }
  }
  return done;
}

int spx_rma_by_mail(spx_win *w, int target, bool put, uint64_t raddr, const spx_type *rtype, int64_t at, void *lbuf,
                    const spx_type *ltype, int64_t lat, int64_t m, int64_t *moved)
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
    if (!w->mail && !await_taking(b, runs)) break;
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
