/* handles.c - tables of objects: from a handle to its object and back.
 *
 * Every kind has one array, which grows in place up to 2^21 slots: it is placed where the address
 * space behind it is free for that size. Reserving all of that would take 4 GB, which limits on
 * address space (ulimit -v) count. A lookup is an index below the present size, and one compare. A
 * free slot has handle 0; a slot used again gets the next generation, so that a stale handle is
 * recognised. Free slots are reused last in, first out, to stay in the cache. MPI-5.0 20.3. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include "file.h"
#include "rma.h"
#include "spx.h"

#define SLOTS        ((uintptr_t)1 << SPX_H_INDEX_BITS)
#define GEN_MASK     ((1u << SPX_H_GEN_BITS) - 1)
#define ROUND(bytes) (((uint32_t)(bytes) + 63u) & ~63u)

spx_obj *spx_predef[SPX_K_COUNT][0x300];
char *spx_slab[SPX_K_COUNT];
uint32_t spx_slab_mask[SPX_K_COUNT];
void (*spx_destructor[SPX_K_COUNT])(spx_obj *);
void (*spx_made_now)(spx_kind k, uint32_t index);
const uint32_t spx_slab_stride[SPX_K_COUNT] = {
    [SPX_K_COMM] = ROUND(sizeof(spx_comm)),      [SPX_K_GROUP] = ROUND(sizeof(spx_plain)),
    [SPX_K_TYPE] = ROUND(sizeof(spx_type)),      [SPX_K_OP] = ROUND(sizeof(spx_op)),
    [SPX_K_ERRH] = ROUND(sizeof(spx_errh)),      [SPX_K_REQ] = ROUND(sizeof(spx_request)),
    [SPX_K_MSG] = ROUND(sizeof(spx_message)),    [SPX_K_INFO] = ROUND(sizeof(spx_plain)),
    [SPX_K_WIN] = ROUND(sizeof(spx_win)),        [SPX_K_FILE] = ROUND(sizeof(spx_fh)),
    [SPX_K_SESSION] = ROUND(sizeof(spx_plain)),  [SPX_K_RANKSET] = ROUND(sizeof(spx_rankset)),
    [SPX_K_CHECKPOINT] = ROUND(sizeof(spx_obj)),
};

typedef struct {
  pthread_mutex_t lock;
  uint32_t used; /* slots taken so far from the front */
  uint32_t free; /* index + 1 of the first free slot */
} table;
static table tables[SPX_K_COUNT];

typedef struct {
  uint32_t kind, go;
} freed_object;
static struct {
  pthread_mutex_t lock;
  freed_object *list;
  size_t n, cap;
} freed = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Requests are made and dropped with every nonblocking operation: they are locked only when several
 * threads may be here. */
static void table_lock(spx_kind k)
{
  if (spx_mt || k != SPX_K_REQ) pthread_mutex_lock(&tables[k].lock);
}

static void table_unlock(spx_kind k)
{
  if (spx_mt || k != SPX_K_REQ) pthread_mutex_unlock(&tables[k].lock);
}

/* ---- where the arrays lie ---- */

#define FIRST ((uintptr_t)64)      /* slots of a kind at first */
#define APART ((uintptr_t)1 << 32) /* between two kinds' arrays: no kind's 2^21 slots take more */

/* A place for processors with 47 bits of address and more. The kernel maps from the top, programs
 * and heaps lie at the bottom, and Go takes a random place as we do. Where it cannot be had
 * (sanitizers, valgrind, short addresses), address space is reserved instead. */
static uintptr_t place(void)
{
  const uint8_t *random = (const uint8_t *)getauxval(AT_RANDOM);
  return ((uintptr_t)0x200 + (random ? random[7] : 0)) << 36;
}

/* As many bytes at this address, or none. */
static bool map_at(uintptr_t at, size_t bytes)
{
  void *p = mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  if ((uintptr_t)p == at) return true;
  munmap(p, bytes);
  return false;
}

