/* replay_commit.c - MPISP_Register and MPISP_Commit in clusters with transparent takeover: what a
 * commit writes into the message log (memory that was registered, counters of communicators,
 * messages that no receive has taken), and how a process that takes a rank over reads it at its
 * first one.
 */
#include <stdlib.h>
#include <string.h>
#include "comm.h"
#include "copies.h"
#include "dp.h"
#include "error.h"
#include "replay_shim.h"
#include "runtime.h"
#include "shim.h"
#include "system.h"

#define FN spx_fn_name[spx_fn]

typedef struct {
  void *buf;
  int64_t count;
  spx_type *type;
} region;
static region *regions;
static uint32_t nregions;
static uint64_t version; /* of the message log, with the last commit */

int spx_c_SP_Register(const void *buf, int64_t count, spx_type *datatype)
{
  if (spx_msglog_committed)
    return spx_raise(0, NULL, MPI_ERR_OTHER, FN,
                     "called after MPISP_Commit; a process that takes the rank over must know all "
                     "memory by its first one");
  region *more = realloc(regions, (nregions + 1) * sizeof *more);
  if (!more)
    return spx_raise(0, NULL, MPI_ERR_NO_MEM, FN, "no memory for %u regions", nregions + 1);
  regions = more;
  spx_ref(&datatype->o);
  regions[nregions++] = (region){(void *)(uintptr_t)buf, count, datatype};
  return MPI_SUCCESS;
}

typedef struct { /* the communicators whose state is saved */
  spx_comm **list;
  uint32_t n, room;
} comms;

static void add_comm(spx_obj *o, void *arg)
{
  comms *all = arg;
  spx_comm *c = (spx_comm *)o;
  if (!(c->flags & SPX_C_REPLAY) || all->n == all->room) return;
  for (uint32_t i = 0; i < all->n; i++)
    if (all->list[i] == c) return;
  all->list[all->n++] = c;
}

static void count_comm(spx_obj *o, void *arg)
{
  (void)o;
  ++*(uint32_t *)arg;
}

static bool find_comms(comms *all)
{
  all->n = 0;
  all->room = 1;
  spx_each_handle(SPX_K_COMM, count_comm, &all->room);
  all->list = malloc(all->room * sizeof *all->list);
  if (!all->list) return false;
  add_comm(&spx_world->o, all);
  spx_each_handle(SPX_K_COMM, add_comm, all);
  return true;
}

static bool is_of(const comms *all, uint64_t ctx)
{
  for (uint32_t i = 0; i < all->n; i++)
    if (ctx - all->list[i]->ctx <= SPX_CTX_ENGINE) return true;
  return false;
}

static void count_pending(spx_request *r, void *n)
{
  if (spx_replayed(r->comm, r->ctx_kind)) ++*(uint32_t *)n;
}

typedef struct {
  const comms *all;
  spx_image *w;
  uint64_t n;
  bool waits; /* a send to the process itself that is not complete */
} saving;

static void count_unexpected(spx_unex *e, void *arg)
{
  saving *s = arg;
  if (!is_of(s->all, e->ctx)) return;
  s->n++;
  s->waits |= e->self != NULL;
}

static void save_unexpected(spx_unex *e, void *arg)
{
  saving *s = arg;
  if (!is_of(s->all, e->ctx)) return;
  spx_frame_head h = {.ctx = e->ctx,
                      .n = e->seq,
                      .bytes = e->bytes,
                      .tag = e->tag,
                      .src = e->src,
                      .from = spx_replay_core.me};
  spx_image_put(s->w, &h, sizeof h);
  spx_image_put(s->w, e->data, e->bytes);
}

static void drop_unexpected(spx_unex *e, void *arg)
{
  if (is_of(arg, e->ctx)) spx_unex_drop(e);
}

static void put_word(spx_image *w, uint64_t n) { spx_image_put(w, &n, sizeof n); }

static bool save_regions(spx_image *w)
{
  put_word(w, nregions);
  for (uint32_t i = 0; i < nregions; i++) {
    const region *r = &regions[i];
    uint64_t n = (uint64_t)(r->count * r->type->size);
    put_word(w, n);
    if (r->type->flags & SPX_T_CONTIG) {
      spx_image_put(w, r->buf, n);
      continue;
    }
    void *packed = malloc(n ? n : 1);
    if (!packed) return false;
    spx_pack(r->buf, r->count, r->type, 0, (int64_t)n, packed);
    spx_image_put(w, packed, n);
    free(packed);
  }
  return true;
}

