/* share.c - the memory that the processes of a communicator share for its collectives: making,
 * finding and giving it back. */
#include "share.h"
#include <stdlib.h>
#include "rma.h"

enum { PAGE = 4096, NEAR = 4 /* entries that a context may have */, BROKEN = 1, PIECE = 65536 };
#define ROUND(n, to) (((uint64_t)(n) + (to)-1) / (to) * (to))

typedef struct {
  uint64_t lines, cells, small_slots, bulk, bytes;
  uint32_t depth, small_depth;
} shape;

/* Up to 16 ranks have 256 KiB of small slots in all: a rank that can run far ahead rarely releases
 * its processor. */
static shape shape_of(uint32_t n)
{
  shape s = {.depth = n <= 64 ? 32 : 16, .small_depth = n <= 16 ? 1024 : n <= 64 ? 128 : 64};
  s.lines = ROUND(sizeof(spx_share_head) + n, PAGE);
  s.cells = s.lines + ROUND((uint64_t)n * sizeof(spx_share_line), PAGE);
  s.small_slots = s.cells + ROUND((uint64_t)n * s.depth * sizeof(spx_cell), PAGE);
  s.bulk = s.small_slots + ROUND((uint64_t)n * s.small_depth * sizeof(spx_small_slot), PAGE);
  s.bytes = s.bulk + (uint64_t)SPX_SHARE_PARTS * SPX_SHARE_PART;
  return s;
}

/* ---- the table of places ---- */

/* The entries that may be a context's; NULL: there is no table. The first entry of the table is
 * that of the job's first world. */
static spx_dir_entry *entries_of(uint64_t ctx)
{
  if (!spx_segment || !spx_segment->share_off) return NULL;
  uint64_t h = ctx / SPX_CTX_STEP * 0x9e3779b97f4a7c15ull >> 32;
  spx_dir_entry *table = (spx_dir_entry *)((char *)spx_segment + spx_segment->share_off);
  return table + 1 + h % ((SPX_SHARE_ENTRIES - 1) / NEAR) * NEAR;
}

