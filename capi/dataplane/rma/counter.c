/* counter.c - see counter.h. */
#define _GNU_SOURCE
#include "counter.h"
#include <stdlib.h>
#include <sys/mman.h>
#include "basic.h"
#include "dp.h"
#include "net.h"
#include "rma.h"

enum {
  PAGE = 4096,
  LINES = 256,     /* of a chunk of the memory file */
  TAG_ANSWER = 16, /* and SERIES more */
  SERIES = 1 << 20
};

/* ---- rank 0: lines of the memory file ---- */

/* A chunk is kept, mapped, for as long as its file is in use: another process may still have a line
 * of it mapped. */
typedef struct chunk {
  struct chunk *next;
  uint64_t offset, bytes;
  char *map;
  uint32_t free_lines;
  uint8_t taken[LINES];
} chunk;
static chunk *chunks;       /* under spx_lock */
static uint8_t file_id[16]; /* the memory file that they belong to */

/* MPI may have ended and begun anew with another file. */
static void check_file(void)
{
  if (memcmp(file_id, spx_segment->job_id, sizeof file_id) == 0) return;
  memcpy(file_id, spx_segment->job_id, sizeof file_id);
  for (chunk *p = chunks, *next; p; p = next) {
    next = p->next;
    spx_file_unmap(p->map, p->bytes);
    free(p);
  }
  chunks = NULL;
}

static chunk *new_chunk(void)
{
  chunk *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  if (spx_chunk_take((uint64_t)LINES * SPX_LINE, &p->offset, &p->bytes) != 0) {
    free(p);
    return NULL;
  }
  p->map = spx_chunk_map(p->offset, p->bytes);
  if (!p->map) {
    spx_file_drop(p->offset, p->bytes);
    free(p);
    return NULL;
  }
  p->free_lines = LINES;
  p->next = chunks;
  return chunks = p;
}

/* Takes a line for k; false: no memory. */
static bool take_line(spx_counter *k)
{
  spx_lock();
  check_file();
  chunk *p = chunks;
  while (p && !p->free_lines) p = p->next;
  if (!p) p = new_chunk();
  if (p) {
    uint32_t i = 0;
    while (p->taken[i]) i++;
    p->taken[i] = 1;
    p->free_lines--;
    k->number = (int64_t *)(void *)(p->map + i * SPX_LINE);
    k->place = (int64_t)(p->offset + i * SPX_LINE);
    *k->number = 0;
  }
  spx_unlock();
  return p != NULL;
}

/* The line of k is not in use any more. */
static void give_line(const spx_counter *k)
{
  spx_lock();
  check_file();
  for (chunk *p = chunks; p; p = p->next) {
    uint64_t at = (uint64_t)k->place - p->offset;
    if ((uint64_t)k->place < p->offset || at >= (uint64_t)LINES * SPX_LINE) continue;
    p->taken[at / SPX_LINE] = 0;
    p->free_lines++;
  }
  spx_unlock();
}

/* ---- rank 0: answers ---- */

/* An answer on its way. */
typedef struct answer {
  struct answer *next;
  spx_request *r;
  int64_t before;
} answer;

struct spx_counter_server {
  spx_poller poller;
  spx_counter *k;    /* NULL: it has ended, and the server goes when the answers are out */
  spx_request *slot; /* NULL: no more questions come, as the communicator was revoked */
  spx_counter_question q;
  answer *answers;
};

static spx_type *bytes_type(void) { return &spx_basic_types[SPX_B_BYTE]; }

static void post(struct spx_counter_server *s)
{
  if (spx_irecv(&s->q, sizeof s->q, bytes_type(), MPI_ANY_SOURCE, SPX_COUNTER_ASK, s->k->comm,
                SPX_CTX_P2P, SPX_RF_INTERNAL, &s->slot) != MPI_SUCCESS)
    s->slot = NULL;
}

static bool is_sound(const spx_request *r, const spx_counter_question *q)
{
  return r->error == MPI_SUCCESS && r->bytes == sizeof *q && q->tag >= TAG_ANSWER &&
         q->tag < TAG_ANSWER + SERIES;
}

/* Answers the question in the slot; false: not now, as there is no memory. */
static bool answer_slot(struct spx_counter_server *s)
{
  if (!is_sound(s->slot, &s->q)) return true;
  answer *a = malloc(sizeof *a);
  if (!a) return false;
  a->before = __atomic_fetch_add(s->k->number, s->q.n, __ATOMIC_SEQ_CST);
  int err = spx_isend(&a->before, sizeof a->before, bytes_type(), s->slot->src, (int)s->q.tag,
                      s->k->comm, SPX_CTX_P2P, SPX_M_STANDARD, SPX_RF_INTERNAL, &a->r);
  if (err != MPI_SUCCESS) { /* the requesting process has died, or the communicator was revoked */
    free(a);
    return true;
  }
  a->next = s->answers;
  s->answers = a;
  return true;
}

