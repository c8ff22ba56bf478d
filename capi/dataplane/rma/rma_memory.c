/* rma_memory.c - the memory of windows (file_memory.c), and the locks in it. MPI-5.0, 12.2 and
 * 12.5.3.
 *
 * Locks are queues: a process that finds a lock taken draws a ticket and sleeps on its bell; a
 * release rings the bells of all waiters. The dead neither hold nor wait. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "dp.h"
#include "rma.h"

#define PAGE         4096u
#define ROUND(n, to) (((uint64_t)(n) + (to)-1) / (to) * (to))

/* ---- chunks ---- */

enum { CHUNK_LEAST = 16384, CHUNK_MOST = 1 << 20, SPARES = 2, MAPS = 4 };
typedef struct {
  uint64_t offset, bytes;
  char *map; /* NULL among the spares */
} chunk;
static chunk spares[SPARES], maps[MAPS]; /* oldest first; bytes 0: none. Under spx_lock */
static uint8_t file_id[16];              /* the memory file that they belong to */

/* Takes an entry out; what is behind it moves up. */
static chunk take_out(chunk *list, int n, int i)
{
  chunk p = list[i];
  memmove(&list[i], &list[i + 1], (size_t)(n - i - 1) * sizeof *list);
  list[n - 1] = (chunk){0, 0, NULL};
  return p;
}

/* Puts an entry at the end; returns what has to go for it. */
static chunk put_in(chunk *list, int n, chunk p)
{
  chunk out = {0, 0, NULL};
  int i = 0;
  while (i < n && list[i].bytes) i++;
  if (i == n) {
    out = take_out(list, n, 0);
    i--;
  }
  list[i] = p;
  return out;
}

/* MPI may have ended and begun anew with another file. */
static void check_file(void)
{
  if (memcmp(file_id, spx_segment->job_id, sizeof file_id) == 0) return;
  memcpy(file_id, spx_segment->job_id, sizeof file_id);
  for (int i = 0; i < MAPS; i++)
    if (maps[i].bytes) munmap(maps[i].map, maps[i].bytes);
  memset(maps, 0, sizeof maps);
  memset(spares, 0, sizeof spares);
}

uint64_t spx_chunk_spare(uint64_t *offset)
{
  chunk p = {0, 0, NULL};
  spx_lock();
  check_file();
  for (int i = SPARES - 1; i >= 0 && !p.bytes; i--)
    if (spares[i].bytes) p = take_out(spares, SPARES, i);
  spx_unlock();
  *offset = p.offset;
  return p.bytes;
}

int spx_chunk_take(uint64_t bytes, uint64_t *offset, uint64_t *got)
{
  *got = bytes;
  if (bytes <= CHUNK_MOST) {
    *got = 0;
    spx_lock();
    check_file();
    for (int i = SPARES - 1; i >= 0 && !*got; i--)
      if (spares[i].bytes >= bytes) {
        chunk p = take_out(spares, SPARES, i);
        *offset = p.offset;
        *got = p.bytes;
      }
    spx_unlock();
    if (*got) return 0;
    for (*got = CHUNK_LEAST; *got < bytes;) *got *= 2;
  }
  return spx_file_take(*got, offset);
}

void spx_chunk_give(uint64_t offset, uint64_t bytes, char *map, uint64_t used)
{
  if (bytes <= CHUNK_MOST) {
    if (map) memset(map, 0, used);
    spx_lock();
    check_file();
    chunk out = put_in(spares, SPARES, (chunk){offset, bytes, NULL});
    spx_unlock();
    offset = out.offset, bytes = out.bytes;
  }
  spx_file_drop(offset, bytes);
}

char *spx_chunk_map(uint64_t offset, uint64_t bytes)
{
  chunk p = {0, 0, NULL};
  spx_lock();
  check_file();
  for (int i = 0; i < MAPS && !p.bytes; i++)
    if (maps[i].bytes == bytes && maps[i].offset == offset) p = take_out(maps, MAPS, i);
  spx_unlock();
  return p.bytes ? p.map : spx_file_map(offset, bytes);
}

