/* ckpt_save.c - checkpoints: saving a version, and making it count. See ckpt.h. */
#define _GNU_SOURCE
#include "ckpt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"

/* Notes why this process cannot keep all of it: others are told when it is committed. */
static void cannot(spx_checkpoint *k, int code)
{
  if (k->status != MPI_SUCCESS) return;
  k->status = code;
  snprintf(k->why, sizeof k->why, "%s", spx_detail_text());
}

static int64_t rounded(int64_t bytes) { return (bytes + 7) & ~(int64_t)7; }

static void put(char *at, int64_t v, size_t n) { memcpy(at, &v, n); } /* little endian, as all hosts are */

/* This process's part, with what is registered; NULL: no memory. */
static char *packed(const spx_checkpoint *k, spx_ckpt_item is, int64_t *bytes)
{
  int64_t at = SPX_CKPT_HEAD + SPX_CKPT_ENTRY * (int64_t)k->nregions, total = at;
  for (int i = 0; i < k->nregions; i++) total += rounded(k->regions[i].count * k->regions[i].type->size);
  char *part = malloc((size_t)total);
  *bytes = part ? total : 0;
  if (!part) return NULL;
  memcpy(part, "SPXCKPT1", 8);
  put(part + 8, 0, 4);
  put(part + 12, k->nregions, 4);
  put(part + 16, is.generation, 8);
  put(part + 24, is.version, 4);
  put(part + 28, is.rank, 4);
  put(part + 32, is.ranks, 8);
  put(part + 40, total, 8);
  for (int i = 0; i < k->nregions; i++) {
    const spx_ckpt_region *r = &k->regions[i];
    int64_t n = r->count * r->type->size;
    char *entry = part + SPX_CKPT_HEAD + SPX_CKPT_ENTRY * i;
    put(entry, r->id, 8);
    put(entry + 8, at, 8);
    put(entry + 16, n, 8);
    if (n > 0) spx_pack(r->buf, r->count, r->type, 0, n, part + at);
    memset(part + at + n, 0, (size_t)(rounded(n) - n));
    at += rounded(n);
  }
  return part;
}

enum { SIZES = 1, VERDICTS, DATA }; /* tags */

/* Those that keep copies of this part hear how large it is and say whether they have room; then it is on its way, and theirs to here. */
static int exchange(spx_checkpoint *k, spx_ckpt_save *s)
{
  spx_ckpt_part *in = s->in;
  int64_t *yes = calloc((size_t)(k->nto + k->nfrom + 1), sizeof *yes), *mine = yes + k->nto;
  spx_ckpt_batch b;
  /* A few bytes for each buddy: a process that has not even these cannot go on, and its partners wait for it. */
  if (!yes || !spx_ckpt_batch_open(&b, k, k->nto + k->nfrom)) {
    free(yes);
    return spx_ckpt_check(k, spx_ckpt_no_memory(64));
  }
  for (int64_t i = 0; i < k->nfrom; i++)
    spx_ckpt_receive(&b, &in[i].bytes, sizeof in[i].bytes, spx_ckpt_bytes(), k->from[i], SIZES);
  for (int64_t i = 0; i < k->nto; i++) spx_ckpt_send(&b, &s->bytes, sizeof s->bytes, k->to[i], SIZES);
  int err = spx_ckpt_batch_close(&b);
  for (int64_t i = 0; err == MPI_SUCCESS && i < k->nfrom; i++) {
    in[i].data = in[i].bytes > 0 ? malloc((size_t)in[i].bytes) : NULL;
    mine[i] = in[i].data != NULL;
    if (in[i].bytes > 0 && !in[i].data) cannot(k, spx_ckpt_no_memory(in[i].bytes));
  }
  bool go = err == MPI_SUCCESS && spx_ckpt_batch_open(&b, k, k->nto + k->nfrom);
  if (go) {
    for (int64_t i = 0; i < k->nto; i++)
      spx_ckpt_receive(&b, &yes[i], sizeof *yes, spx_ckpt_bytes(), k->to[i], VERDICTS);
    for (int64_t i = 0; i < k->nfrom; i++) spx_ckpt_send(&b, &mine[i], sizeof *mine, k->from[i], VERDICTS);
    err = spx_ckpt_batch_close(&b);
  } else if (err == MPI_SUCCESS)
    err = spx_ckpt_check(k, spx_ckpt_no_memory(64));
  go = err == MPI_SUCCESS && spx_ckpt_batch_open(&s->batch, k, k->nto + k->nfrom);
  if (go) {
    for (int64_t i = 0; i < k->nfrom; i++)
      if (mine[i]) spx_ckpt_receive(&s->batch, in[i].data, in[i].bytes, spx_ckpt_bytes(), k->from[i], DATA);
    for (int64_t i = 0; i < k->nto; i++)
      if (yes[i]) spx_ckpt_send(&s->batch, s->part, s->bytes, k->to[i], DATA);
  } else if (err == MPI_SUCCESS)
    err = spx_ckpt_check(k, spx_ckpt_no_memory(64));
  free(yes);
  return err;
}

