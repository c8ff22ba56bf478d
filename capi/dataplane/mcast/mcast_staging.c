/* mcast_staging.c - copies of long multicasts in the memory file of their master's host, which the
 * members of that host read.
 *
 * A master copies a long message once, into a block of its staging buffer, and is free: its members
 * copy from there, all at the same time and while the rest is still being written, whether the
 * master calls MPI or not. Processes that read each other's memory pay the kernel for each page,
 * and keep the master until the last of them has begun.
 *
 *   staging buffer   of a process: addresses behind the laid-out parts of the memory file, with
 *                    memory as far as blocks have reached
 *   block            head, a byte for each process of the file (that process writes it: it has
 *                    what it wants), data
 *
 * A block is used again when all its readers have marked it, are dead or have left MPI. All staging
 * buffers of a host together take at most spx_set.mcast_staging bytes, one of them a quarter of
 * that; a master that finds no room lets its members fetch from it. Data that a dead process has
 * written stay: members that know of a full block still receive it. */
#include <stdlib.h>
#include "dp.h"
#include "rma.h"

#define PIPELINED    4u           /* readers for each processor that begin before all is there */
#define GROW         (256u << 10) /* bytes of memory that a staging buffer gets at a time */
#define ROUND(n, to) (((uint64_t)(n) + (to)-1) / (to) * (to))

typedef struct {
  uint64_t filled; /* the master writes: bytes that are there */
  uint32_t readers;
  uint8_t pad[SPX_LINE - 12];
  uint8_t got[]; /* a byte a process: WANTS ... */
} head;

/* The mark of a process on a block: not reached it, or reads; has, or needs, nothing of it any
 * more; has all that was there, and waits for more. */
enum { WANTS, HAS, WAITS };

typedef struct {
  uint32_t proc, life;
} reader;

struct spx_block {
  spx_block *next;
  uint64_t at, bytes; /* in the staging buffer, head included */
  uint32_t n, seen;   /* readers; of them, those known to have it */
  bool open;          /* data still come from elsewhere: nothing else may be put there */
  reader readers[];
};

/* This process's staging buffer. Blocks lie in the order of their places. */
static struct {
  uint64_t place, room, backed; /* in the file; bytes of addresses, with memory */
  char *map;
  spx_block *blocks;
} staging;

/* The staging buffers of other processes, by process. */
static struct {
  uint64_t place, room;
  char *map;
} * others;

static spx_request *reading; /* receives that wait for more to be put down */
static spx_poller reader_poller;

static uint64_t head_bytes(void) { return ROUND(sizeof(head) + spx_map.nprocs, SPX_LINE); }

bool spx_staging_reaches(uint32_t proc)
{
  return !(spx_segment->flags & SPX_SEG_TCP) && proc != spx_me && !spx_peer_is_far(proc) &&
         spx_proc_of(proc)->host == spx_proc_of(spx_me)->host;
}

/* ---- the master's side ---- */

static head *head_of(const spx_block *b) { return (head *)(staging.map + b->at); }
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
  for (spx_block **p = &staging.blocks; *p;) {
    spx_block *b = *p;
    if (!is_read(b)) {
      p = &b->next;
      continue;
    }
    *p = b->next;
    free(b);
  }
}

/* Memory for the staging buffer up to end; false: there is none, or other buffers have it. */
static bool back(uint64_t end)
{
  if (SPX_LIKELY(end <= staging.backed)) return true;
  uint64_t most = ROUND(end, GROW),
           more = (most < staging.room ? most : staging.room) - staging.backed;
  uint64_t all = __atomic_add_fetch(&spx_segment->staging_bytes, more, __ATOMIC_RELAXED);
  if (all <= spx_set.mcast_staging &&
      spx_file_allocate(staging.place + staging.backed, more) == 0) {
    staging.backed += more;
    return true;
  }
  __atomic_sub_fetch(&spx_segment->staging_bytes, more, __ATOMIC_RELAXED);
  return false;
}

static bool have_staging(void)
{
  if (SPX_LIKELY(staging.map != NULL)) return true;
  if (!(staging.room = ROUND(spx_set.mcast_staging / 4, GROW))) return false;
  if (!staging.place) staging.place = spx_file_reserve(staging.room);
  return (staging.map = spx_file_map(staging.place, staging.room)) != NULL;
}

spx_block *spx_staging_take(uint64_t bytes, const spx_member *members, uint32_t n, bool self,
                            spx_mcast_rts *where)
{
  if (bytes > spx_set.mcast_staging / 4) return NULL;
  uint64_t need = head_bytes() + ROUND(bytes, SPX_LINE), at = 0;
  if (need > spx_set.mcast_staging / 4 || !have_staging()) return NULL;
  sweep();
  spx_block **p = &staging.blocks, *b;
  for (; *p && (*p)->at - at < need; p = &(*p)->next) at = (*p)->at + (*p)->bytes;
  if (at + need > staging.room || !back(at + need) ||
      !(b = malloc(sizeof *b + (n + 1) * sizeof *b->readers)))
    return NULL;
  *b = (spx_block){.next = *p, .at = at, .bytes = need};
  *p = b;
  for (uint32_t i = 0; i < n; i++)
    if (spx_staging_reaches(members[i].proc))
      b->readers[b->n++] = (reader){members[i].proc, spx_life_of(members[i].proc)};
  if (self) b->readers[b->n++] = (reader){spx_me, spx_life_of(spx_me)};
  b->open = self;
  memset(head_of(b), 0, head_bytes());
  head_of(b)->readers = b->n;
  where->staging = staging.place;
  where->room = staging.room;
  where->at = at;
  return b;
}

