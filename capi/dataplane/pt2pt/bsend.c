/* bsend.c - buffered sends: space in the user's buffer, or (MPI_BUFFER_AUTOMATIC) of this library.
 * MPI-5.0 3.6.
 *
 * The buffer is a chain of blocks in order of address. A block in use holds the request that sends
 * it and then the packed message; its header is smaller than MPI_BSEND_OVERHEAD. Space is recovered
 * when a later call finds the request complete. */
#include <sched.h>
#include <stdlib.h>
#include "bsend.h"
#include "dp.h"

typedef struct block {
  struct block *next, *prev;
  uint64_t bytes; /* of the block, header included */
  uint32_t used;
  spx_request r;
} block;
#define ALIGN    16u
#define ROUND(n) (((uint64_t)(n) + ALIGN - 1) & ~(uint64_t)(ALIGN - 1))
_Static_assert(sizeof(block) + 2 * ALIGN <= MPI_BSEND_OVERHEAD,
               "a block's header and its alignment fit into MPI_BSEND_OVERHEAD");

typedef struct pool {
  struct pool *next;
  spx_obj *owner; /* referenced; NULL: the process */
  spx_kind kind;
  void *buf;
  int64_t size;
  bool automatic;
  block *first;
} pool;
static pool *pools;
/* number of buffered sends: a request and the block that sends for it have the same */
static uint64_t serial;

static pool *find_pool(const spx_obj *owner)
{
  pool *p = pools;
  while (p && p->owner != owner) p = p->next;
  return p;
}

/* The communicator's, else that of the session it comes from, else the process's (4.6). */
static pool *pool_for(const spx_comm *c)
{
  pool *p = find_pool(&c->o);
  const spx_obj *s =
      p || !c->session ? NULL : spx_get(SPX_K_SESSION, (void *)(uintptr_t)c->session);
  if (s) p = find_pool(s);
  return p ? p : find_pool(NULL);
}

static void free_block(pool *p, block *b)
{
  spx_unref(SPX_K_COMM, &b->r.comm->o);
  b->used = 0;
  if (p->automatic) {
    if (b->prev)
      b->prev->next = b->next;
    else
      p->first = b->next;
    if (b->next) b->next->prev = b->prev;
    free(b);
  }
}

static void reclaim(pool *p)
{
  for (block *b = p->first, *next; b; b = next) {
    next = b->next;
    if (b->used && spx_is_done(&b->r)) free_block(p, b);
  }
  if (p->automatic) return;
  for (block *b = p->first; b;) {
    block *n = b->next;
    if (b->used || !n || n->used) {
      b = n;
      continue;
    }
    b->bytes += n->bytes;
    b->next = n->next;
    if (n->next) n->next->prev = b;
  }
}

/* A block for n bytes, or NULL. */
static block *take(pool *p, uint64_t n)
{
  uint64_t need = ROUND(sizeof(block)) + ROUND(n);
  if (p->automatic) {
    block *b = malloc(need);
    if (!b) return NULL;
    *b = (block){.next = p->first, .bytes = need, .used = 1};
    if (b->next) b->next->prev = b;
    return p->first = b;
  }
  for (block *b = p->first; b; b = b->next) {
    if (b->used || b->bytes < need) continue;
    if (b->bytes - need >= ROUND(sizeof(block)) + ALIGN) {
      block *rest = (block *)((char *)b + need);
      *rest = (block){.next = b->next, .prev = b, .bytes = b->bytes - need};
      if (b->next) b->next->prev = rest;
      b->next = rest;
      b->bytes = need;
    }
    b->used = 1;
    return b;
  }
  return NULL;
}

static bool in_use(const pool *p)
{
  const block *b = p->first;
  while (b && !b->used) b = b->next;
  return b != NULL;
}

spx_patience spx_bsend_patience = {.still_ns = 1000000000u, .total_ns = 10000000000u};

/* take, for a message on c. While there is no room, what is on its way is helped along: an error
 * only when nothing has moved for a while, or all that moves has made no room for long. Other
 * threads may come between. NULL with *attached false: there is no buffer, or no more. */
static block *take_in_time(const spx_comm *c, uint64_t n, spx_patience patience, bool *attached)
{
  uint64_t began = 0, moved = 0;
  for (;;) {
    pool *p = pool_for(c);
    *attached = p != NULL;
    if (!p) return NULL;
    reclaim(p);
    block *b = take(p, n);
    if (b || p->automatic || !in_use(p)) return b;
    uint64_t now = spx_now_ns();
    if (!began) began = moved = now;
    if (now - began > patience.total_ns || now - moved > patience.still_ns) return NULL;
    bool moves = spx_poll(true) != 0;
    int d = spx_lock_leave(false);
    if (moves)
      moved = now;
    else
      sched_yield();
    spx_lock_return(d);
  }
}

