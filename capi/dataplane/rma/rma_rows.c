/* rma_rows.c - window memory as rows of runs: written down by an origin, checked and moved by the
 * owner of the memory. */
#include <sys/uio.h>
#include "dp.h"
#include "rma_rows.h"

#define RUNS 128 /* that are processed at a time */

/* ---- at the origin ---- */

/* Adds a run to the rows; false when there is no room. */
static bool add_run(spx_rma_row *row, uint32_t most, uint32_t *n, uint64_t base, uint64_t size)
{
  spx_rma_row *r = *n ? &row[*n - 1] : NULL;
  if (r && r->size == size && base > r->base &&
      (r->count == 1 || base - r->base == r->stride * r->count)) {
    if (r->count++ == 1) r->stride = base - r->base;
    return true;
  }
  if (*n == most) return false;
  row[(*n)++] = (spx_rma_row){base, size, 0, 1};
  return true;
}

int64_t spx_rma_describe(spx_rma_row *row, uint32_t most, uint32_t *n, uint64_t base,
                         const spx_type *t, int64_t at, int64_t m, int64_t *runs)
{
  int64_t done = 0, got;
  *n = 0;
  *runs = 0;
  while (done < m) {
    struct iovec run[RUNS];
    int k = spx_iovecs((void *)(uintptr_t)base, 0, t, at + done, at + m, run, RUNS, &got);
    for (int i = 0; i < k; i++, (*runs)++) {
      if (!add_run(row, most, n, (uint64_t)(uintptr_t)run[i].iov_base, run[i].iov_len)) return done;
      done += (int64_t)run[i].iov_len;
    }
  }
  return done;
}

/* ---- at the owner ---- */

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

/* Whether that is this process's window memory. */
static bool is_ours(const spx_win *w, uint64_t base, uint64_t size)
{
  if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) return spx_win_attached(w, base, size);
  uint64_t from = (uint64_t)(uintptr_t)w->base;
  return base >= from && base - from <= (uint64_t)w->bytes &&
         size <= (uint64_t)w->bytes - (base - from);
}

int64_t spx_rma_rows_bytes(const spx_win *w, const spx_rma_row *row, uint32_t n, uint64_t most)
{
  uint64_t room = most;
  for (uint32_t i = 0; i < n; i++) {
    spx_rma_row r = row[i];
    if (r.size == 0 || r.size > room || r.count == 0 || r.count > room / r.size) return -1;
    for (uint64_t k = 0; k < r.count; k++)
      if (!is_ours(w, r.base + k * r.stride, r.size)) return -1;
    room -= r.size * r.count;
  }
  return (int64_t)(most - room);
}

void spx_rma_rows_move(const spx_rma_row *row, uint32_t n, bool put, void *data)
{
  char *d = (char *)data;
  for (uint32_t i = 0; i < n; i++) {
    char *mem = (char *)(uintptr_t)row[i].base;
    for (uint64_t k = 0; k < row[i].count; k++, mem += row[i].stride, d += row[i].size)
      if (put)
        spx_copy_short(mem, d, row[i].size);
      else
        spx_copy_short(d, mem, row[i].size);
  }
}
