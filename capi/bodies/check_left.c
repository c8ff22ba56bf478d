/* check_left.c - SPX_CHECK=1: records where each object is made, for capi/left.go, which reports
 * those left when MPI ends. MPI-5.0 12.2. */
#include <sys/mman.h>
#include "check_coll.h"
#include "dp.h"
#include "runtime.h"
#include "trace.h"

/* by the index of the handle; address space until it is used */
static spx_origin *origins[SPX_K_COUNT];

static void made(spx_kind k, uint32_t index)
{
  spx_origin *o = &origins[k][index];
  o->site = spx_call_place();
  o->fn = spx_fn < SPX_FN_COUNT ? spx_fn : SPX_FN_NONE;
}

void spx_check_made(void)
{
  for (int k = 1; k < SPX_K_COUNT; k++) {
    void *p = mmap(NULL, sizeof(spx_origin) << SPX_H_INDEX_BITS, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return; /* then only messages are reported */
    origins[k] = p;
  }
  spx_find_fortran();
  spx_aside |= SPX_ASIDE_CHECKED;
  spx_made_now = made;
}

const spx_origin *spx_check_origin(spx_kind k, const spx_obj *o)
{
  uintptr_t d = (uintptr_t)o - (uintptr_t)spx_slab[k];
  /* predefined */
  if (!spx_made_now || d / spx_slab_stride[k] >= (uintptr_t)1 << SPX_H_INDEX_BITS) return NULL;
  return &origins[k][d / spx_slab_stride[k]];
}

void spx_check_inside(spx_kind k, const spx_obj *o)
{
  const spx_origin *from = spx_check_origin(k, o);
  if (from) ((spx_origin *)from)->fn = SPX_FN_NONE;
}

typedef struct {
  uint64_t messages;
  const spx_unex *first;
} unreceived;

static void count_message(spx_unex *e, void *arg)
{
  unreceived *u = arg;
  if (e->ctx % SPX_CTX_STEP == SPX_CTX_P2P && !u->messages++) u->first = e;
}

uint64_t spx_check_unreceived(int32_t *src, int32_t *tag, uint64_t *bytes)
{
  unreceived u = {0, NULL};
  spx_lock();
  if (spx_unex_count) spx_each_unexpected(count_message, &u);
  if (u.messages) *src = u.first->src, *tag = u.first->tag, *bytes = u.first->bytes;
  spx_unlock();
  return u.messages;
}

void spx_check_leaks(void)
{
  spx_frame f = {.fn = SPX_IN_CHECK};
  if (spx_checking) spx_go_internal(&f); /* its own errors cannot be reported */
}
