/* mcast_shelf.c - copies of long multicasts in the memory file of their master's host, which the
 * members of that host read.
 *
 * A master copies a long message once, into a block of its shelf, and is free: its members copy
 * from there, all at the same time and while the rest is still being put down, whether the master
 * calls MPI or not. Processes that read each other's memory pay the kernel for each page, and keep
 * the master until the last of them has begun.
 *
 *   shelf   of a process: addresses behind the laid-out parts of the memory file, with memory as
 * far as blocks have reached block   head, a byte for each process of the file (that process writes
 * it: it has what it wants), data
 *
 * A block is used again when all its readers have said so, are dead or have left MPI. All shelves
 * of a host together take at most spx_set.mcast_shelf bytes, one of them a quarter of that; who
 * finds no room lets his members fetch from him. What a process that has died has put down stays:
 * members who know of a block that is full still receive it.
 */
#include <stdlib.h>
#include "dp.h"
#include "rma.h"

#define PIPELINED    4u           /* readers for each processor who begin before all is there */
#define GROW         (256u << 10) /* bytes of memory that a shelf gets at a time */
#define ROUND(n, to) (((uint64_t)(n) + (to)-1) / (to) * (to))

typedef struct {
  uint64_t filled; /* the master writes: bytes that are there */
  uint32_t readers;
  uint8_t pad[SPX_LINE - 12];
  uint8_t got[]; /* a byte a process: WANTS ... */
} head;

/* What a process says of a block: it has not come to it, or reads; it has, or needs, nothing of it
 * any more; it has all that was there, and waits for more. */
enum { WANTS, HAS, WAITS };

typedef struct {
  uint32_t proc, life;
} reader;

struct spx_block {
  spx_block *next;
  uint64_t at, bytes; /* in the shelf, head included */
  uint32_t n, seen;   /* readers; of them, those known to have it */
  bool open;          /* data still come from elsewhere: nothing else may be put there */
  reader readers[];
};

/* This process's shelf. Blocks lie in the order of their places. */
static struct {
  uint64_t place, room, backed; /* in the file; bytes of addresses, with memory */
  char *map;
  spx_block *blocks;
} shelf;

/* The shelves of others, by process. */
static struct {
  uint64_t place, room;
  char *map;
} * others;

static spx_request *reading; /* receives that wait for more to be put down */
static spx_poller reader_poller;

static uint64_t head_bytes(void) { return ROUND(sizeof(head) + spx_map.nprocs, SPX_LINE); }

bool spx_shelf_reaches(uint32_t proc)
{
  return !(spx_segment->flags & SPX_SEG_TCP) && proc != spx_me && !spx_peer_is_far(proc) &&
         spx_proc_of(proc)->host == spx_proc_of(spx_me)->host;
}

/* ---- the master's side ---- */

static head *head_of(const spx_block *b) { return (head *)(shelf.map + b->at); }
static void say(head *h, uint8_t what)
{
  __atomic_store_n(&h->got[spx_me], what, __ATOMIC_RELEASE);
}

static bool is_read(spx_block *b)
{
  if (b->open) return false;
  for (; b->seen < b->n; b->seen++) {
    const reader *r = &b->readers[b->seen];
    if (__atomic_load_n(&head_of(b)->got[r->proc], __ATOMIC_ACQUIRE) != HAS &&
        spx_life_of(r->proc) == r->life && !spx_proc_left(r->proc))
      return false;
  }
  return true;
}

static void sweep(void)
{
  for (spx_block **p = &shelf.blocks; *p;) {
    spx_block *b = *p;
    if (!is_read(b)) {
      p = &b->next;
      continue;
    }
    *p = b->next;
    free(b);
  }
}

/* Memory for the shelf up to end; false: there is none, or others have it. */
static bool back(uint64_t end)
{
  if (SPX_LIKELY(end <= shelf.backed)) return true;
  uint64_t most = ROUND(end, GROW), more = (most < shelf.room ? most : shelf.room) - shelf.backed;
  uint64_t all = __atomic_add_fetch(&spx_segment->shelf_bytes, more, __ATOMIC_RELAXED);
  if (all <= spx_set.mcast_shelf && spx_file_allocate(shelf.place + shelf.backed, more) == 0) {
    shelf.backed += more;
    return true;
  }
  __atomic_sub_fetch(&spx_segment->shelf_bytes, more, __ATOMIC_RELAXED);
  return false;
}

static bool have_shelf(void)
{
  if (SPX_LIKELY(shelf.map != NULL)) return true;
  if (!(shelf.room = ROUND(spx_set.mcast_shelf / 4, GROW))) return false;
  if (!shelf.place) shelf.place = spx_file_reserve(shelf.room);
  return (shelf.map = spx_file_map(shelf.place, shelf.room)) != NULL;
}

