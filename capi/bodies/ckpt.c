/* ckpt.c - application-level checkpoints: the object, what is registered, and what is local. See ckpt.h. */
#define _GNU_SOURCE
#include "ckpt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"

spx_checkpoint *spx_ckpt_of(MPIX_Checkpoint checkpoint)
{
  return ((spx_ckpt *)spx_get(SPX_K_CHECKPOINT, checkpoint))->state;
}

int spx_ckpt_fail(const spx_checkpoint *k, int code)
{
  return spx_raise(SPX_K_COMM, (void *)(uintptr_t)k->base_handle, code, spx_fn_name[spx_fn], "%s", spx_detail_text());
}

int spx_ckpt_no_memory(int64_t bytes)
{
  spx_detail("no memory for %lld bytes of a checkpoint", (long long)bytes);
  return MPI_ERR_NO_MEM;
}

int spx_ckpt_ready(const spx_checkpoint *k, bool restoring)
{
  if (k->own == MPI_COMM_NULL) {
    spx_detail("checkpoint is attached to no communicator, since MPIX_Checkpoint_attach has failed: call it again");
    return MPI_ERR_COMM;
  }
  if (k->restoring == restoring) return MPI_SUCCESS;
  spx_detail(restoring ? "checkpoint is not being restored: call MPIX_Checkpoint_restore_begin first"
                       : "checkpoint is being restored: call MPIX_Checkpoint_restore_end first");
  return MPI_ERR_ARG;
}

