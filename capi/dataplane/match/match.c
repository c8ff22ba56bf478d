/* match.c - matching by (context, source, tag): the posted receives and the unexpected messages.
 * MPI-5.0 3.5, 3.8.
 *
 * Posted receives without wildcards are in bins by a hash of the three; those with a wildcard in
 * one list in order of posting. A message takes the older of the first fit in its bin and the first
 * fit in the list. Unexpected messages are in four indexes at once: by (ctx, src, tag), (ctx, src),
 * (ctx, tag) and (ctx). A receive or probe searches the index that fits its wildcards, where the
 * first fit is the oldest. Bins double when they fill up. */
#include <stdlib.h>
#include "dp.h"
#include "spare.h"

#define BINS_MIN     256u
#define POOL_PAYLOAD 96u /* unexpected entries of up to this payload are kept for reuse */
#define POOL_MAX     1024u
#define POOL_FIRST   64u /* short messages that may come early without an allocation */
#define SPARE_MIN                                                                                  \
  (512u << 10) /* bytes of longer entries that are kept for reuse: an eighth of what a pair may    \
                  have there, between these */
#define SPARE_MAX (8u << 20)

typedef struct {
  spx_request *first, *last;
} posted_bin;
typedef struct {
  spx_unex *first, *last;
} unex_bin;

uint64_t spx_unex_count, spx_inbound_from, spx_inbound_to;
static uint64_t next_order;
static uint32_t posted_bins, unex_bins; /* powers of two */
static posted_bin *posted, wild;
static unex_bin *unex[SPX_BY_COUNT];
static spx_unex *pool;
static uint32_t pool_n;
static spx_spares spares;

static uint32_t hash(uint64_t ctx, int32_t src, int32_t tag)
{
  uint64_t h = ctx * 0x9e3779b97f4a7c15ull +
               ((uint64_t)(uint32_t)src << 32 | (uint32_t)tag) * 0xd6e8feb86659fd93ull;
  return (uint32_t)(h >> 32) ^ (uint32_t)(h >> 50);
}

/* The first entries of the pool are there from the start; pages of it that were never used take no
 * memory. */
#define IN_POOL UINT16_MAX
#define ENTRY   ((sizeof(spx_unex) + POOL_PAYLOAD + 15) / 16 * 16)
static _Alignas(16) char reserve[POOL_FIRST * ENTRY];
static uint32_t reserve_used;

static spx_unex *from_reserve(void)
{
  return reserve_used < POOL_FIRST ? (spx_unex *)(reserve + reserve_used++ * ENTRY) : NULL;
}

static bool is_reserve(const spx_unex *e)
{
  return (uintptr_t)e - (uintptr_t)reserve < sizeof reserve;
}

void spx_match_reset(void)
{
  if (!posted) {
    posted = calloc(BINS_MIN, sizeof *posted);
    if (!posted) spx_fatal(MPI_ERR_NO_MEM, "no memory for the matching tables");
    posted_bins = BINS_MIN;
  }
  for (int by = 0; by < SPX_BY_COUNT && !unex[by]; by++)
    if (!(unex[by] = calloc(BINS_MIN, sizeof *unex[by])))
      spx_fatal(MPI_ERR_NO_MEM, "no memory for the matching tables");
  if (!unex_bins) unex_bins = BINS_MIN;
  uint64_t part = spx_set.credit / 8;
  spares.most = part < SPARE_MIN ? SPARE_MIN : part > SPARE_MAX ? SPARE_MAX : part;
}

/* ---- posted receives ---- */

/* Sources of systems of clusters are negative as MPI_ANY_SOURCE is, and often stand for several. */
static bool is_wild(const spx_request *r) { return r->want_src < 0 || r->want_tag == MPI_ANY_TAG; }

static bool fits(const spx_request *r, uint64_t ctx, int32_t src, int32_t tag)
{
  return r->ctx == ctx &&
         (r->want_src == src || r->want_src == MPI_ANY_SOURCE ||
          spx_origin_fits(r->want_src, src)) &&
         (r->want_tag == tag || r->want_tag == MPI_ANY_TAG);
}