static size_t bytes_of(spx_kind k, uintptr_t slots)
{
  return (slots * spx_slab_stride[k] + 65535) & ~(size_t)65535; /* whole pages, of any size */
}

/* slots for which there is address space; 0: the memory behind is free */
static uintptr_t reserved[SPX_K_COUNT];

/* Address space for as many slots as can be had; false: for fewer than FIRST. */
static bool reserve_room(spx_kind k)
{
  for (uintptr_t slots = SLOTS; slots >= FIRST; slots /= 2) {
    char *p = mmap(NULL, bytes_of(k, slots), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) continue;
    spx_slab[k] = p;
    reserved[k] = slots;
    return mprotect(p, bytes_of(k, FIRST), PROT_READ | PROT_WRITE) == 0;
  }
  return false;
}

/* Runs before everything else: handles may be looked up before MPI_Init. */
__attribute__((constructor(101))) static void reserve(void)
{
  uintptr_t at = place();
  for (spx_kind k = 1; k < SPX_K_COUNT; k++, at += APART) {
    pthread_mutex_init(&tables[k].lock, NULL);
    if (map_at(at, bytes_of(k, FIRST)))
      spx_slab[k] = (char *)at;
    else if (!reserve_room(k))
      abort(); /* a few KB: spx_limits_check has found more */
    spx_slab_mask[k] = FIRST - 1;
  }
}

/* Twice as many slots, where they are. The table is locked. */
static bool grow(spx_kind k)
{
  uintptr_t now = (uintptr_t)spx_slots_mask(k) + 1;
  size_t had = bytes_of(k, now), more = bytes_of(k, 2 * now) - had;
  char *end = spx_slab[k] + had;
  if (now >= SLOTS) return false;
  if (reserved[k] && (2 * now > reserved[k] || mprotect(end, more, PROT_READ | PROT_WRITE) != 0))
    return false;
  if (!reserved[k] && more && !map_at((uintptr_t)end, more)) return false;
  __atomic_store_n(&spx_slab_mask[k], (uint32_t)(2 * now - 1), __ATOMIC_RELEASE);
  return true;
}

static spx_obj *slot(spx_kind k, uint32_t index)
{
  return (spx_obj *)(spx_slab[k] + (uintptr_t)index * spx_slab_stride[k]);
}

uint32_t spx_first_generation;

/* A free slot remembers its next generation in refs. Generations go round: a handle of 2^6 objects
 * ago is taken for the live one. They find mistakes of programs, and nothing relies on them. */
spx_obj *spx_new(spx_kind k)
{
  table *t = &tables[k];
  spx_obj *o = NULL;
  table_lock(k);
  uint32_t index = 0, gen = 0;
  if (t->free) {
    index = t->free - 1;
    o = slot(k, index);
    t->free = o->next;
    gen = (uint32_t)atomic_load_explicit(&o->refs, memory_order_relaxed);
  } else if (t->used <= spx_slab_mask[k] || grow(k)) {
    index = t->used++;
    o = slot(k, index);
    gen = spx_first_generation;
  }
  table_unlock(k);
  if (!o) return NULL;
  memset(o, 0, spx_slab_stride[k]);
  atomic_store_explicit(&o->refs, 1, memory_order_relaxed);
  __atomic_store_n(&o->handle, (uint32_t)k << 27 | (gen & GEN_MASK) << SPX_H_INDEX_BITS | index,
                   __ATOMIC_RELEASE);
  if (SPX_UNLIKELY(spx_made_now)) spx_made_now(k, index);
  return o;
}

