/* ckpt_meet.c - checkpoints: how the processes of a communicator come together, and tell one another what they have. See ckpt.h. */
#define _GNU_SOURCE
#include "ckpt.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- revocation ------------------------------------------------------------------------------------------------ */

static struct {
  pthread_mutex_t lock; /* never held while anything else is locked that the engine calls with */
  spx_checkpoint *first;
} attached = {PTHREAD_MUTEX_INITIALIZER, NULL};

static void revoke_here(spx_comm *c)
{
  for (; c; c = c->inner) {
    atomic_store(&c->revoked, 1);
    spx_comm_revoked(c);
  }
}

void spx_ckpt_revoked(const spx_comm *c)
{
  pthread_mutex_lock(&attached.lock);
  for (spx_checkpoint *k = attached.first; k; k = k->next)
    if (k->base == c) revoke_here(k->comm);
  pthread_mutex_unlock(&attached.lock);
}

static void enlist(spx_checkpoint *k)
{
  pthread_mutex_lock(&attached.lock);
  k->next = attached.first;
  k->prev = &attached.first;
  if (k->next) k->next->prev = &k->next;
  attached.first = k;
  pthread_mutex_unlock(&attached.lock);
  if (atomic_load(&k->base->revoked)) revoke_here(k->comm);
}

static void delist(spx_checkpoint *k)
{
  pthread_mutex_lock(&attached.lock);
  *k->prev = k->next;
  if (k->next) k->next->prev = k->prev;
  pthread_mutex_unlock(&attached.lock);
}