static posted_bin *bin_of(const spx_request *r)
{
  return is_wild(r) ? &wild : &posted[hash(r->ctx, r->want_src, r->want_tag) & (posted_bins - 1)];
}

static void bin_append(posted_bin *b, spx_request *r)
{
  r->bin_next = NULL;
  r->bin_prev = b->last;
  if (b->last)
    b->last->bin_next = r;
  else
    b->first = r;
  b->last = r;
}

static void bin_remove(posted_bin *b, spx_request *r)
{
  if (r->bin_prev)
    r->bin_prev->bin_next = r->bin_next;
  else
    b->first = r->bin_next;
  if (r->bin_next)
    r->bin_next->bin_prev = r->bin_prev;
  else
    b->last = r->bin_prev;
}

/* Order within a bin is order of posting, and stays so: equal keys come from the same bin. */
static void grow_posted(void)
{
  uint32_t old = posted_bins;
  posted_bin *bins = calloc(old * 2, sizeof *bins);
  if (!bins) return; /* slower, not wrong */
  posted_bin *was = posted;
  posted = bins;
  posted_bins = old * 2;
  for (uint32_t i = 0; i < old; i++)
    for (spx_request *r = was[i].first, *next; r; r = next) {
      next = r->bin_next;
      bin_append(bin_of(r), r);
    }
  free(was);
}

void spx_post(spx_request *r)
{
  if (SPX_UNLIKELY(spx_posted_count >= 2ull * posted_bins)) grow_posted();
  SPX_ASSERT(r->state == SPX_S_NONE && r->kind == SPX_R_RECV);
  r->posted.order = ++next_order;
  r->state = SPX_S_POSTED;
  bin_append(bin_of(r), r);
  spx_posted_count++;
  if (SPX_UNLIKELY(spx_is_origin(r->want_src))) spx_inbound_posted++;
}

void spx_unpost(spx_request *r)
{
  bin_remove(bin_of(r), r);
  r->state = SPX_S_NONE;
  spx_posted_count--;
  if (SPX_UNLIKELY(spx_is_origin(r->want_src))) spx_inbound_posted--;
}

spx_request *spx_match_posted(uint64_t ctx, int32_t src, int32_t tag)
{
  ctx = spx_inbound(ctx, src);
  spx_request *exact = posted[hash(ctx, src, tag) & (posted_bins - 1)].first;
  while (exact && !(exact->ctx == ctx && exact->want_src == src && exact->want_tag == tag))
    exact = exact->bin_next;
  spx_request *r = wild.first;
  while (r && !(exact && exact->posted.order < r->posted.order) && !fits(r, ctx, src, tag))
    r = r->bin_next;
  if (!r || (exact && exact->posted.order < r->posted.order)) r = exact;
  if (r) spx_unpost(r);
  return r;
}

void spx_each_posted(void (*fn)(spx_request *, void *), void *arg)
{
  spx_request *next;
  for (uint32_t i = 0; i <= posted_bins; i++)
    for (spx_request *r = i < posted_bins ? posted[i].first : wild.first; r; r = next) {
      next = r->bin_next;
      fn(r, arg);
    }
}

/* ---- unexpected messages ---- */

/* All messages from other clusters are in one bin: receives for them use wildcards, as a rule. */
static uint32_t unex_index(int by, uint64_t ctx, int32_t src, int32_t tag)
{
  if (src < 0) src = -1;
  return hash(ctx, by == SPX_BY_EXACT || by == SPX_BY_SRC ? src : 0,
              by == SPX_BY_EXACT || by == SPX_BY_TAG ? tag : 0) &
         (unex_bins - 1);
}

static void unex_append(int by, spx_unex *e)
{
  unex_bin *b = &unex[by][unex_index(by, e->ctx, e->src, e->tag)];
  e->link[by].next = NULL;
  e->link[by].prev = b->last;
  if (b->last)
    b->last->link[by].next = e;
  else
    b->first = e;
  b->last = e;
}