/* Copies of others' parts. They count for nothing when the exchange has failed. */
static void keep_copies(spx_checkpoint *k, spx_ckpt_save *s, int err)
{
  for (int64_t i = 0; s->in && i < k->nfrom; i++) {
    spx_ckpt_item is = s->is;
    is.rank = k->from[i];
    if (err != MPI_SUCCESS)
      free(s->in[i].data);
    else if (s->in[i].data && !spx_ckpt_keep(k, is, s->in[i].data, s->in[i].bytes))
      cannot(k, spx_ckpt_no_memory(s->in[i].bytes));
  }
  free(s->in);
}

static void begin_file(spx_checkpoint *k, spx_ckpt_save *s)
{
  int err = SPX_CKPT_ASK(SPX_IN_CKPT_WRITE, {.p = k->directory}, {.p = k->name}, {.p = s->part}, {.i = s->bytes},
                         {.p = &s->is});
  s->writing = err == MPI_SUCCESS;
  if (err != MPI_SUCCESS) cannot(k, err);
}

static void end_file(spx_checkpoint *k, spx_ckpt_save *s)
{
  if (!s->writing) return;
  int err = SPX_CKPT_ASK(SPX_IN_CKPT_WRITTEN, {.p = s->part});
  spx_ckpt_item is = s->is;
  is.kind = SPX_CKPT_FILE;
  if (err == MPI_SUCCESS && !spx_ckpt_keep(k, is, NULL, s->bytes)) err = spx_ckpt_no_memory(sizeof is);
  if (err != MPI_SUCCESS) cannot(k, err);
}

static bool is_uncommitted(const spx_checkpoint *k, const spx_ckpt_part *p)
{
  return p->is.generation == k->generation && p->is.version == k->saved;
}

/* The end of what begin has begun; err: of its part. */
static int finish(spx_checkpoint *k, int err)
{
  spx_ckpt_save *s = k->pending;
  k->pending = NULL;
  if (s->batch.r) {
    int rc = spx_ckpt_batch_close(&s->batch);
    if (err == MPI_SUCCESS) err = rc;
  }
  char text[256];
  strncpy(text, spx_detail_text(), sizeof text - 1);
  text[sizeof text - 1] = 0;
  end_file(k, s);
  keep_copies(k, s, err);
  if (s->part && k->directory && k->copies == 0)
    free(s->part); /* the file is enough */
  else if (s->part && !spx_ckpt_keep(k, s->is, s->part, s->bytes))
    cannot(k, spx_ckpt_no_memory(s->bytes));
  free(s);
  if (err != MPI_SUCCESS) spx_detail("%s", text);
  return err;
}

int spx_ckpt_settle(spx_checkpoint *k) { return k->pending ? finish(k, MPI_SUCCESS) : MPI_SUCCESS; }

/* From here on the program may change what is saved: it is in a buffer, from which the copies and the file are made. */
static int begin(spx_checkpoint *k, int version)
{
  int err = spx_ckpt_settle(k);
  if (err != MPI_SUCCESS) return err;
  if (k->saved >= 0) spx_ckpt_drop(k, is_uncommitted);
  k->saved = version;
  k->status = MPI_SUCCESS;
  spx_ckpt_save *s = calloc(1, sizeof *s);
  if (!s) return spx_ckpt_check(k, spx_ckpt_no_memory(sizeof *s));
  k->pending = s;
  s->is = (spx_ckpt_item){k->generation, version, k->rank, k->size, k->rank, SPX_CKPT_MEMORY, 0};
  s->part = packed(k, s->is, &s->bytes);
  s->in = calloc((size_t)(k->nfrom + 1), sizeof *s->in);
  if (!s->part) cannot(k, spx_ckpt_no_memory(s->bytes));
  if (s->part && k->directory) begin_file(k, s);
  err = s->in ? exchange(k, s) : spx_ckpt_check(k, spx_ckpt_no_memory(k->nfrom));
  return err == MPI_SUCCESS ? err : finish(k, err);
}