int spx_ckpt_check(spx_checkpoint *k, int rc)
{
  if (rc == MPI_SUCCESS) return rc;
  char text[256];
  strncpy(text, spx_detail_text(), sizeof text - 1);
  text[sizeof text - 1] = 0;
  PMPIX_Comm_revoke(k->own);
  spx_detail("%s%sthe processes have to come together again by MPIX_Checkpoint_attach", text, *text ? "; " : "");
  return rc;
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

spx_type *spx_ckpt_bytes(void) { return (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE); }

bool spx_ckpt_batch_open(spx_ckpt_batch *b, spx_checkpoint *k, int64_t n)
{
  *b = (spx_ckpt_batch){k, malloc((size_t)(n ? n : 1) * sizeof *b->r), 0, MPI_SUCCESS};
  return b->r != NULL;
}

static void posted(spx_ckpt_batch *b, int rc)
{
  if (rc == MPI_SUCCESS)
    b->n++;
  else if (b->err == MPI_SUCCESS)
    b->err = spx_ckpt_check(b->k, rc);
}

void spx_ckpt_send(spx_ckpt_batch *b, const void *buf, int64_t bytes, int to, int tag)
{
  posted(b, spx_isend(buf, bytes, spx_ckpt_bytes(), to, tag, b->k->comm, SPX_CTX_P2P, SPX_M_STANDARD, SPX_RF_INTERNAL,
                      &b->r[b->n]));
}

void spx_ckpt_receive(spx_ckpt_batch *b, void *buf, int64_t count, spx_type *t, int from, int tag)
{
  posted(b, spx_irecv(buf, count, t, from, tag, b->k->comm, SPX_CTX_P2P, SPX_RF_INTERNAL, &b->r[b->n]));
}

int spx_ckpt_batch_close(spx_ckpt_batch *b)
{
  for (int64_t i = 0; i < b->n; i++) {
    int rc = spx_wait(b->r[i]);
    if (rc != MPI_SUCCESS && b->err == MPI_SUCCESS) {
      spx_request_detail(b->r[i]);
      b->err = spx_ckpt_check(b->k, rc); /* those that are left end by that */
    }
    spx_request_free(b->r[i]);
  }
  free(b->r);
  return b->err;
}

/* ---- coming together ------------------------------------------------------------------------------------------- */

int spx_ckpt_judge(spx_checkpoint *k, int status)
{
  int64_t worst = status == MPI_SUCCESS ? 0 : (int64_t)status << 32 | (uint32_t)k->rank, all;
  char text[256];
  strncpy(text, spx_detail_text(), sizeof text - 1);
  text[sizeof text - 1] = 0;
  int rc = spx_ckpt_check(k, PMPI_Allreduce(&worst, &all, 1, MPI_INT64_T, MPI_MAX, k->own));
  if (rc != MPI_SUCCESS || all == 0) return rc;
  if ((int)(uint32_t)all == k->rank)
    spx_detail("%s", text);
  else
    spx_detail("checkpoint: rank %d could not do its part; it has the reason", (int)(uint32_t)all);
  return (int)(all >> 32);
}

static int known_from_items(spx_checkpoint *k)
{
  spx_ckpt_item *known = malloc((size_t)(k->nitems + 1) * sizeof *known);
  int64_t n = 0;
  if (!known) return spx_ckpt_no_memory(k->nitems * (int64_t)sizeof *known);
  int err = SPX_CKPT_ASK(SPX_IN_CKPT_COMPLETE, {.p = k->items}, {.i = k->nitems}, {.p = known}, {.p = &n});
  free(k->known);
  k->known = known;
  k->nknown = n;
  return err;
}

/* What this process has, as bytes of items. */
static spx_ckpt_item *own_items(const spx_checkpoint *k, int *bytes)
{
  int n = 0;
  for (const spx_ckpt_part *p = k->parts; p; p = p->next) n++;
  spx_ckpt_item *mine = malloc((size_t)(n + 1) * sizeof *mine);
  *bytes = mine ? n * (int)sizeof *mine : 0;
  n = 0;
  for (const spx_ckpt_part *p = k->parts; mine && p; p = p->next) {
    mine[n] = p->is;
    mine[n++].holder = k->rank;
  }
  return mine;
}

int spx_ckpt_take_stock(spx_checkpoint *k, int status)
{
  int bytes, *counts = malloc((size_t)k->size * sizeof *counts), *at = malloc((size_t)k->size * sizeof *at);
  spx_ckpt_item *mine = own_items(k, &bytes);
  if (status == MPI_SUCCESS && (!counts || !at || !mine)) status = spx_ckpt_no_memory(k->size);
  int err = spx_ckpt_judge(k, status);
  if (err == MPI_SUCCESS) err = spx_ckpt_check(k, PMPI_Allgather(&bytes, 1, MPI_INT, counts, 1, MPI_INT, k->own));
  int total = 0;
  for (int r = 0; err == MPI_SUCCESS && r < k->size; r++) {
    at[r] = total;
    total += counts[r];
  }
  free(k->items);
  k->nitems = 0;
  k->items = err == MPI_SUCCESS ? malloc((size_t)total + 1) : NULL;
  if (err == MPI_SUCCESS) err = spx_ckpt_judge(k, k->items ? MPI_SUCCESS : spx_ckpt_no_memory(total));
  if (err == MPI_SUCCESS)
    err = spx_ckpt_check(k, PMPI_Allgatherv(mine, bytes, MPI_BYTE, k->items, counts, at, MPI_BYTE, k->own));
  if (err == MPI_SUCCESS) k->nitems = total / (int)sizeof *k->items;
  free(mine);
  free(counts);
  free(at);
  return err == MPI_SUCCESS ? spx_ckpt_check(k, known_from_items(k)) : err;
}

typedef struct {
  int32_t host, copies, versions, files;
} hello;

/* Who is on which host, and whether all want the same. */
static int get_acquainted(spx_checkpoint *k)
{
  hello mine = {0, k->copies, k->versions, k->directory != NULL}, *all = malloc((size_t)k->size * sizeof *all);
  k->hosts = malloc((size_t)k->size * sizeof *k->hosts);
  k->to = malloc((size_t)k->size * sizeof *k->to);
  k->from = malloc((size_t)k->size * (size_t)(k->copies + 1) * sizeof *k->from);
  int err = all && k->hosts && k->to && k->from ? MPI_SUCCESS : spx_ckpt_no_memory(k->size);
  if (err == MPI_SUCCESS) err = SPX_CKPT_ASK(SPX_IN_CKPT_HOST, {.p = k->own}, {.p = &mine.host});
  err = spx_ckpt_judge(k, err);
  if (err == MPI_SUCCESS)
    err = spx_ckpt_check(k, PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, k->own));
  for (int r = 0; err == MPI_SUCCESS && r < k->size; r++) {
    k->hosts[r] = all[r].host;
    if (memcmp(&all[r].copies, &all[0].copies, sizeof mine - sizeof mine.host) != 0) {
      spx_detail(
          "info is not the same at all: mpix_copies, mpix_versions or whether there is a mpix_directory differ between "
          "ranks 0 and %d",
          r);
      err = MPI_ERR_INFO_VALUE;
    }
  }
  free(all);
  if (err == MPI_SUCCESS)
    err = SPX_CKPT_ASK(SPX_IN_CKPT_BUDDIES, {.p = k->hosts}, {.i = k->size}, {.i = k->rank}, {.i = k->copies},
                       {.p = k->to}, {.p = &k->nto}, {.p = k->from}, {.p = &k->nfrom});
  return err;
}