void spx_ref(spx_obj *o)
{
  if (spx_mt)
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
  else
    atomic_store_explicit(&o->refs, atomic_load_explicit(&o->refs, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Predefined objects lie outside their slab: nothing is recycled there. */
static int in_slab(spx_kind k, const spx_obj *o)
{
  uintptr_t d = (uintptr_t)o - (uintptr_t)spx_slab[k];
  return d < ((uintptr_t)spx_slots_mask(k) + 1) * spx_slab_stride[k];
}

static void free_later(spx_kind k, uint32_t go)
{
  pthread_mutex_lock(&freed.lock);
  if (freed.n == freed.cap) {
    size_t cap = freed.cap ? freed.cap * 2 : 64;
    freed_object *list = realloc(freed.list, cap * sizeof *list);
    if (!list) { /* the engine keeps an object that is not in use */
      pthread_mutex_unlock(&freed.lock);
      return;
    }
    freed.list = list;
    freed.cap = cap;
  }
  freed.list[freed.n++] = (freed_object){(uint32_t)k, go};
  pthread_mutex_unlock(&freed.lock);
}

int spx_freed_pop(uint32_t *kind, uint32_t *go)
{
  if (__atomic_load_n(&freed.n, __ATOMIC_RELAXED) == 0) return 0;
  pthread_mutex_lock(&freed.lock);
  int found = freed.n > 0;
  if (found) {
    freed_object g = freed.list[--freed.n];
    *kind = g.kind;
    *go = g.go;
  }
  pthread_mutex_unlock(&freed.lock);
  return found;
}

void spx_unref(spx_kind k, spx_obj *o)
{
  int32_t left;
  if (spx_mt)
    left = atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) - 1;
  else {
    left = atomic_load_explicit(&o->refs, memory_order_relaxed) - 1;
    atomic_store_explicit(&o->refs, left, memory_order_relaxed);
  }
  if (left > 0 || !in_slab(k, o)) return;
  SPX_ASSERT(left == 0);
  if (spx_destructor[k]) spx_destructor[k](o);
  if (o->go) free_later(k, o->go);
  uint32_t index = (uint32_t)(((uintptr_t)o - (uintptr_t)spx_slab[k]) / spx_slab_stride[k]);
  table *t = &tables[k];
  SPX_ASSERT(slot(k, index) == o);
  table_lock(k);
  SPX_ASSERT(index < t->used);
  /* The generation outlives the handle: retired slots have kept it in next. */
  uint32_t gen = o->handle ? (o->handle >> SPX_H_INDEX_BITS) & GEN_MASK : o->next;
  o->handle = 0;
  atomic_store_explicit(&o->refs, (int32_t)((gen + 1) & GEN_MASK), memory_order_relaxed);
  o->next = t->free;
  t->free = index + 1;
  table_unlock(k);
}

void spx_retire(spx_kind k, spx_obj *o)
{
  if (!in_slab(k, o)) return;
  if (o->handle) o->next = (o->handle >> SPX_H_INDEX_BITS) & GEN_MASK;
  __atomic_store_n(&o->handle, 0, __ATOMIC_RELEASE);
  spx_unref(k, o);
}

/* While a retired object is revived, the bits of next above the generation count for how many. */
#define REVIVED (1u << 8)
_Static_assert(GEN_MASK < REVIVED, "the generation of a retired object has room below");

uint32_t spx_revive(spx_kind k, spx_obj *o)
{
  uint32_t index = (uint32_t)(((uintptr_t)o - (uintptr_t)spx_slab[k]) / spx_slab_stride[k]);
  SPX_ASSERT(slot(k, index) == o);
  spx_ref(o);
  table_lock(k);
  uint32_t handle = (uint32_t)k << 27 | (o->next & GEN_MASK) << SPX_H_INDEX_BITS | index;
  o->next += REVIVED;
  __atomic_store_n(&o->handle, handle, __ATOMIC_RELEASE);
  table_unlock(k);
  return handle;
}

void spx_unrevive(spx_kind k, spx_obj *o)
{
  table_lock(k);
  /* else it was retired again meanwhile, and the reference is gone */
  bool still = o->next >= REVIVED;
  if (still && (o->next -= REVIVED) < REVIVED) __atomic_store_n(&o->handle, 0, __ATOMIC_RELEASE);
  table_unlock(k);
  if (still) spx_unref(k, o);
}

void spx_each_handle(spx_kind k, void (*fn)(spx_obj *, void *), void *arg)
{
  for (uint32_t i = 0; i < tables[k].used; i++)
    if (slot(k, i)->handle) fn(slot(k, i), arg);
}