/* Frees the answers that have gone out. */
static int collect(struct spx_counter_server *s)
{
  int n = 0;
  for (answer **at = &s->answers, *a; (a = *at) != NULL;) {
    if (!spx_is_done(a->r)) {
      at = &a->next;
      continue;
    }
    *at = a->next;
    spx_request_free(a->r);
    free(a);
    n++;
  }
  return n;
}

static void drop_slot(struct spx_counter_server *s)
{
  spx_request_free(s->slot);
  s->slot = NULL;
}

static int serve(spx_poller *p)
{
  struct spx_counter_server *s =
      (struct spx_counter_server *)((char *)p - offsetof(struct spx_counter_server, poller));
  int n = s->answers ? collect(s) : 0;
  bool asked = s->slot && spx_is_done(s->slot);
  if (SPX_UNLIKELY(!s->k)) {
    if (asked) drop_slot(s);
    if (s->slot || s->answers) return n;
    spx_poller_del(p);
    free(s);
    return n + 1;
  }
  if (!asked) return n;
  /* no event comes when there is memory: this process must not go to sleep */
  if (!answer_slot(s)) return n + 1;
  bool over = s->slot->error == MPIX_ERR_REVOKED;
  drop_slot(s);
  if (!over) post(s);
  return n + 1;
}

static bool start_server(spx_counter *k)
{
  struct spx_counter_server *s = calloc(1, sizeof *s);
  if (!s) return false;
  s->k = k;
  post(s);
  if (!s->slot) {
    free(s);
    return false;
  }
  s->poller.poll = serve;
  spx_poller_add(&s->poller);
  k->server = s;
  return true;
}

/* It goes now, or with the poll that finds nothing pending any more. */
static void end_server(struct spx_counter_server *s)
{
  spx_lock();
  s->k = NULL;
  if (s->slot && !spx_is_done(s->slot)) spx_cancel(s->slot);
  serve(&s->poller);
  spx_unlock();
}

/* ---- making it, and giving it back ---- */

spx_counter *spx_counter_make(spx_comm *comm, int64_t *place)
{
  spx_counter *k = calloc(1, sizeof *k);
  *place = SPX_COUNTER_NOWHERE;
  if (!k) return NULL;
  k->comm = comm;
  bool near = false, far = false;
  for (int i = 0; i < comm->size; i++) {
    if (i == comm->rank) continue;
    bool is_far = spx_net_peer(comm->peer[i]);
    far |= is_far;
    near |= !is_far;
  }
  if (!near || !take_line(k)) k->number = &k->own;
  bool asked = far || (near && k->number == &k->own);
  if (!asked || start_server(k)) *place = k->place;
  return k;
}

spx_counter *spx_counter_join(spx_comm *comm, int64_t place)
{
  spx_counter *k = calloc(1, sizeof *k);
  if (!k) return NULL;
  k->comm = comm;
  k->place = place;
  return k;
}

void spx_counter_end(spx_counter *k, bool together)
{
  if (!k) return;
  if (k->server) end_server(k->server);
  if (k->map) munmap(k->map, PAGE);
  if (k->comm->rank == 0 && together && k->number != &k->own) give_line(k);
  free(k);
}

/* ---- using it ---- */

/* Maps the line, which is in the memory file of rank 0's job: that may be another job on this
 * host. */
static int map_line(spx_counter *k)
{
  uint32_t there;
  const spx_file *f = spx_place(k->comm->peer[0], &there);
  int64_t page = k->place / PAGE * PAGE;
  spx_lock();
  if (!k->map) {
    void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, (off_t)page);
    if (p != MAP_FAILED) {
      k->map = p;
      __atomic_store_n(&k->number, (int64_t *)(void *)(k->map + (k->place - page)),
                       __ATOMIC_RELEASE);
    }
  }
  spx_unlock();
  if (k->map) return MPI_SUCCESS;
  spx_detail("no memory for the shared file pointer");
  return MPI_ERR_NO_MEM;
}

int spx_counter_add(spx_counter *k, int64_t n, int64_t *before, spx_counter_question *q)
{
  if (!__atomic_load_n(&k->number, __ATOMIC_ACQUIRE)) {
    if (k->place == SPX_COUNTER_NOWHERE) {
      spx_detail("rank 0 of the file had no memory for the shared file pointer");
      return MPI_ERR_NO_MEM;
    }
    if (k->place == SPX_COUNTER_BY_MESSAGE || spx_net_peer(k->comm->peer[0])) {
      q->n = n;
      q->tag = TAG_ANSWER + (__atomic_fetch_add(&k->series, 1, __ATOMIC_RELAXED) & (SERIES - 1));
      return SPX_COUNTER_REMOTE;
    }
    int err = map_line(k);
    if (err != MPI_SUCCESS) return err;
  }
  *before = __atomic_fetch_add(k->number, n, __ATOMIC_SEQ_CST);
  return MPI_SUCCESS;
}

void spx_counter_set(spx_counter *k, int64_t value)
{
  __atomic_store_n(k->number, value, __ATOMIC_SEQ_CST);
}