/* whole: it waits for the end. */
static int save(MPIX_Checkpoint checkpoint, int version, bool whole)
{
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  int err = spx_ckpt_ready(k, false);
  if (err == MPI_SUCCESS && (version < 0 || (k->nknown > 0 && version <= k->known[0].version))) {
    if (version < 0)
      spx_detail("version is %d, but must be 0 or more", version);
    else
      spx_detail("version is %d, but must be above %d, which is there already", version, k->known[0].version);
    err = MPI_ERR_ARG;
  }
  if (err != MPI_SUCCESS) return spx_ckpt_fail(k, err);
  uint32_t fn = spx_mute_enter();
  err = begin(k, version);
  if (err == MPI_SUCCESS && whole) err = spx_ckpt_settle(k);
  spx_mute_leave(fn);
  return err == MPI_SUCCESS ? err : spx_ckpt_fail(k, err);
}

int spx_c_X_Checkpoint_save(MPIX_Checkpoint checkpoint, int version) { return save(checkpoint, version, true); }

int spx_c_X_Checkpoint_save_begin(MPIX_Checkpoint checkpoint, int version) { return save(checkpoint, version, false); }

/* ---- committing ------------------------------------------------------------------------------------------------ */

static bool is_old(const spx_checkpoint *k, const spx_ckpt_part *p)
{
  for (int64_t i = 0; i < k->nknown; i++)
    if (p->is.generation == k->known[i].generation && p->is.version == k->known[i].version) return false;
  return true;
}

static int commit(spx_checkpoint *k)
{
  enum { VERSION, OTHERWISE, WORST, WORDS };
  int64_t said[WORDS] = {k->saved, -k->saved, 0}, all[WORDS];
  if (k->status != MPI_SUCCESS) said[WORST] = (int64_t)k->status << 32 | (uint32_t)k->rank;
  spx_ckpt_item *known = realloc(k->known, (size_t)(k->nknown + 1) * sizeof *known);
  if (!known) return spx_ckpt_check(k, spx_ckpt_no_memory(sizeof *known));
  k->known = known;
  int err = spx_ckpt_check(k, PMPI_Allreduce(said, all, WORDS, MPI_INT64_T, MPI_MAX, k->own));
  if (err != MPI_SUCCESS) return err;
  if (all[WORST] != 0 || all[VERSION] != -all[OTHERWISE]) {
    spx_ckpt_drop(k, is_uncommitted);
    if (all[VERSION] != -all[OTHERWISE])
      spx_detail("this process has saved version %d, but others have saved others, from %lld to %lld", k->saved,
                 (long long)-all[OTHERWISE], (long long)all[VERSION]);
    else if (k->status != MPI_SUCCESS)
      spx_detail("version %d: %s", k->saved, k->why);
    else
      spx_detail("version %d: rank %d could not keep its part; it has the reason", k->saved, (int)(uint32_t)all[WORST]);
    k->saved = -1;
    return all[WORST] ? (int)(all[WORST] >> 32) : MPI_ERR_ARG;
  }
  memmove(known + 1, known, (size_t)k->nknown * sizeof *known);
  known[0] = (spx_ckpt_item){k->generation, k->saved, 0, k->size, 0, 0, 0};
  k->nknown = k->nknown < k->versions ? k->nknown + 1 : k->versions;
  k->saved = -1;
  spx_ckpt_drop(k, is_old);
  return MPI_SUCCESS;
}

int spx_c_X_Checkpoint_commit(MPIX_Checkpoint checkpoint)
{
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  int err = spx_ckpt_ready(k, false);
  if (err == MPI_SUCCESS && k->saved < 0) {
    spx_detail("checkpoint has no version that was saved since the last commit");
    err = MPI_ERR_ARG;
  }
  if (err != MPI_SUCCESS) return spx_ckpt_fail(k, err);
  uint32_t fn = spx_mute_enter();
  err = spx_ckpt_settle(k);
  if (err == MPI_SUCCESS) err = commit(k);
  spx_mute_leave(fn);
  return err == MPI_SUCCESS ? err : spx_ckpt_fail(k, err);
}