static int save(const comms *all)
{
  spx_image w;
  saving s = {all, &w, 0, false};
  uint32_t pending = 0;
  spx_each_posted(count_pending, &pending);
  spx_each_unexpected(count_unexpected, &s);
  if (pending || s.waits)
    return spx_raise(
        0, NULL, MPI_ERR_PENDING, FN,
        "%u receives (or sends to the process itself) have been started and are not complete",
        pending + s.waits);
  if (!spx_core_commit_begin(&spx_replay_core, &w))
    return spx_raise(0, NULL, MPI_ERR_OTHER, FN,
                     "this process does not make the calls that the one made whose rank it has: "
                     "what they receive must "
                     "decide what they do");
  put_word(&w, all->n);
  for (uint32_t i = 0; i < all->n; i++) {
    put_word(&w, all->list[i]->ctx);
    put_word(&w, all->list[i]->coll_seq);
  }
  put_word(&w, atomic_load(&spx_system_turn));
  put_word(&w, s.n);
  spx_each_unexpected(save_unexpected, &s);
  bool saved = save_regions(&w) && spx_core_commit_end(&w);
  version = spx_replay_core.version;
  if (!saved)
    return spx_raise(0, NULL, MPI_ERR_NO_MEM, FN,
                     "no room for the commit: it may take SPX_REPLAY_MAX bytes (%llu)",
                     (unsigned long long)spx_msglog_bytes());
  return MPI_SUCCESS;
}

static bool take_word(spx_image_reader *r, uint64_t *n)
{
  const void *p = spx_image_take(r, sizeof *n);
  if (p) memcpy(n, p, sizeof *n);
  return p != NULL;
}

/* ... and whose turn it is among I/O processes. */
static bool restore_comms(spx_image_reader *r, const comms *all)
{
  uint64_t n, ctx, seq;
  if (!take_word(r, &n)) return false;
  while (n-- > 0) {
    if (!take_word(r, &ctx) || !take_word(r, &seq)) return false;
    for (uint32_t i = 0; i < all->n; i++)
      if (all->list[i]->ctx == ctx) all->list[i]->coll_seq = (uint32_t)seq;
  }
  if (!take_word(r, &n)) return false;
  atomic_store(&spx_system_turn, (uint32_t)n);
  return true;
}

static bool restore_messages(spx_image_reader *r)
{
  uint64_t n;
  if (!take_word(r, &n)) return false;
  while (n-- > 0) {
    spx_frame_head h;
    const void *p = spx_image_take(r, sizeof h);
    if (!p) return false;
    memcpy(&h, p, sizeof h);
    if (!(p = spx_image_take(r, h.bytes)) || !spx_deliver_frame(spx_me, &h, (uint32_t)h.n, p))
      return false;
  }
  return true;
}

/* The number of the region that is not as it was; -1: all are. */
static int restore_regions(spx_image_reader *r)
{
  uint64_t n, bytes;
  if (!take_word(r, &n) || n != nregions) return (int)nregions;
  for (uint32_t i = 0; i < nregions; i++) {
    const region *x = &regions[i];
    const void *data = NULL;
    if (!take_word(r, &bytes) || bytes != (uint64_t)(x->count * x->type->size) ||
        !(data = spx_image_take(r, bytes)))
      return (int)i;
    if (x->type->flags & SPX_T_CONTIG)
      memcpy(x->buf, data, bytes);
    else
      spx_unpack(x->buf, x->count, x->type, 0, (int64_t)bytes, data);
  }
  return -1;
}

static int restore(const comms *all)
{
  spx_image_reader r;
  if (!spx_core_restore_begin(&spx_replay_core, &r))
    return spx_raise(0, NULL, MPI_ERR_OTHER, FN,
                     "this process does not make the calls before its first MPISP_Commit that the "
                     "one made whose rank it has");
  spx_each_unexpected(drop_unexpected, (void *)(uintptr_t)all);
  if (!restore_comms(&r, all) || !restore_messages(&r))
    return spx_raise(0, NULL, MPI_ERR_INTERN, FN, "the last commit cannot be read");
  int bad = restore_regions(&r);
  if (bad >= 0)
    return spx_raise(0, NULL, MPI_ERR_OTHER, FN,
                     "the memory that was registered is not that of the process whose rank this "
                     "one has (region %d of %u)",
                     bad, nregions);
  spx_core_restore_end(&spx_replay_core);
  /* I/O processes that have died by now: what was kept for them goes by others */
  spx_due |= SPX_DUE_TAKEOVER;
  return MPI_SUCCESS;
}

int spx_c_SP_Commit(void)
{
  if (!spx_replay_on) return MPI_SUCCESS;
  if (SPX_UNLIKELY(spx_copies_gate)) spx_replay_commits(version);
  spx_lock();
  if (spx_io_process) spx_core_asked(&spx_replay_core, SPX_NEEDS_NOTHING);
  int err = MPI_SUCCESS;
  comms all;
  if (spx_msglog_here()) {
    spx_msglog_committed = true;
    if (!find_comms(&all))
      err = spx_raise(0, NULL, MPI_ERR_NO_MEM, FN, "no memory for what the regions hold");
    else {
      err = spx_replay_core.mode == SPX_CORE_PRELUDE ? restore(&all) : save(&all);
      free(all.list);
    }
  }
  spx_unlock();
  return err;
}

int64_t spx_commit_end(spx_word *a)
{
  (void)a;
  for (uint32_t i = 0; i < nregions; i++) spx_unref(SPX_K_TYPE, &regions[i].type->o);
  free(regions);
  regions = NULL;
  nregions = 0;
  version = 0;
  return 0;
}