static bool is_file(const spx_checkpoint *k, const spx_ckpt_part *p)
{
  (void)k;
  return p->is.kind == SPX_CKPT_FILE;
}

/* Forgets files, which stay, and looks at what is there: the processes of a host share that between them. */
static int look_at_files(spx_checkpoint *k)
{
  int index = 0, sharers = 0;
  spx_ckpt_item *found = NULL;
  int64_t n = 0;
  for (spx_ckpt_part **at = &k->parts; *at;) {
    spx_ckpt_part *p = *at;
    if (!is_file(k, p)) {
      at = &p->next;
      continue;
    }
    *at = p->next;
    free(p);
  }
  if (!k->directory) return MPI_SUCCESS;
  for (int r = 0; r < k->size; r++)
    if (k->hosts[r] == k->hosts[k->rank]) {
      sharers++;
      index += r < k->rank;
    }
  int err = SPX_CKPT_ASK(SPX_IN_CKPT_SCAN, {.p = k->directory}, {.p = k->name}, {.i = index}, {.i = sharers},
                         {.p = &found}, {.p = &n});
  for (int64_t i = 0; err == MPI_SUCCESS && i < n; i++)
    if (!spx_ckpt_keep(k, found[i], NULL, 0)) err = spx_ckpt_no_memory(n);
  free(found);
  return err;
}

int spx_ckpt_meet(spx_checkpoint *k, spx_comm *comm)
{
  MPI_Comm own = MPI_COMM_NULL;
  if (comm->flags & SPX_C_INTER) {
    spx_detail("comm is an intercommunicator: merge it first");
    return MPI_ERR_COMM;
  }
  int err =
      PMPI_Comm_split((MPI_Comm)(uintptr_t)comm->o.handle, 0, comm->rank, &own); /* a duplicate would copy attributes */
  if (err != MPI_SUCCESS) return err;
  spx_ref(&comm->o);
  k->base = comm;
  k->base_handle = comm->o.handle;
  k->own = own;
  k->comm = (spx_comm *)spx_get(SPX_K_COMM, own);
  k->rank = comm->rank;
  k->size = comm->size;
  k->saved = -1;
  enlist(k);
  err = get_acquainted(k);
  if (err == MPI_SUCCESS) err = spx_ckpt_take_stock(k, look_at_files(k));
  if (err != MPI_SUCCESS) {
    char text[512];
    strncpy(text, spx_detail_text(), sizeof text - 1);
    text[sizeof text - 1] = 0;
    spx_ckpt_part_ways(k);
    spx_detail("%s", text);
    return err;
  }
  int64_t newest = k->generation; /* of those that have met before, and of what is there */
  for (int64_t i = 0; i < k->nitems; i++)
    if (k->items[i].generation > newest) newest = k->items[i].generation;
  err = spx_ckpt_check(k, PMPI_Allreduce(&newest, &k->generation, 1, MPI_INT64_T, MPI_MAX, k->own));
  k->generation++;
  if (err != MPI_SUCCESS) spx_ckpt_part_ways(k);
  return err;
}

void spx_ckpt_part_ways(spx_checkpoint *k)
{
  spx_ckpt_forget(k);
  spx_ckpt_settle(k); /* partners have their ends of the messages under way, or have revoked the communicator */
  if (k->own != MPI_COMM_NULL) {
    delist(k);
    PMPI_Comm_free(&k->own);
    spx_unref(SPX_K_COMM, &k->base->o);
  }
  k->base = NULL;
  free(k->hosts);
  free(k->to);
  free(k->from);
  k->hosts = k->to = k->from = NULL;
  k->nto = k->nfrom = 0;
}