spx_block *spx_shelf_take(uint64_t bytes, const spx_member *members, uint32_t n, bool self,
                          spx_mcast_rts *where)
{
  if (bytes > spx_set.mcast_shelf / 4) return NULL;
  uint64_t need = head_bytes() + ROUND(bytes, SPX_LINE), at = 0;
  if (need > spx_set.mcast_shelf / 4 || !have_shelf()) return NULL;
  sweep();
  spx_block **p = &shelf.blocks, *b;
  for (; *p && (*p)->at - at < need; p = &(*p)->next) at = (*p)->at + (*p)->bytes;
  if (at + need > shelf.room || !back(at + need) ||
      !(b = malloc(sizeof *b + (n + 1) * sizeof *b->readers)))
    return NULL;
  *b = (spx_block){.next = *p, .at = at, .bytes = need};
  *p = b;
  for (uint32_t i = 0; i < n; i++)
    if (spx_shelf_reaches(members[i].proc))
      b->readers[b->n++] = (reader){members[i].proc, spx_life_of(members[i].proc)};
  if (self) b->readers[b->n++] = (reader){spx_me, spx_life_of(spx_me)};
  b->open = self;
  memset(head_of(b), 0, head_bytes());
  head_of(b)->readers = b->n;
  where->shelf = shelf.place;
  where->room = shelf.room;
  where->at = at;
  return b;
}

void *spx_shelf_room(const spx_block *b) { return (char *)head_of(b) + head_bytes(); }

void spx_shelf_came(spx_block *b, uint64_t bytes)
{
  __atomic_store_n(&head_of(b)->filled, bytes, __ATOMIC_RELEASE);
}

void spx_shelf_close(spx_block *b, bool reads)
{
  if (!reads) say(head_of(b), HAS);
  b->open = false;
}

void spx_shelf_drop(spx_block *b)
{
  b->n = b->seen = 0;
  b->open = false;
}

/* While few read, they and this process share the work; many would keep it from its processor. */
static bool is_alone(const spx_block *b) { return b->n > PIPELINED * spx_segment->ncpus; }

/* Puts down the data of r from byte `from` to byte `to`. */
static uint64_t put_down(spx_block *b, const spx_request *r, uint64_t from, uint64_t to)
{
  head *h = head_of(b);
  while (from < to) {
    uint64_t next = to - from < SPX_SHELF_STEP ? to : from + SPX_SHELF_STEP;
    spx_pack(r->buf, r->count, r->type, (int64_t)from, (int64_t)next,
             (char *)h + head_bytes() + from);
    __atomic_store_n(&h->filled, next, __ATOMIC_RELEASE);
    from = next;
  }
  return from;
}

uint64_t spx_shelf_fill(spx_block *b, const spx_request *r, uint64_t from, bool all)
{
  uint64_t n = (uint64_t)r->bytes;
  if (from == n) return n;
  from = put_down(b, r, from,
                  all || is_alone(b) || n - from < SPX_SHELF_STEP ? n : from + SPX_SHELF_STEP);
  if (from < n) return from;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  /* who waits may sleep; whom the message has not reached sleeps on */
  for (uint32_t i = 0; i < b->n; i++) {
    uint32_t reader = b->readers[i].proc;
    if (__atomic_load_n(&head_of(b)->got[reader], __ATOMIC_ACQUIRE) == WAITS)
      spx_bell_if_sleeping(spx_proc_of(reader), reader);
  }
  return from;
}

uint64_t spx_shelf_begin(spx_block *b, const spx_request *r, bool one)
{
  uint64_t n = (uint64_t)r->bytes;
  if (!one) return spx_shelf_fill(b, r, 0, false);
  return put_down(b, r, 0, is_alone(b) && n > SPX_SHELF_STEP ? n - SPX_SHELF_STEP : 0);
}

/* ---- the members' side ---- */

static uint32_t keeper_of(uint32_t master, const spx_mcast_rts *where)
{
  return where->keeper == SPX_NO_PEER ? master : where->keeper;
}

bool spx_shelf_has(uint32_t master, const spx_mcast_rts *where)
{
  return where->shelf && (where->keeper == spx_me || spx_shelf_reaches(keeper_of(master, where)));
}

bool spx_shelf_sound(const spx_mcast_rts *where)
{
  enum { PAGE = 4096 };
  uint64_t end = ROUND(spx_segment->total_bytes, PAGE) +
                 __atomic_load_n(&spx_segment->win_bytes, __ATOMIC_ACQUIRE);
  if (where->shelf % PAGE || where->shelf < spx_segment->total_bytes || where->shelf > end)
    return false;
  if (where->room > end - where->shelf || where->at % SPX_LINE || where->at > where->room)
    return false;
  return head_bytes() <= where->room - where->at &&
         where->rts.bytes <= where->room - where->at - head_bytes();
}

static head *block_of(uint32_t master, const spx_mcast_rts *where)
{
  uint32_t i = keeper_of(master, where);
  if (!others && !(others = calloc(spx_map.nprocs, sizeof *others))) return NULL;
  if (others[i].place != where->shelf || others[i].room != where->room) { /* of another life */
    if (others[i].map && !reading) spx_file_unmap(others[i].map, others[i].room);
    others[i].map = spx_file_map(where->shelf, where->room);
    others[i].place = others[i].map ? where->shelf : 0;
    others[i].room = where->room;
  }
  return others[i].map ? (head *)(others[i].map + where->at) : NULL;
}

