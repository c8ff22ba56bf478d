/* ckpt_restore.c - checkpoints: going back to a version, on as many processes as have saved it or on others. See ckpt.h. */
#define _GNU_SOURCE
#include "ckpt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "once.h"

static bool same_version(const spx_ckpt_item *a, const spx_ckpt_item *b)
{
  return a->generation == b->generation && a->version == b->version && a->ranks == b->ranks;
}

/* This process's copy of a rank's part of the chosen version, in memory; NULL: it has none. */
static spx_ckpt_part *part_of(const spx_checkpoint *k, int rank, int kind)
{
  for (spx_ckpt_part *p = k->parts; p; p = p->next)
    if (p->is.kind == kind && p->is.rank == rank && same_version(&p->is, &k->chosen)) return p;
  return NULL;
}

/* ---- choosing a version ---------------------------------------------------------------------------------------- */

static int choose(spx_checkpoint *k, int version)
{
  int64_t i = 0;
  while (i < k->nknown && version != MPIX_CHECKPOINT_NEWEST && k->known[i].version != version) i++;
  if (i == k->nknown) {
    if (version == MPIX_CHECKPOINT_NEWEST)
      spx_detail("there is no version of which every part is there");
    else
      spx_detail("version is %d, of which not every part is there", version);
    return MPIX_ERR_CHECKPOINT;
  }
  k->chosen = k->known[i];
  free(k->sources);
  k->sources = malloc((size_t)k->chosen.ranks * sizeof *k->sources);
  if (!k->sources) return spx_ckpt_no_memory(k->chosen.ranks);
  return SPX_CKPT_ASK(SPX_IN_CKPT_SOURCES, {.p = k->items}, {.i = k->nitems}, {.p = &k->chosen}, {.p = k->sources});
}

/* A file that is not what it should be is none. */
static bool is_bad(const spx_checkpoint *k, const spx_ckpt_part *p)
{
  (void)k;
  return p->bytes < 0;
}

static void drop_unread(spx_checkpoint *k)
{
  for (spx_ckpt_part **at = &k->parts; *at;) {
    spx_ckpt_part *p = *at;
    if (!is_bad(k, p)) {
      at = &p->next;
      continue;
    }
    *at = p->next; /* the file stays, for who wants to know what has become of it */
    free(p);
  }
}

/* Reads what this process is to serve and has in files. *bad: some were not what they should be. */
static int read_files(spx_checkpoint *k, int *bad)
{
  *bad = 0;
  for (int r = 0; r < k->chosen.ranks; r++) {
    if (k->sources[r] != k->rank || part_of(k, r, SPX_CKPT_MEMORY)) continue;
    spx_ckpt_part *file = part_of(k, r, SPX_CKPT_FILE);
    if (!file) continue;
    void *data = NULL;
    int64_t bytes = 0;
    int err = SPX_CKPT_ASK(SPX_IN_CKPT_READ, {.p = k->directory}, {.p = k->name}, {.p = &file->is}, {.p = &data},
                           {.p = &bytes});
    if (err == MPI_ERR_NO_MEM) return err;
    if (err != MPI_SUCCESS) {
      char cause[512];
      snprintf(cause, sizeof cause, "a part of checkpoint version %d is not used: %.400s", k->chosen.version,
               spx_detail_text());
      spx_say_once(cause, "rank %d: %s", k->rank, cause);
      file->bytes = -1;
      *bad = 1;
      continue;
    }
    spx_ckpt_item is = file->is;
    is.kind = SPX_CKPT_MEMORY;
    if (!spx_ckpt_keep(k, is, data, bytes)) return spx_ckpt_no_memory(bytes);
  }
  drop_unread(k);
  return MPI_SUCCESS;
}

/* ---- what is in it --------------------------------------------------------------------------------------------- */

static int64_t get(const char *at)
{
  int64_t v;
  memcpy(&v, at, sizeof v);
  return v;
}

static int regions_in(const char *part)
{
  int32_t n;
  memcpy(&n, part + 12, sizeof n);
  return n;
}