void spx_share_offer(uint64_t ctx)
{
  spx_dir_entry *e = entries_of(ctx);
  for (int i = 0; e && i < NEAR; i++) {
    uint64_t was = 0;
    if (!__atomic_compare_exchange_n(&e[i].ctx, &was, ctx, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    /* some member of the last one may have had no memory */
    __atomic_store_n(&e[i].place, 0, __ATOMIC_RELEASE);
    return;
  }
}

/* MPI_COMM_WORLD of the processes that the job was started with, for which no entry is offered. */
static bool is_first_world(const spx_comm *c)
{
  return c->flags & SPX_C_WORLD && c->size == (int)spx_segment->world_size &&
         spx_proc_of(spx_me)->world_id == 0;
}

/* The entry of c, or NULL: none was offered. */
static spx_dir_entry *entry_of(const spx_comm *c)
{
  if (c->flags & SPX_C_INTER || !c->ctx) return NULL;
  spx_dir_entry *e = entries_of(c->ctx);
  if (!e) return NULL;
  if (is_first_world(c)) return (spx_dir_entry *)((char *)spx_segment + spx_segment->share_off);
  int k = 0;
  while (k < NEAR && __atomic_load_n(&e[k].ctx, __ATOMIC_ACQUIRE) != c->ctx) k++;
  return k < NEAR ? &e[k] : NULL;
}

/* The entry of c, unless a member is of another job and has another memory file, or c has no other
 * member. */
static spx_dir_entry *offered(const spx_comm *c)
{
  return c->size < 2 || c->flags & (SPX_C_FAR | SPX_C_REPLAY) ? NULL : entry_of(c);
}

int spx_share_offered(const spx_comm *c) { return offered(c) != NULL; }

/* The entry of c will not be used any more. */
static void withdraw(const spx_comm *c, spx_dir_entry *e)
{
  uint64_t was = c->ctx;
  if (!is_first_world(c))
    __atomic_compare_exchange_n(&e->ctx, &was, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* A slot that was never posted in is 0, which is a tick of the first one of each rank, after 2^32
 * ticks. It gets one that comes in another. */
static void clear_first(spx_cell *cell, spx_small_slot *small_slot)
{
  cell->tick = 1;
  small_slot->head = (uint64_t)1 << 32;
}

/* SPX_WRAP=1: what new memory at `place` holds is before the first tick. False: no memory. */
static bool set_back(uint64_t place, const shape *s, uint32_t n)
{
  char *map = spx_file_allocate(place, s->bulk) == 0 ? spx_file_map(place, s->bulk) : NULL;
  for (uint32_t i = 0; map && i < n; i++) {
    ((spx_share_line *)(map + s->lines))[i].through = spx_share_first() - 1;
    clear_first((spx_cell *)(map + s->cells) + i * s->depth,
                (spx_small_slot *)(map + s->small_slots) + i * s->small_depth);
  }
  if (map) spx_file_unmap(map, s->bulk);
  return map != NULL;
}

/* The place in the file of the entry's memory; the first process to come chooses it. */
static uint64_t place_of(spx_dir_entry *e, const shape *s, uint32_t n)
{
  uint64_t place = __atomic_load_n(&e->place, __ATOMIC_ACQUIRE);
  if (place) return place & ~(uint64_t)BROKEN;
  uint64_t mine = spx_file_reserve(s->bytes);
  if (SPX_UNLIKELY(spx_set.wrap) && !set_back(mine, s, n)) mine |= BROKEN;
  if (__atomic_compare_exchange_n(&e->place, &place, mine, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return mine & ~(uint64_t)BROKEN;
  return place & ~(uint64_t)BROKEN;
}

/* ---- attaching and leaving ---- */

static bool allocate(uint64_t from, uint64_t bytes) { return spx_file_allocate(from, bytes) == 0; }

static int no_memory(const spx_comm *c)
{
  spx_dir_entry *e = offered(c);
  if (e) __atomic_fetch_or(&e->place, BROKEN, __ATOMIC_ACQ_REL);
  spx_detail("no memory for the collectives of a communicator of %d processes", c->size);
  return MPI_ERR_NO_MEM;
}

void spx_share_break(spx_comm *c)
{
  no_memory(c);
  if (c->share) c->share->error = MPI_ERR_NO_MEM;
}

int spx_share_attach(spx_comm *c)
{
  if (c->share) return MPI_SUCCESS;
  spx_dir_entry *e = offered(c);
  spx_share *sh = e ? calloc(1, sizeof *sh) : NULL;
  if (!sh) return no_memory(c);
  shape s = shape_of((uint32_t)c->size);
  uint64_t place = place_of(e, &s, (uint32_t)c->size);
  if (__atomic_load_n(&e->place, __ATOMIC_ACQUIRE) & BROKEN) {
    free(sh);
    return no_memory(c);
  }
  sh->entry = e;
  sh->map = allocate(place, s.bulk) ? spx_file_map(place, s.bytes) : NULL;
  if (!sh->map) {
    free(sh);
    return no_memory(c);
  }
  sh->bytes = s.bytes;
  sh->head = (spx_share_head *)sh->map;
  sh->lines = (spx_share_line *)(sh->map + s.lines);
  sh->cells = (spx_cell *)(sh->map + s.cells);
  sh->small_slots = (spx_small_slot *)(sh->map + s.small_slots);
  sh->bulk = sh->map + s.bulk;
  sh->n = (uint32_t)c->size;
  sh->me = (uint32_t)c->rank;
  sh->depth = s.depth;
  sh->small_depth = s.small_depth;
  sh->next = spx_share_first();
  sh->noted = SPX_SHARE_NONE;
  sh->through = sh->safe = sh->next - 1;
  clear_first(spx_share_cell(sh, sh->me, 0), spx_share_small_slot(sh, sh->me, 0));
  atomic_store_explicit(&sh->finished, sh->next - 1, memory_order_relaxed);
  c->share = sh;
  return MPI_SUCCESS;
}

int spx_share_allocate(spx_comm *c, spx_share *sh, uint32_t tick, uint64_t off, uint64_t bytes)
{
  uint64_t first = (uint64_t)(tick % SPX_SHARE_PARTS) * SPX_SHARE_PART + off, end = first + bytes;
  _Static_assert((uint64_t)SPX_SHARE_PARTS * SPX_SHARE_PART / PIECE == 64, "pieces in a word");
  for (uint64_t k = first / PIECE; k * PIECE < end; k++) {
    if (SPX_LIKELY(sh->allocated >> k & 1)) continue;
    uint64_t place = __atomic_load_n(&sh->entry->place, __ATOMIC_RELAXED) & ~(uint64_t)BROKEN;
    if (!allocate(place + (uint64_t)(sh->bulk - sh->map) + k * PIECE, PIECE)) return no_memory(c);
    sh->allocated |= UINT64_C(1) << k;
  }
  return MPI_SUCCESS;
}

/* A member that will never access the memory again, though it has not published that. */
static bool is_gone(uint32_t proc)
{
  const spx_proc *p = spx_proc_of(proc);
  uint32_t agent = __atomic_load_n(&p->agent_state, __ATOMIC_ACQUIRE);
  return agent == SPX_AGENT_DEAD || agent == SPX_AGENT_EXITED;
}

void spx_share_leave(spx_comm *c)
{
  spx_share *sh = c->share;
  spx_dir_entry *e = entry_of(c);
  uint64_t place = e ? __atomic_load_n(&e->place, __ATOMIC_ACQUIRE) & ~(uint64_t)BROKEN : 0;
  c->share = NULL;
  /* not in use, and it will not be */
  if (e && !place && (c->rank == 0 || c->flags & SPX_C_FAR)) withdraw(c, e);
  if (place) {
    shape s = shape_of((uint32_t)c->size);
    spx_share_head *head = sh ? sh->head : (spx_share_head *)spx_file_map(place, s.lines);
    if (head && (sh || allocate(place, s.lines))) {
      __atomic_store_n(&head->left[c->rank], 1, __ATOMIC_SEQ_CST);
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      int here = 0;
      for (int i = 0; i < c->size && !here; i++)
        here = !__atomic_load_n(&head->left[i], __ATOMIC_SEQ_CST) && !is_gone(c->peer[i]);
      uint64_t was = __atomic_load_n(&e->place, __ATOMIC_RELAXED);
      if (!here && (was & ~(uint64_t)BROKEN) == place &&
          __atomic_compare_exchange_n(&e->place, &was, 0, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED)) {
        spx_file_drop(place, s.bytes);
        withdraw(c, e);
      }
    }
    if (head && !sh) spx_file_unmap((char *)head, s.lines);
  }
  if (sh) {
    spx_file_unmap(sh->map, sh->bytes);
    free(sh);
  }
}

/* ---- in use ---- */

int spx_share_trouble(const spx_comm *c, spx_share *sh)
{
  if (SPX_UNLIKELY(__atomic_load_n(&c->revoked, __ATOMIC_RELAXED)))
    return sh->error = MPIX_ERR_REVOKED;
  if (sh->error != MPI_SUCCESS) return sh->error;
  if (SPX_UNLIKELY(spx_deaths != sh->seen_deaths)) {
    sh->seen_deaths = spx_deaths;
    if (spx_comm_failures(c) > 0) sh->error = MPIX_ERR_PROC_FAILED;
  } else if (SPX_UNLIKELY(__atomic_load_n(&sh->entry->place, __ATOMIC_RELAXED) & BROKEN))
    sh->error = MPI_ERR_NO_MEM;
  return sh->error;
}

void spx_share_ring(const spx_comm *c, const spx_share *sh)
{
  for (uint32_t i = 0; i < sh->n; i++)
    if (i != sh->me) spx_bell_if_sleeping(spx_proc_of(c->peer[i]), c->peer[i]);
}