void spx_bsend_start(spx_request *r)
{
  uint64_t n = spx_capacity(r);
  bool attached;
  block *b = take_in_time(r->comm, n, spx_bsend_patience, &attached);
  if (!b) {
    if (attached) r->full = n; /* else the text reports that there is no buffer */
    spx_complete(r, MPI_ERR_BUFFER);
    return;
  }
  char *data = (char *)b + ROUND(sizeof(block));
  spx_pack(r->buf, r->count, r->type, 0, (int64_t)n, data);
  memset(&b->r, 0, sizeof b->r);
  spx_request *s = &b->r;
  s->kind = SPX_R_SEND;
  s->flags = SPX_RF_INTERNAL | SPX_RF_ACTIVE;
  s->src = s->want_src = r->want_src;
  s->tag = s->want_tag = r->want_tag;
  s->buf = data;
  s->count = (int64_t)n;
  s->type = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  s->comm = r->comm;
  s->ctx = r->ctx;
  s->ctx_kind = r->ctx_kind;
  s->peer = r->peer;
  s->out.serial = r->out.serial = ++serial;
  spx_ref(&r->comm->o);
  spx_send_start(s);
  s->mode = SPX_M_BUFFERED; /* MPI_Finalize waits for those that are not complete */
  r->bytes = (int64_t)n;
  r->out.number = s->out.number;
  r->state = SPX_S_EAGER;
  spx_complete(r, MPI_SUCCESS);
}

spx_request *spx_bsend_sender(const spx_request *r)
{
  for (pool *p = pools; p; p = p->next)
    for (block *b = p->first; b; b = b->next)
      if (b->used && b->r.out.serial == r->out.serial && !spx_is_done(&b->r)) return &b->r;
  return NULL;
}

/* ---- attaching ---- */

int spx_buffer_attach(spx_kind kind, spx_obj *owner, void *buf, int64_t size)
{
  int rc = MPI_SUCCESS;
  spx_lock();
  pool *p = find_pool(owner) ? NULL : calloc(1, sizeof *p);
  if (!p) {
    rc = find_pool(owner) ? MPI_ERR_BUFFER : MPI_ERR_NO_MEM;
    spx_detail(rc == MPI_ERR_BUFFER ? "a buffer is attached already: detach it first"
                                    : "no memory to attach a buffer");
  } else {
    *p = (pool){.next = pools,
                .owner = owner,
                .kind = kind,
                .buf = buf,
                .size = size,
                .automatic = buf == MPI_BUFFER_AUTOMATIC};
    uint64_t skip = (uint64_t)(-(intptr_t)buf) & (ALIGN - 1);
    if (!p->automatic && (uint64_t)size >= skip + ROUND(sizeof(block)) + ALIGN) {
      p->first = (block *)((char *)buf + skip);
      *p->first = (block){.bytes = ((uint64_t)size - skip) & ~(uint64_t)(ALIGN - 1)};
    }
    if (owner) spx_ref(owner);
    pools = p;
  }
  spx_unlock();
  return rc;
}

static void wait_for_all(pool *p)
{
  for (block *b = p->first; b; b = b->next)
    if (b->used) spx_wait(&b->r);
  reclaim(p);
}

static pool *need_pool(const spx_obj *owner, int *rc)
{
  pool *p = find_pool(owner);
  *rc = p ? MPI_SUCCESS : MPI_ERR_BUFFER;
  if (!p) spx_detail("no buffer is attached: MPI_Buffer_attach comes first");
  return p;
}

static void remove_pool(pool *p)
{
  for (pool **q = &pools; *q; q = &(*q)->next)
    if (*q == p) {
      *q = p->next;
      break;
    }
  if (p->owner) spx_unref(p->kind, p->owner);
  free(p);
}

int spx_buffer_detach(spx_obj *owner, void **buf, int64_t *size)
{
  int rc;
  spx_lock();
  pool *p = need_pool(owner, &rc);
  if (p) {
    wait_for_all(p);
    *buf = p->buf;
    *size = p->size;
    remove_pool(p);
  }
  spx_unlock();
  return rc;
}

int spx_buffer_flush(spx_obj *owner)
{
  int rc;
  spx_lock();
  pool *p = need_pool(owner, &rc);
  if (p) wait_for_all(p);
  spx_unlock();
  return rc;
}

/* ---- MPI_Buffer_iflush ---- */

typedef struct {
  spx_poller poller;
  spx_request *r;
  spx_obj *owner;
} flush;

static int poll_flush(spx_poller *poller)
{
  flush *f = (flush *)poller;
  pool *p = find_pool(f->owner);
  if (p) reclaim(p);
  for (block *b = p ? p->first : NULL; b; b = b->next)
    if (b->used) return 0;
  spx_poller_del(poller);
  spx_complete(f->r, MPI_SUCCESS);
  free(f);
  return 1;
}

int spx_buffer_iflush(spx_obj *owner, spx_request **out)
{
  int rc;
  spx_lock();
  pool *p = need_pool(owner, &rc);
  flush *f = p ? calloc(1, sizeof *f) : NULL;
  spx_request *r = f ? (spx_request *)spx_new(SPX_K_REQ) : NULL;
  if (p && !r) {
    free(f);
    rc = MPI_ERR_NO_MEM;
    spx_detail("no memory for a request");
  }
  if (r) {
    r->kind = SPX_R_GO;
    r->flags = SPX_RF_ACTIVE;
    r->src = MPI_ANY_SOURCE;
    r->tag = MPI_ANY_TAG;
    f->poller.poll = poll_flush;
    f->r = r;
    f->owner = owner;
    spx_poller_add(&f->poller);
    *out = r;
  }
  spx_unlock();
  return rc;
}