void *spx_staging_room(const spx_block *b) { return (char *)head_of(b) + head_bytes(); }

void spx_staging_came(spx_block *b, uint64_t bytes)
{
  __atomic_store_n(&head_of(b)->filled, bytes, __ATOMIC_RELEASE);
}

void spx_staging_close(spx_block *b, bool reads)
{
  if (!reads) say(head_of(b), HAS);
  b->open = false;
}

void spx_staging_drop(spx_block *b)
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
    uint64_t next = to - from < SPX_STAGING_STEP ? to : from + SPX_STAGING_STEP;
    spx_pack(r->buf, r->count, r->type, (int64_t)from, (int64_t)next,
             (char *)h + head_bytes() + from);
    __atomic_store_n(&h->filled, next, __ATOMIC_RELEASE);
    from = next;
  }
  return from;
}

uint64_t spx_staging_fill(spx_block *b, const spx_request *r, uint64_t from, bool all)
{
  uint64_t n = (uint64_t)r->bytes;
  if (from == n) return n;
  from = put_down(b, r, from,
                  all || is_alone(b) || n - from < SPX_STAGING_STEP ? n : from + SPX_STAGING_STEP);
  if (from < n) return from;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  /* a waiting reader may sleep; one that the message has not reached sleeps on */
  for (uint32_t i = 0; i < b->n; i++) {
    uint32_t reader = b->readers[i].proc;
    if (__atomic_load_n(&head_of(b)->got[reader], __ATOMIC_ACQUIRE) == WAITS)
      spx_bell_if_sleeping(spx_proc_of(reader), reader);
  }
  return from;
}

uint64_t spx_staging_begin(spx_block *b, const spx_request *r, bool one)
{
  uint64_t n = (uint64_t)r->bytes;
  if (!one) return spx_staging_fill(b, r, 0, false);
  return put_down(b, r, 0, is_alone(b) && n > SPX_STAGING_STEP ? n - SPX_STAGING_STEP : 0);
}

/* ---- the members' side ---- */

static uint32_t keeper_of(uint32_t master, const spx_mcast_rts *where)
{
  return where->keeper == SPX_NO_PEER ? master : where->keeper;
}

bool spx_staging_has(uint32_t master, const spx_mcast_rts *where)
{
  return where->staging &&
         (where->keeper == spx_me || spx_staging_reaches(keeper_of(master, where)));
}

bool spx_staging_sound(const spx_mcast_rts *where)
{
  enum { PAGE = 4096 };
  uint64_t end = ROUND(spx_segment->total_bytes, PAGE) +
                 __atomic_load_n(&spx_segment->win_bytes, __ATOMIC_ACQUIRE);
  if (where->staging % PAGE || where->staging < spx_segment->total_bytes || where->staging > end)
    return false;
  if (where->room > end - where->staging || where->at % SPX_LINE || where->at > where->room)
    return false;
  return head_bytes() <= where->room - where->at &&
         where->rts.bytes <= where->room - where->at - head_bytes();
}

static head *block_of(uint32_t master, const spx_mcast_rts *where)
{
  uint32_t i = keeper_of(master, where);
  if (!others && !(others = calloc(spx_map.nprocs, sizeof *others))) return NULL;
  if (others[i].place != where->staging || others[i].room != where->room) { /* of another life */
    if (others[i].map && !reading) spx_file_unmap(others[i].map, others[i].room);
    others[i].map = spx_file_map(where->staging, where->room);
    others[i].place = others[i].map ? where->staging : 0;
    others[i].room = where->room;
  }
  return others[i].map ? (head *)(others[i].map + where->at) : NULL;
}

void spx_staging_pass(uint32_t master, const spx_mcast_rts *where)
{
  head *h = block_of(master, where);
  if (h) say(h, HAS);
}

/* All readers together write more than caches hold, and each writes to memory that is not in its
 * cache: so the caches need not be filled with it. Shorter messages are worth that, since the
 * receiver uses them. */
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
  /* `want` is in the staging buffer: spx_staging_sound */
  uint64_t to = there < want ? there : want;
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
    say(h, WAITS); /* before it goes to sleep it reads again, behind a fence (wait.c) */
  return to == want;
}

/* Errors: a reader that fails does not need the block either. */
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

void spx_staging_read(spx_request *r, uint32_t master, const spx_mcast_rts *where)
{
  if (where->keeper == spx_me && spx_mcast_relay_into(r, master, where)) return;
  head *h = block_of(master, where);
  r->in.at = 0;
  r->in.block = h;
  if (!h)
    finish(r, MPI_ERR_NO_MEM);
  else if (go_on(r))
    finish(r, r->error);
  else if (spx_proc_dead(master)) /* the rest will not be written */
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

void spx_staging_lost(spx_block *b, int error)
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

void spx_staging_peer_failed(uint32_t peer)
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

void spx_staging_detach(void)
{
  sweep();
  if (!staging.blocks && staging.backed) {
    spx_file_drop(staging.place, staging.backed);
    __atomic_sub_fetch(&spx_segment->staging_bytes, staging.backed, __ATOMIC_RELAXED);
  }
  while (staging.blocks) { /* members may still read: the memory goes with the file */
    spx_block *b = staging.blocks;
    staging.blocks = b->next;
    free(b);
  }
  if (staging.map) spx_file_unmap(staging.map, staging.room);
  memset(&staging, 0, sizeof staging);
  if (reading) spx_poller_del(&reader_poller);
  reading = NULL;
  free(others); /* the mappings stay until the process ends, or are found again */
  others = NULL;
}
