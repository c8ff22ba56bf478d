/* rma_move.c - moving data between a process and the window memory of another. MPI-5.0, 12.3.
 *
 * Four ways: loads and stores, when the memory is mapped here; process_vm_readv and
 * process_vm_writev; active messages (rma_am.c), where the kernel does not let us, or is slow: it
 * looks up every run of memory anew, 0.4 us each; and messages (rma_far.c), where no memory is
 * shared. In all of them the origin takes datatypes apart, so that a target only ever sees
 * addresses and lengths.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/uio.h>
#include <time.h>
#include "dp.h"
#include "plan.h"
#include "rma.h"

#define IOVS       64
#define SHORT_RUN  256   /* average length below which runs are short */
#define SIEVE_RUNS 1024  /* short runs that are read at once, with the gaps between them */
#define SIEVE      65536 /* bytes that they may be apart */

/* ---- in the same address space ---- */

static void copy(void *to, const spx_type *tt, int64_t tat, const void *from, const spx_type *ft,
                 int64_t fat, int64_t m)
{
  spx_copy_typed(to, 0, tt, tat, from, 0, ft, fat, m);
}

/* ---- by the kernel ---- */

/* The target is gone, but maybe not reported yet: the error is raised when the failure can be
 * queried. A process that has left in order rings no bell: it is checked for every millisecond. */
