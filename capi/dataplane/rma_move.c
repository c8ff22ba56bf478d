/* rma_move.c - moving data between a process and the window memory of another. MPI-5.0, 12.3.
 *
 * Three ways: loads and stores, when the memory is mapped here; process_vm_readv and process_vm_writev; and mail, where the
 * kernel does not let us: a request is written into the target's mailbox (one per process and window), and the target does it in
 * its progress. In all three the origin takes datatypes apart, so that a target only ever sees addresses and lengths.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include "dp.h"
#include "rma.h"

#define IOVS   64
#define BOUNCE 16384

/* ---- in the same address space ------------------------------------------------------------------------------- */

static void copy(void *to, const spx_type *tt, int64_t tat, const void *from, const spx_type *ft, int64_t fat,
                 int64_t m)
{
  bool t_plain = tt->flags & SPX_T_CONTIG, f_plain = ft->flags & SPX_T_CONTIG;
  if (t_plain && f_plain)
    memmove((char *)to + tat, (const char *)from + fat, (size_t)m);
  else if (t_plain)
    spx_pack(from, 0, ft, fat, fat + m, (char *)to + tat);
  else if (f_plain)
    spx_unpack(to, 0, tt, tat, tat + m, (const char *)from + fat);
  else {
    char bounce[BOUNCE];
    for (int64_t done = 0, n; done < m; done += n) {
      n = m - done < BOUNCE ? m - done : BOUNCE;
      spx_pack(from, 0, ft, fat + done, fat + done + n, bounce);
      spx_unpack(to, 0, tt, tat + done, tat + done + n, bounce);
    }
  }
}

/* ---- by the kernel ------------------------------------------------------------------------------------------- */