static void grow_unexpected(void)
{
  uint32_t old = unex_bins;
  unex_bin *bins[SPX_BY_COUNT];
  for (int by = 0; by < SPX_BY_COUNT; by++)
    if (!(bins[by] = calloc(old * 2, sizeof *bins[by]))) {
      while (by > 0) free(bins[--by]);
      return; /* slower, not wrong */
    }
  unex_bins = old * 2;
  for (int by = 0; by < SPX_BY_COUNT; by++) {
    unex_bin *was = unex[by];
    unex[by] = bins[by];
    for (uint32_t i = 0; i < old; i++)
      for (spx_unex *e = was[i].first, *next; e; e = next) {
        next = e->link[by].next;
        unex_append(by, e);
      }
    free(was);
  }
}

spx_unex *spx_unex_new(uint64_t payload)
{
  spx_unex *e;
  if (payload <= POOL_PAYLOAD) {
    if ((e = pool)) {
      pool = e->link[0].next;
      pool_n--;
    } else if (!(e = from_reserve()) && !(e = malloc(ENTRY)))
      return NULL;
    e->spare = IN_POOL;
  } else {
    uint32_t class;
    if (!(e = spx_spare_take(&spares, sizeof *e + payload, &class))) return NULL;
    e->spare = (uint16_t) class;
  }
  e->self = NULL;
  e->addr = e->type = 0;
  e->cost = 0;
  e->word = e->held = false;
  return e;
}

void spx_unex_free(spx_unex *e)
{
  if (e->spare != IN_POOL) {
    spx_spare_keep(&spares, e, e->spare);
  } else if (pool_n < POOL_MAX || is_reserve(e)) {
    e->link[0].next = pool;
    pool = e;
    pool_n++;
  } else
    free(e);
}

void spx_unex_rest(void) { spx_spare_trim(&spares, 0); }

void spx_unex_add(spx_unex *e)
{
  if (SPX_UNLIKELY(spx_unex_count >= 2ull * unex_bins)) grow_unexpected();
  for (int by = 0; by < SPX_BY_COUNT; by++) unex_append(by, e);
  spx_stat.unexpected++;
  if (++spx_unex_count > spx_stat.unexpected_high) spx_stat.unexpected_high = spx_unex_count;
  spx_note(SPX_EV_UNEXPECTED, e->src, e->tag, (int64_t)e->bytes, (int64_t)e->ctx);
}

void spx_unex_remove(spx_unex *e)
{
  SPX_ASSERT(spx_unex_count > 0);
  for (int by = 0; by < SPX_BY_COUNT; by++) {
    unex_bin *b = &unex[by][unex_index(by, e->ctx, e->src, e->tag)];
    spx_unex *next = e->link[by].next, *prev = e->link[by].prev;
    if (prev)
      prev->link[by].next = next;
    else
      b->first = next;
    if (next)
      next->link[by].prev = prev;
    else
      b->last = prev;
  }
  spx_unex_count--;
}

spx_unex *spx_match_unexpected(uint64_t ctx, int32_t src, int32_t tag)
{
  if (spx_unex_count == 0) return NULL;
  int by = src == MPI_ANY_SOURCE ? (tag == MPI_ANY_TAG ? SPX_BY_CTX : SPX_BY_TAG)
           : tag == MPI_ANY_TAG  ? SPX_BY_SRC
                                 : SPX_BY_EXACT;
  spx_unex *e = unex[by][unex_index(by, ctx, src, tag)].first;
  while (e && !(e->ctx == ctx &&
                (src == MPI_ANY_SOURCE || e->src == src || spx_origin_fits(src, e->src)) &&
                (tag == MPI_ANY_TAG || e->tag == tag)))
    e = e->link[by].next;
  return e;
}

void spx_each_unexpected(void (*fn)(spx_unex *, void *), void *arg)
{
  spx_unex *next;
  for (uint32_t i = 0; i < unex_bins; i++)
    for (spx_unex *e = unex[SPX_BY_CTX][i].first; e; e = next) {
      next = e->link[SPX_BY_CTX].next;
      fn(e, arg);
    }
}