int spx_rma_lost(const spx_win *w, int target)
{
  uint32_t proc = w->targets[target].proc;
  for (;;) {
    uint32_t ticket = spx_ticket();
    if (spx_proc_dead(proc) ||
        __atomic_load_n(&spx_proc_of(proc)->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_EXITED)
      break;
    if (spx_rma_given_up(w)) {
      spx_detail(SPX_RMA_GIVEN_UP);
      return MPIX_ERR_REVOKED;
    }
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    spx_wait_event(ticket, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + 1000000);
  }
  spx_detail("rank %d of the window has failed", target);
  return MPIX_ERR_PROC_FAILED;
}

int spx_rma_no_memory(int target, uint64_t addr)
{
  spx_detail("address 0x%llx of rank %d is not memory that can be accessed (a dynamic window: it "
             "is not attached)",
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

/* Lists the runs of m bytes, or of as many as lie SIEVE bytes apart at most, and gives the first
 * and the last address. How many bytes; 0: too few. */
static int64_t list_near(uint64_t raddr, const spx_type *rtype, int64_t at, int64_t m,
                         struct iovec *run, char **low, char **high)
{
  int64_t n;
  for (int most = SIEVE_RUNS; most >= IOVS; most /= 4) {
    int k = spx_iovecs((void *)(uintptr_t)raddr, 0, rtype, at, at + m, run, most, &n);
    *low = *high = run[0].iov_base;
    for (int i = 0; i < k; i++) {
      char *a = run[i].iov_base, *b = a + run[i].iov_len;
      *low = a < *low ? a : *low;
      *high = b > *high ? b : *high;
    }
    if (*high - *low <= SIEVE) return n;
  }
  return 0;
}

/* Reads short runs of the target, m <= SIEVE bytes at most, at once, with the gaps between them,
 * which are the window's too or at least readable; then unpacks them here. Returns the bytes that
 * were moved; 0 where that is no use. */
static int64_t sieve(pid_t pid, uint64_t raddr, const spx_type *rtype, int64_t at, void *lbuf,
                     const spx_type *ltype, int64_t lat, int64_t m)
{
  typedef struct {
    char read[SIEVE], packed[SIEVE];
    struct iovec run[SIEVE_RUNS];
  } work;
  work *w = spx_temp_get(sizeof *w);
  char *low, *high;
  int64_t n = w ? list_near(raddr, rtype, at, m, w->run, &low, &high) : 0;
  if (n > 0) {
    struct iovec to = {w->read, (size_t)(high - low)}, from = {low, (size_t)(high - low)};
    if (process_vm_readv(pid, &to, 1, &from, 1, 0) == high - low) {
      char *p = w->packed;
      for (int i = 0; p < w->packed + n; p += w->run[i++].iov_len)
        spx_copy_short(p, w->read + ((char *)w->run[i].iov_base - low), w->run[i].iov_len);
      spx_unpack(lbuf, 0, ltype, lat, lat + n, w->packed);
    } else
      n = 0;
  }
  if (w) spx_temp_put(w, sizeof *w);
  return n;
}

static bool are_short(int k, int64_t n) { return k == IOVS && n < IOVS * SHORT_RUN; }

/* Bytes to move at a time where the data are not one run: runs that touch are joined when they are
 * listed, and all of them are visited. */
static int64_t at_a_time(const spx_type *t, int64_t m)
{
  return (t->flags & SPX_T_CONTIG) || m < SIEVE ? m : SIEVE;
}

static ssize_t ask_kernel(pid_t pid, bool put, const struct iovec *local, int nl,
                          const struct iovec *remote, int nr)
{
  ssize_t got;
  do
    got = put ? process_vm_writev(pid, local, (unsigned long)nl, remote, (unsigned long)nr, 0)
              : process_vm_readv(pid, local, (unsigned long)nl, remote, (unsigned long)nr, 0);
  while (got < 0 && errno == EINTR);
  return got;
}

/* Moves bytes [lat, lat + m) of the packed form of what is here, at most SIEVE of them; short runs
 * are packed first, or unpacked then. Returns what the kernel does. */
static ssize_t move_runs(pid_t pid, bool put, struct iovec *remote, int nr, void *lbuf,
                         const spx_type *ltype, int64_t lat, int64_t m)
{
  struct iovec local[IOVS];
  int64_t ln;
  char *room;
  int nl = spx_iovecs(lbuf, 0, ltype, lat, lat + at_a_time(ltype, m), local, IOVS, &ln);
  if (!are_short(nl, ln) || !(room = spx_temp_get(SIEVE)))
    return ask_kernel(pid, put, local, nl, remote, trim(remote, nr, ln));
  ln = at_a_time(ltype, m);
  if (put) spx_pack(lbuf, 0, ltype, lat, lat + ln, room);
  local[0] = (struct iovec){room, (size_t)ln};
  ssize_t got = ask_kernel(pid, put, local, 1, remote, trim(remote, nr, ln));
  if (!put && got > 0) spx_unpack(lbuf, 0, ltype, lat, lat + got, room);
  int err = errno;
  spx_temp_put(room, SIEVE);
  errno = err;
  return got;
}

/* Its pid is still its own: the end of a process is published before its pid can be another's. */
static bool has_pid(uint32_t proc)
{
  return __atomic_load_n(&spx_proc_of(proc)->agent_state, __ATOMIC_ACQUIRE) == SPX_AGENT_STARTED;
}

static int by_kernel(spx_win *w, int target, bool put, uint64_t raddr, const spx_type *rtype,
                     int64_t at, void *lbuf, const spx_type *ltype, int64_t lat, int64_t m)
{
  uint32_t proc = w->targets[target].proc;
  pid_t pid = spx_pid_of(proc);
  bool willing = w->boxes != NULL; /* the target answers active messages */
  for (int64_t done = 0; done < m;) {
    struct iovec remote[IOVS];
    int64_t rn, moved = 0, some = at_a_time(rtype, m - done);
    int nr = spx_iovecs((void *)(uintptr_t)raddr, 0, rtype, at + done, at + done + some, remote,
                        IOVS, &rn);
    if (are_short(nr, rn)) {
      if (!put) moved = sieve(pid, raddr, rtype, at + done, lbuf, ltype, lat + done, some);
      if (moved == 0 && willing) {
        int err = spx_rma_by_am(w, target, put, raddr, rtype, at + done, lbuf, ltype, lat + done,
                                some, &moved);
        if (err != MPI_SUCCESS) return err;
        willing = moved == some;
      }
      done += moved;
      if (moved) continue;
    }
    if (put && !has_pid(proc)) return spx_rma_lost(w, target);
    ssize_t got = move_runs(pid, put, remote, nr, lbuf, ltype, lat + done, rn);
    if (got < 0 && errno == ESRCH) return spx_rma_lost(w, target);
    if (got <= 0) return spx_rma_no_memory(target, (uint64_t)(uintptr_t)remote[0].iov_base);
    done += got;
  }
  return has_pid(proc) ? MPI_SUCCESS : spx_rma_lost(w, target);
}

int spx_rma_move(spx_win *w, int target, bool put, uint64_t raddr, const spx_type *rtype,
                 int64_t at, void *lbuf, const spx_type *ltype, int64_t lat, int64_t m)
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
  if (w->targets[target].far)
    return spx_rma_far_move(w, target, put, raddr, rtype, at, lbuf, ltype, lat, m);
  int64_t moved;
  if (w->am) return spx_rma_by_am(w, target, put, raddr, rtype, at, lbuf, ltype, lat, m, &moved);
  return by_kernel(w, target, put, raddr, rtype, at, lbuf, ltype, lat, m);
}
