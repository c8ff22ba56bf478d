/* runner.c - see runner.h. */
#include "runner.h"
#include <stdlib.h>
#include <time.h>
#include "coll.h"
#include "dp.h"
#include "replay.h"
#include "request.h"

typedef struct spx_batch_message message;

spx_batch *spx_batch_new(spx_comm *c, uint32_t ctx_kind, int nrecvs, int n)
{
  spx_batch *b = calloc(1, sizeof *b + (size_t)n * sizeof b->m[0]);
  if (!b) return NULL;
  b->comm = c;
  b->ctx_kind = ctx_kind;
  b->n = n;
  b->nrecvs = nrecvs;
  return b;
}

bool spx_batch_end(spx_batch *b, bool cancel)
{
  bool over = true;
  for (int i = 0; i < b->n; i++) {
    spx_request *r = b->m[i].r;
    if (!r) continue;
    if (cancel && !spx_request_done(r)) spx_cancel(r);
    if (spx_request_done(r)) {
      spx_request_free(r);
      b->m[i].r = NULL;
    } else
      over = false;
  }
  if (over) free(b);
  return over;
}

static int begin(spx_batch *b, int i)
{
  message *m = &b->m[i];
  spx_type *type = m->type ? m->type : (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  void *data = (void *)m->data;
  int err = i < b->nrecvs ? spx_irecv(data, m->bytes, type, (int)m->peer, (int)m->tag, b->comm,
                                      b->ctx_kind, SPX_RF_INTERNAL, &m->r)
                          : spx_isend(data, m->bytes, type, (int)m->peer, (int)m->tag, b->comm,
                                      b->ctx_kind, SPX_M_STANDARD, SPX_RF_INTERNAL, &m->r);
  if (err) m->r = NULL;
  return err;
}

static void begin_all(spx_batch *b)
{
  while (b->begun < b->n && !b->err) b->err = begin(b, b->begun++);
}

static void take(message *m)
{
  m->bytes = m->r->bytes;
  spx_request_free(m->r);
  m->r = NULL;
}

bool spx_batch_begin(spx_batch *b)
{
  if (spx_replay_on) return false; /* a send may have to wait until there is room for a copy */
  begin_all(b);
  if (b->err) return false;
  for (int i = 0; i < b->n; i++)
    if (!spx_request_done(b->m[i].r) || b->m[i].r->error) return false;
  for (int i = 0; i < b->n; i++) take(&b->m[i]);
  return true;
}

/* Waits for a message, and frees its request. err: what has failed before. */
static int end(message *m, int err)
{
  if (err && !spx_request_done(m->r)) spx_cancel(m->r); /* its peer may never come */
  int e = spx_wait(m->r);
  if (e && !err) {
    MPI_Status ignored;
    if (m->r->finish)
      m->r->finish(m->r, &ignored); /* a collective, which has the error */
    else
      spx_request_detail(m->r);
  }
  take(m);
  return err ? err : e;
}

int64_t spx_batch_wait(spx_word *a)
{
  spx_batch *b = a[0].p;
  begin_all(b);
  int err = b->err;
  for (int i = 0; i < b->n && !(err && a[1].i); i++)
    if (b->m[i].r) err = end(&b->m[i], err);
  return err;
}

int64_t spx_batch_gather(spx_word *a)
{
  spx_batch *b = a[0].p;
  int err = spx_inside_gather_begin(b->comm, a[1].p, a[2].p, (size_t)a[3].i, &b->m[0].r);
  return err ? err : end(&b->m[0], MPI_SUCCESS);
}

int64_t spx_batch_greatest(spx_word *a)
{
  spx_batch *b = a[0].p;
  int err = spx_inside_greatest_begin(b->comm, a[1].p, a[2].p, (int)a[3].i, &b->m[0].r);
  return err ? err : end(&b->m[0], MPI_SUCCESS);
}

int64_t spx_batch_bcast(spx_word *a)
{
  spx_batch *b = a[0].p;
  int err = spx_inside_bcast_begin(b->comm, a[1].p, (size_t)a[2].i, &b->m[0].r);
  return err ? err : end(&b->m[0], MPI_SUCCESS);
}

int64_t spx_batch_post(spx_word *a)
{
  begin_all(a[0].p);
  return ((const spx_batch *)a[0].p)->err;
}

int64_t spx_batch_came(spx_word *a)
{
  spx_progress();
  spx_lock();
  const spx_unex *e =
      spx_match_unexpected(((const spx_comm *)a[0].p)->ctx + a[1].u, MPI_ANY_SOURCE, (int)a[2].i);
  int64_t from = e ? e->src : -1;
  if (e) *(int64_t *)a[3].p = (int64_t)e->bytes;
  spx_unlock();
  return from;
}

int64_t spx_ticket_wait(spx_word *a)
{
  spx_wait_event((uint32_t)a[0].u, a[1].u);
  return 0;
}

static bool is_broken(const spx_comm *c)
{
  return c && (atomic_load(&c->revoked) || spx_comm_failures(c) > 0);
}

static bool is_late(uint64_t deadline_ns)
{
  struct timespec now;
  return deadline_ns && clock_gettime(CLOCK_MONOTONIC, &now) == 0 &&
         (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec >= deadline_ns;
}

int64_t spx_event_wait(spx_word *a)
{
  const uint32_t *flag = a[0].p;
  for (;;) {
    uint32_t ticket = spx_ticket(), value = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
    if (value || is_broken(a[1].p) || is_late(a[2].u)) return value;
    spx_wait_event(ticket, a[2].u);
  }
}

int64_t spx_progress_made(spx_word *a)
{
  (void)a;
  return spx_progress();
}