static int by_rank_and_id(const void *a, const void *b)
{
  const spx_ckpt_entry *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* The entries of the parts that this process serves, for everybody; and one with id -1 that has the bytes of the whole. */
static spx_ckpt_entry *own_entries(const spx_checkpoint *k, int *bytes)
{
  int n = 0;
  spx_ckpt_entry *mine = NULL;
  for (int pass = 0; pass < 2; pass++) {
    if (pass == 1 && !(mine = malloc((size_t)(n + 1) * sizeof *mine))) break;
    n = 0;
    for (int r = 0; r < k->chosen.ranks; r++) {
      const spx_ckpt_part *p = k->sources[r] == k->rank ? part_of(k, r, SPX_CKPT_MEMORY) : NULL;
      if (!p) continue;
      if (mine) mine[n] = (spx_ckpt_entry){r, -1, 0, p->bytes};
      n++;
      for (int i = 0; i < regions_in(p->data); i++, n++) {
        const char *e = (const char *)p->data + SPX_CKPT_HEAD + SPX_CKPT_ENTRY * i;
        if (mine) mine[n] = (spx_ckpt_entry){r, get(e), get(e + 8), get(e + 16)};
      }
    }
  }
  *bytes = mine ? n * (int)sizeof *mine : 0;
  return mine;
}

static int make_table(spx_checkpoint *k)
{
  int bytes, total = 0, *counts = malloc((size_t)k->size * sizeof *counts), *at = malloc((size_t)k->size * sizeof *at);
  spx_ckpt_entry *mine = own_entries(k, &bytes);
  int err = spx_ckpt_judge(k, counts && at && mine ? MPI_SUCCESS : spx_ckpt_no_memory(bytes));
  if (err == MPI_SUCCESS) err = spx_ckpt_check(k, PMPI_Allgather(&bytes, 1, MPI_INT, counts, 1, MPI_INT, k->own));
  for (int r = 0; err == MPI_SUCCESS && r < k->size; r++) {
    at[r] = total;
    total += counts[r];
  }
  if (err == MPI_SUCCESS) {
    k->table = malloc((size_t)total + 1);
    err = spx_ckpt_judge(k, k->table ? MPI_SUCCESS : spx_ckpt_no_memory(total));
  }
  if (err == MPI_SUCCESS)
    err = spx_ckpt_check(k, PMPI_Allgatherv(mine, bytes, MPI_BYTE, k->table, counts, at, MPI_BYTE, k->own));
  if (err == MPI_SUCCESS) {
    k->nentries = total / (int)sizeof *k->table;
    qsort(k->table, (size_t)k->nentries, sizeof *k->table, by_rank_and_id);
  }
  free(mine);
  free(counts);
  free(at);
  return err;
}

static const spx_ckpt_entry *entry_of(const spx_checkpoint *k, int rank, int id)
{
  spx_ckpt_entry key = {rank, id, 0, 0};
  return bsearch(&key, k->table, (size_t)k->nentries, sizeof key, by_rank_and_id);
}

static int begin(spx_checkpoint *k, int version)
{
  int bad, worst = 0, err = spx_ckpt_settle(k);
  if (err != MPI_SUCCESS) return err;
  do {
    err = spx_ckpt_take_stock(k, MPI_SUCCESS);
    if (err == MPI_SUCCESS) err = choose(k, version);
    if (err == MPIX_ERR_CHECKPOINT) return err; /* all see the same */
    bad = 0;
    if (err == MPI_SUCCESS) err = read_files(k, &bad);
    err = spx_ckpt_judge(k, err);
    if (err == MPI_SUCCESS) err = spx_ckpt_check(k, PMPI_Allreduce(&bad, &worst, 1, MPI_INT, MPI_MAX, k->own));
  } while (err == MPI_SUCCESS && worst);
  if (err == MPI_SUCCESS) err = make_table(k);
  k->restoring = err == MPI_SUCCESS;
  return err;
}

int spx_c_X_Checkpoint_restore_begin(MPIX_Checkpoint checkpoint, int version, int *restored, int *size)
{
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  int err = spx_ckpt_ready(k, false);
  if (err != MPI_SUCCESS) return spx_ckpt_fail(k, err);
  uint32_t fn = spx_mute_enter();
  err = begin(k, version);
  spx_mute_leave(fn);
  if (err != MPI_SUCCESS) return spx_ckpt_fail(k, err);
  *restored = k->chosen.version;
  *size = k->chosen.ranks;
  return MPI_SUCCESS;
}

/* ---- asking for data ------------------------------------------------------------------------------------------- */

static int bad_rank(const spx_checkpoint *k, int rank)
{
  if (rank >= 0 && rank < k->chosen.ranks) return MPI_SUCCESS;
  spx_detail("rank is %d, but version %d was saved by ranks 0 to %d", rank, k->chosen.version, k->chosen.ranks - 1);
  return MPI_ERR_RANK;
}

int spx_c_X_Checkpoint_get_bytes(MPIX_Checkpoint checkpoint, int rank, int id, MPI_Count *bytes)
{
  const spx_checkpoint *k = spx_ckpt_of(checkpoint);
  int err = spx_ckpt_ready(k, true);
  if (err == MPI_SUCCESS) err = bad_rank(k, rank);
  if (err != MPI_SUCCESS) return spx_ckpt_fail(k, err);
  const spx_ckpt_entry *e = id < 0 ? NULL : entry_of(k, rank, id);
  *bytes = e ? e->bytes : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

/* Notes that buf is to get bytes of a part. */
static int want(spx_checkpoint *k, spx_ckpt_want w)
{
  if (k->nwants == k->room) {
    int64_t room = 2 * k->room + 16;
    spx_ckpt_want *more = realloc(k->wants, (size_t)room * sizeof *more);
    if (!more) return spx_ckpt_no_memory(room * (int64_t)sizeof *more);
    k->wants = more;
    k->room = room;
  }
  spx_ref(&w.type->o);
  k->wants[k->nwants++] = w;
  return MPI_SUCCESS;
}

static int fetch(spx_checkpoint *k, int rank, int id, int64_t offset, void *buf, int64_t count, spx_type *type)
{
  int err = bad_rank(k, rank);
  if (err != MPI_SUCCESS) return err;
  const spx_ckpt_entry *e = id < 0 ? NULL : entry_of(k, rank, id);
  if (!e) {
    spx_detail("id is %d, but rank %d has saved no such region in version %d", id, rank, k->chosen.version);
    return MPIX_ERR_CHECKPOINT;
  }
  int64_t bytes, end;
  if (offset < 0 || __builtin_mul_overflow(count, type->size, &bytes) || __builtin_add_overflow(offset, bytes, &end) ||
      end > e->bytes) {
    spx_detail(
        "offset is %lld and count is %lld, of %lld bytes each, but region %d of rank %d has %lld bytes in version %d",
        (long long)offset, (long long)count, (long long)type->size, id, rank, (long long)e->bytes, k->chosen.version);
    return MPI_ERR_TRUNCATE;
  }
  return bytes == 0 ? MPI_SUCCESS : want(k, (spx_ckpt_want){rank, e->at + offset, bytes, buf, count, type});
}

int spx_c_X_Checkpoint_fetch(MPIX_Checkpoint checkpoint, int rank, int id, MPI_Count offset, void *buf, int64_t count,
                             spx_type *datatype)
{
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  int err = spx_ckpt_ready(k, true);
  if (err == MPI_SUCCESS) err = fetch(k, rank, id, offset, buf, count, datatype);
  return err == MPI_SUCCESS ? err : spx_ckpt_fail(k, err);
}

/* ---- moving it ------------------------------------------------------------------------------------------------- */

typedef struct {
  int64_t rank, at, bytes;
} order; /* "send me this of that rank's part" */

typedef struct {
  int *out, *out_at, *in, *in_at; /* bytes of orders, by rank */
  order *ask, *serve;
  int64_t nserve;
} orders;

static void free_orders(orders *o)
{
  free(o->out);
  free(o->ask);
  free(o->serve);
}

/* Everybody hears what is wanted of it. */
static int place_orders(spx_checkpoint *k, orders *o)
{
  size_t n = (size_t)k->size;
  *o = (orders){.out = calloc(4 * n, sizeof(int)), .ask = malloc((size_t)(k->nwants + 1) * sizeof(order))};
  int err = spx_ckpt_judge(k, o->out && o->ask ? MPI_SUCCESS : spx_ckpt_no_memory(k->nwants));
  if (err != MPI_SUCCESS) return err;
  o->out_at = o->out + n;
  o->in = o->out_at + n;
  o->in_at = o->in + n;
  for (int64_t i = 0; i < k->nwants; i++) o->out[k->sources[k->wants[i].rank]] += (int)sizeof(order);
  int total = 0, filled;
  for (int r = 0; r < k->size; r++) {
    o->out_at[r] = filled = total;
    for (int64_t i = 0; o->out[r] && i < k->nwants; i++) {
      const spx_ckpt_want *w = &k->wants[i];
      if (k->sources[w->rank] != r) continue;
      o->ask[filled / (int)sizeof(order)] = (order){w->rank, w->at, w->bytes};
      filled += (int)sizeof(order);
    }
    total += o->out[r];
  }
  err = spx_ckpt_check(k, PMPI_Alltoall(o->out, 1, MPI_INT, o->in, 1, MPI_INT, k->own));
  total = 0;
  for (int r = 0; err == MPI_SUCCESS && r < k->size; r++) {
    o->in_at[r] = total;
    total += o->in[r];
  }
  o->nserve = total / (int)sizeof(order);
  if (err == MPI_SUCCESS) o->serve = malloc((size_t)total + 1);
  if (err == MPI_SUCCESS) err = spx_ckpt_judge(k, o->serve ? MPI_SUCCESS : spx_ckpt_no_memory(total));
  if (err == MPI_SUCCESS)
    err = spx_ckpt_check(
        k, PMPI_Alltoallv(o->ask, o->out, o->out_at, MPI_BYTE, o->serve, o->in, o->in_at, MPI_BYTE, k->own));
  return err;
}

enum { FETCHED = 1, COPIED };

/* Messages of a pair are received in the order in which they were sent: that of the orders. */
static int deliver(spx_checkpoint *k, const orders *o)
{
  spx_ckpt_batch b;
  bool room = spx_ckpt_batch_open(&b, k, k->nwants + o->nserve);
  int err = spx_ckpt_judge(k, room ? MPI_SUCCESS : spx_ckpt_no_memory(k->nwants));
  if (err != MPI_SUCCESS) {
    if (room) spx_ckpt_batch_close(&b);
    return err;
  }
  for (int64_t i = 0; i < k->nwants; i++) {
    const spx_ckpt_want *w = &k->wants[i];
    spx_ckpt_receive(&b, w->buf, w->count, w->type, k->sources[w->rank], FETCHED);
  }
  for (int r = 0; r < k->size; r++)
    for (int64_t i = 0; i < o->in[r] / (int)sizeof(order); i++) {
      const order *w = &o->serve[o->in_at[r] / (int)sizeof(order) + i];
      const spx_ckpt_part *p = part_of(k, (int)w->rank, SPX_CKPT_MEMORY);
      spx_ckpt_send(&b, (const char *)p->data + w->at, w->bytes, r, FETCHED);
    }
  return spx_ckpt_batch_close(&b);
}

/* The copies that have been lost with their holders are made anew. Where there is no memory for them, none are. */
static int protect(spx_checkpoint *k)
{
  spx_ckpt_copy *list = NULL;
  int64_t n = 0;
  int err = SPX_CKPT_ASK(SPX_IN_CKPT_MISSING, {.p = k->items}, {.i = k->nitems}, {.p = &k->chosen}, {.p = k->sources},
                         {.p = k->hosts}, {.i = k->size}, {.i = k->copies}, {.p = &list}, {.p = &n});
  spx_ckpt_batch b = {0};
  void **data = calloc((size_t)n + 1, sizeof *data);
  bool room = err == MPI_SUCCESS && data && spx_ckpt_batch_open(&b, k, 2 * n);
  for (int64_t i = 0; room && i < n; i++)
    if (list[i].to == k->rank && !(data[i] = malloc((size_t)entry_of(k, list[i].rank, -1)->bytes))) room = false;
  int can = room, all;
  err = spx_ckpt_check(k, PMPI_Allreduce(&can, &all, 1, MPI_INT, MPI_MIN, k->own));
  for (int64_t i = 0; err == MPI_SUCCESS && all && i < n; i++)
    if (list[i].to == k->rank)
      spx_ckpt_receive(&b, data[i], entry_of(k, list[i].rank, -1)->bytes, spx_ckpt_bytes(), list[i].from, COPIED);
  for (int64_t i = 0; err == MPI_SUCCESS && all && i < n; i++)
    if (list[i].from == k->rank) {
      const spx_ckpt_part *p = part_of(k, list[i].rank, SPX_CKPT_MEMORY);
      spx_ckpt_send(&b, p->data, p->bytes, list[i].to, COPIED);
    }
  if (b.r) {
    int rc = spx_ckpt_batch_close(&b);
    if (err == MPI_SUCCESS) err = rc;
  }
  for (int64_t i = 0; data && i < n; i++) {
    if (!data[i]) continue;
    spx_ckpt_item is = k->chosen;
    is.rank = list[i].rank;
    is.kind = SPX_CKPT_MEMORY;
    if (err == MPI_SUCCESS && all)
      spx_ckpt_keep(k, is, data[i], entry_of(k, list[i].rank, -1)->bytes); /* one copy less is no error */
    else
      free(data[i]);
  }
  free(data);
  free(list);
  return err;
}

static bool is_later(const spx_checkpoint *k, const spx_ckpt_part *p)
{
  if (p->is.generation != k->chosen.generation) return p->is.generation > k->chosen.generation;
  return p->is.version > k->chosen.version;
}

/* With files, and without copies in memory, the file is enough. */
static bool is_surplus(const spx_checkpoint *k, const spx_ckpt_part *p)
{
  return k->copies == 0 && p->is.kind == SPX_CKPT_MEMORY && k->directory && part_of(k, p->is.rank, SPX_CKPT_FILE);
}

static int end(spx_checkpoint *k, int status)
{
  orders o = {0};
  int err = spx_ckpt_judge(k, status);
  if (err == MPI_SUCCESS) {
    err = place_orders(k, &o);
    if (err == MPI_SUCCESS) err = deliver(k, &o);
    free_orders(&o);
  }
  if (err == MPI_SUCCESS && k->copies > 0) err = protect(k);
  if (err == MPI_SUCCESS) err = spx_ckpt_check(k, PMPI_Barrier(k->own)); /* all of it is safe: what is later may go */
  if (err == MPI_SUCCESS) {
    int64_t i = 0;
    while (i < k->nknown && k->known[i].version != k->chosen.version) i++;
    k->nknown -= i;
    memmove(k->known, k->known + i, (size_t)k->nknown * sizeof *k->known);
    spx_ckpt_drop(k, is_later);
    spx_ckpt_drop(k, is_surplus);
    k->generation++;
    k->saved = -1;
  }
  spx_ckpt_forget(k);
  return err;
}

int spx_c_X_Checkpoint_restore_end(MPIX_Checkpoint checkpoint)
{
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  int err = spx_ckpt_ready(k, true);
  if (err != MPI_SUCCESS) return spx_ckpt_fail(k, err);
  uint32_t fn = spx_mute_enter();
  err = end(k, MPI_SUCCESS);
  spx_mute_leave(fn);
  return err == MPI_SUCCESS ? err : spx_ckpt_fail(k, err);
}

/* All that is registered, as the process with this rank has saved it. */
static int fetch_own(spx_checkpoint *k)
{
  if (k->chosen.ranks != k->size) {
    spx_detail("version %d was saved by %d processes, but there are %d now: use MPIX_Checkpoint_restore_begin, "
               "MPIX_Checkpoint_fetch and MPIX_Checkpoint_restore_end",
               k->chosen.version, k->chosen.ranks, k->size);
    return MPIX_ERR_CHECKPOINT;
  }
  for (int i = 0; i < k->nregions; i++) {
    const spx_ckpt_region *r = &k->regions[i];
    const spx_ckpt_entry *e = entry_of(k, k->rank, r->id);
    if (!e || e->bytes != r->count * r->type->size) {
      spx_detail("checkpoint has %lld bytes registered as region %d, but %lld in version %d (-1: none)",
                 (long long)(r->count * r->type->size), r->id, e ? (long long)e->bytes : -1, k->chosen.version);
      return MPIX_ERR_CHECKPOINT;
    }
    int err = fetch(k, k->rank, r->id, 0, r->buf, r->count, r->type);
    if (err != MPI_SUCCESS) return err;
  }
  return MPI_SUCCESS;
}

int spx_c_X_Checkpoint_restore(MPIX_Checkpoint checkpoint, int version, int *restored)
{
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  int err = spx_ckpt_ready(k, false);
  if (err != MPI_SUCCESS) return spx_ckpt_fail(k, err);
  uint32_t fn = spx_mute_enter();
  err = begin(k, version);
  if (err == MPI_SUCCESS) err = end(k, fetch_own(k));
  spx_mute_leave(fn);
  if (err != MPI_SUCCESS) return spx_ckpt_fail(k, err);
  *restored = k->chosen.version;
  return MPI_SUCCESS;
}