void spx_chunk_unmap(char *map, uint64_t offset, uint64_t bytes, bool again)
{
  chunk out = {offset, bytes, map};
  if (again && bytes <= CHUNK_MOST) {
    spx_lock();
    check_file();
    out = put_in(maps, MAPS, out);
    spx_unlock();
  }
  if (out.bytes) spx_file_unmap(out.map, out.bytes);
}

/* ---- control: cells, rows, mailboxes ---- */

static uint64_t row_bytes(int n) { return ROUND((uint64_t)n * 5, SPX_LINE); }

uint64_t spx_win_control_bytes(int n, int boxed)
{
  uint64_t each = sizeof(spx_win_cell) + row_bytes(n) + (boxed ? SPX_MAILBOX_BYTES : 0);
  return ROUND(each * (uint64_t)n, PAGE);
}

void spx_win_control_set(spx_win *w)
{
  w->row_bytes = row_bytes(w->size);
  w->cells = (spx_win_cell *)w->map;
  w->rows = w->map + (uint64_t)w->size * sizeof(spx_win_cell);
  w->boxes = w->boxed ? w->rows + (uint64_t)w->size * w->row_bytes : NULL;
  if (SPX_UNLIKELY(spx_set.wrap)) w->cells[w->rank].tickets = (uint32_t)spx_count_from(32, 3);
}

/* ---- latches ---- */

/* The owner works, has lost its processor, answers our active messages (then we have to answer
 * its), or is dead. */
