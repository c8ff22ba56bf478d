/* far.c - copies a message out of its sender's memory (process_vm_readv), whatever the datatypes of
 * the two are.
 *
 * A sender whose data are not contiguous announces the address of its datatype, too. The receiver
 * reads the layout, which has no pointers, lists the sender's memory runs and its own with it, and
 * the kernel copies from run to run: no process packs. Every run costs the kernel a look-up, so
 * that only long ones are worth it. */
#define _GNU_SOURCE
#include "far.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include "pack.h"
#include "plan.h"

enum {
  IOVS = 64,
  BOUNCE = 65536,  /* bytes */
  LEAST = 1024,    /* of the bounce buffer when memory is out */
  SMALL_RUN = 512, /* mean run of the receiver below which a bounce buffer beats iovecs */
  FIRST_WORDS = 64 /* of a layout: few have more */
};

bool spx_read_exactly(pid_t pid, void *to, uint64_t from, uint64_t n)
{
  struct iovec local = {to, n}, remote = {(void *)(uintptr_t)from, n};
  ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (got >= 0 && (uint64_t)got != n) errno = EFAULT;
  return got >= 0 && (uint64_t)got == n;
}

int spx_far_open(spx_far *f, pid_t pid, uint64_t addr, uint64_t type)
{
  *f = (spx_far){.pid = pid, .addr = addr};
  if (!type) return 0;
  int64_t first[FIRST_WORDS] = {0};
  spx_type theirs;
  enum { WORD = sizeof *first };
  struct iovec local = {first, sizeof first}, remote;
  if (!spx_read_exactly(pid, &theirs, type, sizeof theirs)) return errno;
  remote = (struct iovec){(void *)(uintptr_t)theirs.layout, sizeof first};
  f->type = theirs;
  f->type.layout = f->type.typed = NULL;
  /* fewer where the memory ends behind a short one */
  ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (got < 0) return errno;
  int64_t words = first[offsetof(spx_layout, words) / WORD];
  if (got < (ssize_t)sizeof(spx_layout) || words < (int64_t)(sizeof(spx_layout) / WORD) ||
      words > SPX_LAYOUT_MOST)
    return EFAULT; /* its datatype has been freed */
  int64_t *all = malloc((size_t)words * WORD);
  if (!all) return ENOMEM;
  size_t have = (size_t)(words < got / WORD ? words : got / WORD);
  memcpy(all, first, have * WORD);
  f->type.layout = (const spx_layout *)all;
  uint64_t rest = ((uint64_t)words - have) * WORD;
  if (rest == 0 ||
      spx_read_exactly(pid, all + have, (uint64_t)(uintptr_t)remote.iov_base + have * WORD, rest))
    return 0;
  return errno;
}

void spx_far_close(spx_far *f) { free((void *)(uintptr_t)f->type.layout); }

/* Takes got bytes off the front of a list, of which the first is *first. */
static void advance(struct iovec *iov, int *first, uint64_t got)
{
  while (got > 0) {
    struct iovec *v = &iov[*first];
    uint64_t part = got < v->iov_len ? got : v->iov_len;
    v->iov_base = (char *)v->iov_base + part;
    v->iov_len -= part;
    got -= part;
    if (v->iov_len == 0) ++*first;
  }
}

/* Copies n bytes; the lists hold as many or more. 0, or an errno. */
static int read_runs(pid_t pid, struct iovec *local, int n_local, struct iovec *remote,
                     int n_remote, uint64_t n)
{
  int l = 0, r = 0;
  while (n > 0) {
    ssize_t got = process_vm_readv(pid, local + l, (unsigned long)(n_local - l), remote + r,
                                   (unsigned long)(n_remote - r), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : EFAULT;
    n -= (uint64_t)got;
    if (n == 0) break;
    advance(local, &l, (uint64_t)got);
    advance(remote, &r, (uint64_t)got);
  }
  return 0;
}

int spx_far_read(const spx_far *f, spx_request *r, uint64_t at, uint64_t n, uint64_t *done)
{
  struct iovec local[IOVS], remote[IOVS] = {{(void *)(uintptr_t)(f->addr + at), n}};
  int64_t covered = 0;
  int far_runs = 1, runs = 1;
  if (f->type.layout) {
    far_runs = spx_iovecs((void *)(uintptr_t)f->addr, 0, &f->type, (int64_t)at, (int64_t)(at + n),
                          remote, IOVS, &covered);
    n = (uint64_t)covered;
  }
  *done = n;
  if (r->type->flags & SPX_T_CONTIG) {
    local[0] = (struct iovec){(char *)r->buf + at, n};
    return read_runs(f->pid, local, 1, remote, far_runs, n);
  }
  runs =
      spx_iovecs(r->buf, r->count, r->type, (int64_t)at, (int64_t)(at + n), local, IOVS, &covered);
  if (runs > 0 && covered / runs >= SMALL_RUN) {
    *done = (uint64_t)covered;
    return read_runs(f->pid, local, runs, remote, far_runs, *done);
  }
  char own[LEAST], *room = spx_temp_get(BOUNCE), *bounce = room ? room : own;
  uint64_t most = room ? BOUNCE : LEAST;
  if (*done > most) *done = most;
  local[0] = (struct iovec){bounce, *done};
  int err = read_runs(f->pid, local, 1, remote, far_runs, *done);
  if (err == 0) spx_unpack(r->buf, r->count, r->type, (int64_t)at, (int64_t)(at + *done), bounce);
  if (room) spx_temp_put(room, BOUNCE);
  return err;
}