int spx_ckpt_ask(uint32_t what, int n, const spx_word *a)
{
  spx_frame f = {.fn = what};
  memcpy(f.a, a, (size_t)n * sizeof *a);
  return spx_go_internal(&f);
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

spx_ckpt_part *spx_ckpt_keep(spx_checkpoint *k, spx_ckpt_item is, void *data, int64_t bytes)
{
  spx_ckpt_part *p = malloc(sizeof *p);
  if (!p) {
    free(data);
    return NULL;
  }
  *p = (spx_ckpt_part){is, data, bytes, k->parts};
  return k->parts = p;
}

void spx_ckpt_drop(spx_checkpoint *k, bool (*gone)(const spx_checkpoint *, const spx_ckpt_part *))
{
  for (spx_ckpt_part **at = &k->parts; *at;) {
    spx_ckpt_part *p = *at;
    if (!gone(k, p)) {
      at = &p->next;
      continue;
    }
    if (p->is.kind == SPX_CKPT_FILE)
      SPX_CKPT_ASK(SPX_IN_CKPT_REMOVE, {.p = k->directory}, {.p = k->name},
                   {.p = &p->is}); /* is it gone, all the better */
    *at = p->next;
    free(p->data);
    free(p);
  }
}

void spx_ckpt_forget(spx_checkpoint *k)
{
  for (int64_t i = 0; i < k->nwants; i++) spx_unref(SPX_K_TYPE, &k->wants[i].type->o);
  free(k->wants);
  free(k->sources);
  free(k->table);
  k->wants = NULL;
  k->sources = NULL;
  k->table = NULL;
  k->nwants = k->room = k->nentries = 0;
  k->restoring = false;
}

/* ---- making and freeing ---------------------------------------------------------------------------------------- */

static void destroy(spx_obj *o)
{
  spx_checkpoint *k = ((spx_ckpt *)o)->state;
  ((spx_ckpt *)o)->state = NULL;
  if (!k) return;
  spx_ckpt_forget(k);
  for (spx_ckpt_part *p = k->parts, *next; p; p = next) {
    next = p->next;
    free(p->data);
    free(p);
  }
  for (int i = 0; i < k->nregions; i++) spx_unref(SPX_K_TYPE, &k->regions[i].type->o);
  free(k->regions);
  free(k->known);
  free(k->items);
  free(k->directory);
  free(k->name);
  free(k);
}

/* The value of a key, to be freed; NULL: it is not there. */
static char *value_of(MPI_Info info, const char *key)
{
  int room = 0, found = 0;
  if (info == MPI_INFO_NULL) return NULL;
  PMPI_Info_get_string(info, key, &room, NULL, &found);
  char *value = found ? malloc((size_t)room + 1) : NULL;
  if (value) PMPI_Info_get_string(info, key, &room, value, &found);
  return value;
}

static int number_of(MPI_Info info, const char *key, int least, int *n)
{
  char *value = value_of(info, key), *end = value;
  if (!value) return MPI_SUCCESS;
  long v = strtol(value, &end, 10);
  bool good = end != value && !*end && v >= least && v <= 1000000;
  if (good) *n = (int)v;
  if (!good) spx_detail("info key %s is \"%.40s\", but must be a number from %d on", key, value, least);
  free(value);
  return good ? MPI_SUCCESS : MPI_ERR_INFO_VALUE;
}

static int settings_of(spx_checkpoint *k, MPI_Info info)
{
  k->copies = 1;
  k->versions = 2;
  int err = number_of(info, "mpix_copies", 0, &k->copies);
  if (err == MPI_SUCCESS) err = number_of(info, "mpix_versions", 1, &k->versions);
  k->directory = value_of(info, "mpix_directory");
  k->name = value_of(info, "mpix_name");
  if (!k->name) k->name = strdup("checkpoint");
  if (!k->name && err == MPI_SUCCESS) return spx_ckpt_no_memory(16);
  if (err == MPI_SUCCESS && (!*k->name || strchr(k->name, '/'))) {
    spx_detail("info key mpix_name is \"%.80s\", but must be the beginning of a file's name", k->name);
    err = MPI_ERR_INFO_VALUE;
  }
  if (err == MPI_SUCCESS && k->directory && !*k->directory) {
    spx_detail("info key mpix_directory is empty");
    err = MPI_ERR_INFO_VALUE;
  }
  return err;
}

int spx_c_X_Checkpoint_create(spx_comm *comm, MPI_Info info, MPIX_Checkpoint *checkpoint)
{
  uint32_t fn = spx_mute_enter();
  *checkpoint = MPIX_CHECKPOINT_NULL;
  spx_destructor[SPX_K_CHECKPOINT] = destroy;
  spx_ckpt *o = (spx_ckpt *)spx_new(SPX_K_CHECKPOINT);
  spx_checkpoint *k = o ? o->state = calloc(1, sizeof *k) : NULL;
  int err = MPI_SUCCESS;
  if (!k)
    err = spx_ckpt_no_memory(sizeof *k);
  else {
    k->own = MPI_COMM_NULL;
    k->saved = -1;
    err = settings_of(k, info);
  }
  if (k && err == MPI_SUCCESS) err = spx_ckpt_meet(k, comm);
  spx_mute_leave(fn);
  if (err == MPI_SUCCESS) {
    *checkpoint = (MPIX_Checkpoint)(uintptr_t)o->o.handle;
    return err;
  }
  if (o) spx_retire(SPX_K_CHECKPOINT, &o->o);
  return spx_raise(SPX_K_COMM, (void *)(uintptr_t)comm->o.handle, err, spx_fn_name[fn], "%s", spx_detail_text());
}

int spx_c_X_Checkpoint_attach(spx_comm *comm, MPIX_Checkpoint checkpoint)
{
  uint32_t fn = spx_mute_enter();
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  spx_ckpt_part_ways(k);
  int err = spx_ckpt_meet(k, comm);
  spx_mute_leave(fn);
  if (err == MPI_SUCCESS) return err;
  return spx_raise(SPX_K_COMM, (void *)(uintptr_t)comm->o.handle, err, spx_fn_name[fn], "%s", spx_detail_text());
}

int spx_c_X_Checkpoint_free(MPIX_Checkpoint *checkpoint)
{
  uint32_t fn = spx_mute_enter();
  spx_ckpt *o = (spx_ckpt *)spx_get(SPX_K_CHECKPOINT, *checkpoint);
  spx_ckpt_part_ways(o->state);
  spx_retire(SPX_K_CHECKPOINT, &o->o);
  *checkpoint = MPIX_CHECKPOINT_NULL;
  spx_mute_leave(fn);
  return MPI_SUCCESS;
}

/* ---- what is registered ---------------------------------------------------------------------------------------- */

/* Where region id is, or would be. */
static int place_of(const spx_checkpoint *k, int id)
{
  int i = 0;
  while (i < k->nregions && k->regions[i].id < id) i++;
  return i;
}

static bool is_there(const spx_checkpoint *k, int i, int id) { return i < k->nregions && k->regions[i].id == id; }

int spx_c_X_Checkpoint_register(MPIX_Checkpoint checkpoint, int id, void *buf, int64_t count, spx_type *datatype)
{
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  if (id < 0) {
    spx_detail("id is %d, but must be 0 or more", id);
    return spx_ckpt_fail(k, MPI_ERR_ARG);
  }
  int64_t bytes;
  if (__builtin_mul_overflow(count, datatype->size, &bytes) || bytes > INT64_MAX / 4) {
    spx_detail("count is %lld: a region of that size cannot be saved", (long long)count);
    return spx_ckpt_fail(k, MPI_ERR_COUNT);
  }
  int i = place_of(k, id);
  if (!is_there(k, i, id)) {
    spx_ckpt_region *more = realloc(k->regions, ((size_t)k->nregions + 1) * sizeof *more);
    if (!more) return spx_ckpt_fail(k, spx_ckpt_no_memory(sizeof *more));
    k->regions = more;
    memmove(more + i + 1, more + i, (size_t)(k->nregions - i) * sizeof *more);
    k->nregions++;
  } else
    spx_unref(SPX_K_TYPE, &k->regions[i].type->o);
  spx_ref(&datatype->o);
  k->regions[i] = (spx_ckpt_region){id, buf, count, datatype};
  return MPI_SUCCESS;
}

int spx_c_X_Checkpoint_unregister(MPIX_Checkpoint checkpoint, int id)
{
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  int i = place_of(k, id);
  if (!is_there(k, i, id)) {
    spx_detail("id is %d, but no region is registered by that", id);
    return spx_ckpt_fail(k, MPI_ERR_ARG);
  }
  spx_unref(SPX_K_TYPE, &k->regions[i].type->o);
  memmove(k->regions + i, k->regions + i + 1, (size_t)(--k->nregions - i) * sizeof *k->regions);
  return MPI_SUCCESS;
}

/* ---- versions -------------------------------------------------------------------------------------------------- */

int spx_c_X_Checkpoint_get_versions(MPIX_Checkpoint checkpoint, int maxversions, int versions[], int *num_versions)
{
  const spx_checkpoint *k = spx_ckpt_of(checkpoint);
  if (maxversions > 0 && !versions) {
    spx_detail("versions is NULL, but there is to be room for %d", maxversions);
    return spx_ckpt_fail(k, MPI_ERR_ARG);
  }
  for (int64_t i = 0; i < k->nknown && i < maxversions; i++) versions[i] = k->known[i].version;
  *num_versions = (int)k->nknown;
  return MPI_SUCCESS;
}

/* The version that is being deleted is the one marked chosen. */
static bool is_chosen(const spx_checkpoint *k, const spx_ckpt_part *p) { return p->is.version == k->chosen.version; }

int spx_c_X_Checkpoint_delete(MPIX_Checkpoint checkpoint, int version)
{
  spx_checkpoint *k = spx_ckpt_of(checkpoint);
  int64_t i = 0;
  if (k->restoring) return spx_ckpt_fail(k, spx_ckpt_ready(k, false));
  while (i < k->nknown && k->known[i].version != version) i++;
  if (i == k->nknown) {
    spx_detail("version is %d, which is not there", version);
    return spx_ckpt_fail(k, MPIX_ERR_CHECKPOINT);
  }
  uint32_t fn = spx_mute_enter();
  k->chosen.version = version;
  spx_ckpt_drop(k, is_chosen);
  memmove(k->known + i, k->known + i + 1, (size_t)(--k->nknown - i) * sizeof *k->known);
  spx_mute_leave(fn);
  return MPI_SUCCESS;
}