void spx_latch_slow(const spx_win *w, uint32_t *latch)
{
  uint32_t me = (uint32_t)w->rank + 1;
  for (uint32_t round = 1;; round++) {
    uint32_t owner = __atomic_load_n(latch, __ATOMIC_RELAXED);
    bool dead = owner != 0 && owner != me && spx_ndead && spx_proc_dead(w->targets[owner - 1].proc);
    if ((owner == 0 || dead) &&
        __atomic_compare_exchange_n(latch, &owner, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return;
    if (round < 100 && spx_set.spin > 0)
      __builtin_ia32_pause();
    else if (round % 8 == 0)
      spx_progress();
    else
      sched_yield();
  }
}

bool spx_latch_try(const spx_win *w, uint32_t *latch)
{
  uint32_t me = (uint32_t)w->rank + 1, owner = __atomic_load_n(latch, __ATOMIC_RELAXED);
  bool dead = owner != 0 && owner != me && spx_ndead && spx_proc_dead(w->targets[owner - 1].proc);
  return (owner == 0 || dead) &&
         __atomic_compare_exchange_n(latch, &owner, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* ---- locks ---- */

/* A row of a target: the ticket of each waiting process, 0 when it does not wait, then the lock
 * that each holds. */
static uint32_t *tickets(const spx_win *w, int target)
{
  return (uint32_t *)(w->rows + (uint64_t)target * w->row_bytes);
}
static uint8_t *holds(const spx_win *w, int target)
{
  return (uint8_t *)(tickets(w, target) + w->size);
}

static bool is_dead(const spx_win *w, int rank)
{
  return spx_ndead && spx_proc_dead(w->targets[rank].proc);
}

static void drop(spx_win_cell *c, uint8_t *held, int rank)
{
  if (held[rank] == SPX_HELD_EXCLUSIVE) c->exclusive = 0;
  if (held[rank] == SPX_HELD_SHARED) c->shared--;
  held[rank] = SPX_HELD_NOT;
}

/* Takes from the dead what they hold and wait for. */
static void purge(spx_win *w, int target)
{
  spx_win_cell *c = &w->cells[target];
  uint32_t *ticket = tickets(w, target);
  for (int i = 0; i < w->size; i++) {
    if (!is_dead(w, i)) continue;
    drop(c, holds(w, target), i);
    if (ticket[i]) c->waiting--;
    ticket[i] = 0;
  }
}

/* Whether another process has waited longer than rank, whose ticket is mine (0: none drawn). */
static bool others_first(const spx_win *w, int target, int rank, uint32_t mine)
{
  const uint32_t *ticket = tickets(w, target);
  for (int i = 0; i < w->size; i++)
    if (ticket[i] && i != rank && (mine == 0 || (int32_t)(ticket[i] - mine) < 0)) return true;
  return false;
}

/* For a waiter elsewhere the target waits, and requests the lock. */
static void ring_waiters(spx_win *w, int target, int rank)
{
  const uint32_t *ticket = tickets(w, target);
  for (int i = 0; i < w->size; i++)
    if (__atomic_load_n(&ticket[i], __ATOMIC_RELAXED) && i != rank)
      spx_ring_bell(w->targets[w->targets[i].far ? target : i].proc);
}

bool spx_win_try_lock(spx_win *w, int target, int rank, spx_held how)
{
  spx_win_cell *c = &w->cells[target];
  uint32_t *mine = &tickets(w, target)[rank];
  spx_latch(w, &c->latch);
  if (SPX_UNLIKELY(spx_ndead) && (c->exclusive || c->shared || c->waiting)) purge(w, target);
  bool free = how == SPX_HELD_EXCLUSIVE ? !c->exclusive && !c->shared : !c->exclusive;
  bool waiters = c->waiting > (*mine != 0),
       got = free && !(waiters && others_first(w, target, rank, *mine));
  if (got) {
    if (how == SPX_HELD_EXCLUSIVE)
      c->exclusive = (uint32_t)rank + 1;
    else
      c->shared++;
    holds(w, target)[rank] = (uint8_t)how;
    if (*mine) c->waiting--;
    *mine = 0;
  } else if (!*mine) {
    *mine = ++c->tickets ? c->tickets : ++c->tickets;
    c->waiting++;
  }
  spx_unlatch(&c->latch);
  /* the next may be a reader too */
  if (got && waiters && how == SPX_HELD_SHARED) ring_waiters(w, target, rank);
  return got;
}

static void stop_waiting(spx_win *w, int target)
{
  spx_win_cell *c = &w->cells[target];
  uint32_t *mine = &tickets(w, target)[w->rank];
  spx_latch(w, &c->latch);
  if (*mine) c->waiting--;
  *mine = 0;
  spx_unlatch(&c->latch);
}

int spx_win_lock(spx_win *w, int target, spx_held how)
{
  if (SPX_UNLIKELY(w->targets[target].far)) return spx_rma_far_lock(w, target, how);
  for (;;) {
    uint32_t ticket = spx_ticket();
    if (is_dead(w, target)) {
      stop_waiting(w, target);
      spx_detail("rank %d of the window, which has failed, cannot be locked", target);
      return MPIX_ERR_PROC_FAILED;
    }
    if (spx_win_try_lock(w, target, w->rank, how)) return MPI_SUCCESS;
    spx_wait_event(ticket, 0);
  }
}

void spx_win_drop_lock(spx_win *w, int target, int rank)
{
  spx_win_cell *c = &w->cells[target];
  spx_latch(w, &c->latch);
  drop(c, holds(w, target), rank);
  bool ring = c->waiting > 0;
  spx_unlatch(&c->latch);
  if (ring) ring_waiters(w, target, rank);
}

void spx_win_unlock(spx_win *w, int target, spx_held how)
{
  if (how == SPX_HELD_UNCHECKED) return;
  if (SPX_UNLIKELY(w->targets[target].far)) {
    spx_rma_far_unlock(w, target);
    return;
  }
  spx_win_drop_lock(w, target, w->rank);
  if (SPX_UNLIKELY(w->far != NULL) && target == w->rank) spx_rma_far_grant(w);
}
