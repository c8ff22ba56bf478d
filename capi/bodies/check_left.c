/* check_left.c - SPX_CHECK=1: what is left when MPI ends: objects that were not freed, with the place where each was made, and messages that were
 * never received. MPI-5.0 12.2. */
#include <sys/mman.h>
#include "check_coll.h"
#include "dp.h"
#include "once.h"
#include "runtime.h"
#include "trace.h"

typedef struct {
  const void *site;
  uint32_t fn;
} origin;
static origin *origins[SPX_K_COUNT]; /* by the index of the handle; address space until it is used */

static void made(spx_kind k, uint32_t index)
{
  origin *o = &origins[k][index];
  o->site = spx_call_place();
  o->fn = spx_fn < SPX_FN_COUNT ? spx_fn : SPX_FN_NONE;
}

void spx_check_made(void)
{
  for (int k = 1; k < SPX_K_COUNT; k++) {
    void *p = mmap(NULL, sizeof(origin) << SPX_H_INDEX_BITS, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return; /* then only messages are told */
    origins[k] = p;
  }
  spx_find_fortran();
  spx_aside |= SPX_ASIDE_CHECKED;
  spx_made_now = made;
}

static origin *origin_of(spx_kind k, const spx_obj *o)
{
  uintptr_t d = (uintptr_t)o - (uintptr_t)spx_slab[k];
  if (!spx_made_now || d / spx_slab_stride[k] >= (uintptr_t)1 << SPX_H_INDEX_BITS) return NULL; /* predefined */
  return &origins[k][d / spx_slab_stride[k]];
}

void spx_check_inside(spx_kind k, const spx_obj *o)
{
  origin *from = origin_of(k, o);
  if (from) from->fn = SPX_FN_NONE;
}

/* ---- counting ------------------------------------------------------------------------------------------------ */

enum { PLACES = 512 }; /* that are told apart; what comes from more is counted with the last of its kind */
typedef struct {
  spx_left left[PLACES];
  uint32_t n;
} list;

static void count(list *l, uint32_t kind, const origin *from, uint64_t n)
{
  uint32_t i = 0;
  while (i < l->n &&
         !(l->left[i].kind == kind && l->left[i].fn == from->fn && l->left[i].site == (uintptr_t)from->site))
    i++;
  if (i == PLACES) return;
  if (i == l->n) l->left[l->n++] = (spx_left){kind, from->fn, (uintptr_t)from->site, 0};
  l->left[i].n += n;
}

/* How often the user has the object: 0 for those that he has not got, or need not free. */
static uint64_t held(spx_kind k, const spx_obj *o)
{
  const spx_type *t = (const spx_type *)o;
  const spx_request *r = (const spx_request *)o;
  switch (k) {
  case SPX_K_COMM: return ((const spx_comm *)o)->flags & (SPX_C_WORLD | SPX_C_SELF) ? 0 : 1;
  case SPX_K_TYPE: return !(t->flags & SPX_T_PREDEFINED);
  case SPX_K_ERRH: return (uint64_t)((const spx_errh *)o)->held;
  case SPX_K_REQ: return !(r->flags & (SPX_RF_INTERNAL | SPX_RF_FREED));
  default: return 1;
  }
}

typedef struct {
  list *l;
  spx_kind k;
} counting;

static void count_object(spx_obj *o, void *arg)
{
  counting *c = arg;
  const origin *from = origin_of(c->k, o);
  uint64_t n = held(c->k, o);
  if (!from || !n || !(spx_fn_makes[from->fn] & 1u << c->k)) return;
  bool persistent = c->k == SPX_K_REQ && ((const spx_request *)o)->flags & SPX_RF_PERSISTENT;
  count(c->l, persistent ? SPX_LEFT_PERSISTENT : (uint32_t)c->k, from, n);
}

typedef struct {
  int messages;
  const spx_unex *first;
} unreceived;

static void count_message(spx_unex *e, void *arg)
{
  unreceived *u = arg;
  if (e->ctx % SPX_CTX_STEP != SPX_CTX_P2P) return;
  if (!u->messages++) u->first = e;
}

void spx_check_leaks(void)
{
  static list l;
  if (!spx_checking) return;
  spx_glance();
  unreceived u = {0, NULL};
  spx_unex first = {0};
  spx_lock();
  if (spx_unex_count) spx_each_unexpected(count_message, &u);
  if (u.messages) first = *u.first;
  spx_unlock();
  if (u.messages)
    spx_say_once("SPX_CHECK: messages are left that were never received",
                 "SPX_CHECK: rank %u leaves %d message%s that it has never received: the first from rank %d, with "
                 "tag %d, of %llu bytes",
                 spx_proc_of(spx_me)->world_rank, u.messages, u.messages == 1 ? "" : "s", first.src, first.tag,
                 (unsigned long long)first.bytes);
  l.n = 0;
  if (spx_made_now)
    for (int k = 1; k < SPX_K_COUNT; k++) spx_each_handle((spx_kind)k, count_object, &(counting){&l, (spx_kind)k});
  spx_frame f = {.fn = SPX_IN_LEFT};
  f.a[0].p = l.left;
  f.a[1].i = l.n;
  spx_go_internal(&f); /* nothing can be done about what it cannot tell */
}