void spx_shelf_pass(uint32_t master, const spx_mcast_rts *where)
{
  head *h = block_of(master, where);
  if (h) say(h, HAS);
}

/* All readers together write more than caches hold, and each writes what it will not find there: so
 * they need not be filled with it. Shorter messages are worth that, since who has one uses it. */
static bool is_past_cache(const head *h, uint64_t bytes)
{
  enum { PART = 32 };
  return bytes >= spx_set.past_cache ||
         (bytes >= spx_set.past_cache / PART && bytes * h->readers >= spx_set.past_cache);
}

/* Copies what is there; true when that is all. */
static bool go_on(spx_request *r)
{
  head *h = r->in.block;
  uint64_t want = (uint64_t)r->bytes, there = __atomic_load_n(&h->filled, __ATOMIC_ACQUIRE),
           from = r->in.at;
  const char *data = (const char *)h + head_bytes();
  uint64_t to = there < want ? there : want; /* `want` lies in the shelf: spx_shelf_sound */
  if (to > from) {
    if (r->type->flags & SPX_T_CONTIG && is_past_cache(h, want))
      spx_copy_past_cache((char *)r->buf + from, data + from, to - from);
    else
      spx_unpack(r->buf, r->count, r->type, (int64_t)from, (int64_t)to, data + from);
    r->in.at = to;
  }
  if (to == want)
    say(h, HAS);
  else if (__atomic_load_n(&h->got[spx_me], __ATOMIC_RELAXED) != WAITS)
    say(h, WAITS); /* before it goes to sleep it looks once more, behind a fence (wait.c) */
  return to == want;
}

/* Errors: whoever fails has no use for the block either. */
static void finish(spx_request *r, int error)
{
  head *h = r->in.block;
  if (h && error != MPI_SUCCESS) say(h, HAS);
  r->state = SPX_S_NONE;
  r->in.at = 0;
  spx_complete(r, error);
}

static int read_more(spx_poller *p)
{
  int n = 0;
  for (spx_request **q = &reading; *q;) {
    spx_request *r = *q;
    uint64_t before = r->in.at;
    bool whole = go_on(r);
    n += whole || r->in.at != before;
    if (!whole) {
      q = &r->next;
      continue;
    }
    *q = r->next;
    finish(r, r->error);
  }
  if (!reading) spx_poller_del(p);
  return n;
}

void spx_shelf_read(spx_request *r, uint32_t master, const spx_mcast_rts *where)
{
  head *h = block_of(master, where);
  r->in.at = 0;
  r->in.block = h;
  if (!h)
    finish(r, MPI_ERR_NO_MEM);
  else if (go_on(r))
    finish(r, r->error);
  else if (spx_proc_dead(master)) /* nobody puts down the rest */
    finish(r, MPIX_ERR_PROC_FAILED);
  else {
    r->state = SPX_S_DATA;
    if (!reading) {
      reader_poller.poll = read_more;
      spx_poller_add(&reader_poller);
    }
    r->next = reading;
    reading = r;
  }
}

void spx_shelf_lost(spx_block *b, int error)
{
  const void *own = others && others[spx_me].map ? others[spx_me].map + b->at : NULL;
  /* the message may still be among the unexpected ones here */
  b->readers[0] = b->readers[b->n - 1];
  b->n = 1;
  b->seen = 0;
  b->open = false;
  for (spx_request **q = &reading; own && *q;) {
    spx_request *r = *q;
    if (r->in.block != own) {
      q = &r->next;
      continue;
    }
    *q = r->next;
    finish(r, error);
    if (!reading) spx_poller_del(&reader_poller);
  }
}

void spx_shelf_bury(uint32_t peer)
{
  if (!reading) return;
  for (spx_request **q = &reading; *q;) {
    spx_request *r = *q;
    if (r->peer != peer) {
      q = &r->next;
      continue;
    }
    *q = r->next;
    finish(r, go_on(r) ? r->error : MPIX_ERR_PROC_FAILED);
  }
  if (!reading) spx_poller_del(&reader_poller);
}

void spx_shelf_detach(void)
{
  sweep();
  if (!shelf.blocks && shelf.backed) {
    spx_file_drop(shelf.place, shelf.backed);
    __atomic_sub_fetch(&spx_segment->shelf_bytes, shelf.backed, __ATOMIC_RELAXED);
  }
  while (shelf.blocks) { /* members may still read: the memory goes with the file */
    spx_block *b = shelf.blocks;
    shelf.blocks = b->next;
    free(b);
  }
  if (shelf.map) spx_file_unmap(shelf.map, shelf.room);
  memset(&shelf, 0, sizeof shelf);
  if (reading) spx_poller_del(&reader_poller);
  reading = NULL;
  free(others); /* the mappings stay until the process ends, or are found again */
  others = NULL;
}