/* The target is dead, but maybe nobody has said so yet: the error comes when the failure that it tells of can be asked for. */
static int lost(const spx_win *w, int target)
{
  uint32_t proc = w->targets[target].proc;
  for (;;) {
    uint32_t ticket = spx_ticket();
    if (spx_proc_dead(proc) || __atomic_load_n(&spx_proc_of(proc)->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_EXITED)
      break;
    spx_wait_event(ticket, 0);
  }
  spx_detail("rank %d of the window has failed", target);
  return MPIX_ERR_PROC_FAILED;
}

static int out_of_memory_of(int target, uint64_t addr)
{
  spx_detail("address 0x%llx of rank %d is not memory that can be accessed (a dynamic window: it is not attached)",
             (unsigned long long)addr, target);
  return MPI_ERR_RMA_RANGE;
}

/* Cuts a list of runs down to n bytes. */
static int trim(struct iovec *iov, int k, int64_t n)
{
  for (int i = 0; i < k; i++) {
    if ((int64_t)iov[i].iov_len >= n) {
      iov[i].iov_len = (size_t)n;
      return i + 1;
    }
    n -= (int64_t)iov[i].iov_len;
  }
  return k;
}

static int by_kernel(spx_win *w, int target, bool put, uint64_t raddr, const spx_type *rtype, int64_t at, void *lbuf,
                     const spx_type *ltype, int64_t lat, int64_t m)
{
  spx_proc *p = spx_proc_of(w->targets[target].proc);
  pid_t pid = (pid_t)__atomic_load_n(&p->pid, __ATOMIC_ACQUIRE);
  for (int64_t done = 0; done < m;) {
    struct iovec remote[IOVS], local[IOVS];
    int64_t rn, ln;
    int nr = spx_iovecs((void *)(uintptr_t)raddr, 0, rtype, at + done, at + m, remote, IOVS, &rn);
    int nl = spx_iovecs(lbuf, 0, ltype, lat + done, lat + m, local, IOVS, &ln);
    if (rn < ln) nl = trim(local, nl, rn);
    if (ln < rn) nr = trim(remote, nr, ln);
    ssize_t got = put ? process_vm_writev(pid, local, (unsigned long)nl, remote, (unsigned long)nr, 0)
                      : process_vm_readv(pid, local, (unsigned long)nl, remote, (unsigned long)nr, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ESRCH) return lost(w, target);
    if (got <= 0) return out_of_memory_of(target, (uint64_t)(uintptr_t)remote[0].iov_base);
    done += got;
  }
  return MPI_SUCCESS;
}

/* ---- by mail ------------------------------------------------------------------------------------------------- */

enum { MAIL_NONE = 0, MAIL_ASKED, MAIL_DONE };
typedef struct mailbox {
  uint32_t latch; /* of the origin whose turn it is */
  uint32_t state; /* the origin: ASKED; the target: DONE */
  uint32_t from;  /* process to wake */
  uint32_t put;
  int32_t error;
  uint32_t n;
  uint8_t pad[40];
  struct {
    uint64_t base, size;
  } run[IOVS];
  uint8_t data[SPX_MAILBOX_BYTES - 64 - 16 * IOVS];
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
  uint8_t *d = b->data;
  uint64_t room = sizeof b->data;
  for (uint32_t i = 0; i < b->n && i < IOVS; i++) {
    uint64_t base = b->run[i].base, size = b->run[i].size;
    if (size > room || !is_ours(w, base, size)) return MPI_ERR_RMA_RANGE;
    if (b->put)
      memcpy((void *)(uintptr_t)base, d, size);
    else
      memcpy(d, (void *)(uintptr_t)base, size);
    d += size;
    room -= size;
  }
  return MPI_SUCCESS;
}

static int serve(spx_poller *p)
{
  spx_win *w = (spx_win *)((char *)p - offsetof(spx_win, server.poller));
  mailbox *b = box_of(w, w->rank);
  if (SPX_LIKELY(__atomic_load_n(&b->state, __ATOMIC_ACQUIRE) != MAIL_ASKED)) return 0;
  b->error = do_as_asked(w, b);
  uint32_t from = b->from;
  __atomic_store_n(&b->state, MAIL_DONE, __ATOMIC_RELEASE);
  spx_ring_bell(from);
  return 1;
}

void spx_rma_serve(spx_win *w)
{
  w->server.poller.poll = serve;
  spx_poller_add(&w->server.poller);
}

void spx_rma_serve_end(spx_win *w) { spx_poller_del(&w->server.poller); }

/* Waits until the box is not being read or written by its owner. False: the owner is dead. */
static bool await_answer(const spx_win *w, int target, const mailbox *b)
{
  for (;;) {
    uint32_t ticket = spx_ticket();
    if (__atomic_load_n(&b->state, __ATOMIC_ACQUIRE) != MAIL_ASKED) return true;
    if (spx_ndead && spx_proc_dead(w->targets[target].proc)) return false;
    spx_wait_event(ticket, 0);
  }
}

static int by_mail(spx_win *w, int target, bool put, uint64_t raddr, const spx_type *rtype, int64_t at, void *lbuf,
                   const spx_type *ltype, int64_t lat, int64_t m)
{
  mailbox *b = box_of(w, target);
  int err = MPI_SUCCESS;
  spx_latch(&b->latch);
  for (int64_t done = 0; done < m && err == MPI_SUCCESS;) {
    if (!await_answer(w, target, b)) {
      err = lost(w, target);
      break;
    }
    struct iovec remote[IOVS];
    int64_t n, most = (int64_t)sizeof b->data < m - done ? (int64_t)sizeof b->data : m - done;
    int k = spx_iovecs((void *)(uintptr_t)raddr, 0, rtype, at + done, at + done + most, remote, IOVS, &n);
    for (int i = 0; i < k; i++) {
      b->run[i].base = (uint64_t)(uintptr_t)remote[i].iov_base;
      b->run[i].size = remote[i].iov_len;
    }
    b->n = (uint32_t)k;
    b->put = put;
    b->from = spx_me;
    if (put) spx_pack(lbuf, 0, ltype, lat + done, lat + done + n, b->data);
    __atomic_store_n(&b->state, MAIL_ASKED, __ATOMIC_RELEASE);
    spx_ring_bell(w->targets[target].proc);
    if (!await_answer(w, target, b))
      err = lost(w, target);
    else if (b->error != MPI_SUCCESS)
      err = out_of_memory_of(target, b->run[0].base);
    else if (!put)
      spx_unpack(lbuf, 0, ltype, lat + done, lat + done + n, b->data);
    done += n;
  }
  spx_unlatch(&b->latch);
  return err;
}

/* -------------------------------------------------------------------------------------------------------------- */

int spx_rma_move(spx_win *w, int target, bool put, uint64_t raddr, const spx_type *rtype, int64_t at, void *lbuf,
                 const spx_type *ltype, int64_t lat, int64_t m)
{
  if (m <= 0) return MPI_SUCCESS;
  if (SPX_LIKELY(w->targets[target].here || target == w->rank)) {
    void *mem = (void *)(uintptr_t)raddr;
    if (put)
      copy(mem, rtype, at, lbuf, ltype, lat, m);
    else
      copy(lbuf, ltype, lat, mem, rtype, at, m);
    return MPI_SUCCESS;
  }
  return (w->mail ? by_mail : by_kernel)(w, target, put, raddr, rtype, at, lbuf, ltype, lat, m);
}
